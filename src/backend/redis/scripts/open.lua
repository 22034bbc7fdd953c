--[[
Open: makes the namespace, or finds it. Safe to repeat.
KEYS  1 meta (hash: store, format, life, change)
ARGV  1 id for a new store, 2 format that this program writes
Result  id of the store, format, change number of the registry
Atomic because two who open a new namespace must agree on its id.
]]
local meta = redis.call("HMGET", KEYS[1], "store", "format", "change")
if meta[1] and meta[2] then return { meta[1], meta[2], meta[3] or "0" } end
redis.call("HSET", KEYS[1], "store", ARGV[1], "format", ARGV[2], "life", "0", "change", "0")
return { ARGV[1], ARGV[2], "0" }
