--[[
Resolve: the lives of queues by name. Changes nothing.
KEYS  1 meta (hash), 2 queues (hash: name -> life)
ARGV  the names
Result  id of the store, then per name its life or an empty text
Atomic because lives mean something only together with the id of the store.
]]
local lives = { redis.call("HGET", KEYS[1], "store") or "" }
for index = 1, #ARGV do lives[index + 1] = redis.call("HGET", KEYS[2], ARGV[index]) or "" end
return lives
