--[[
List: names of queues, in byte order, with their lives. Changes nothing.
KEYS  1 meta (hash), 2 queues (hash: name -> life), 3 names (sorted set, by name)
ARGV  1 a name to come first if it exists, or empty; 2 and 3 range of the others, as of ZRANGEBYLEX; 4 how many at most
Result  id of the store, change number of the registry, then name and life per queue
Atomic because the change number vouches for exactly this list.
]]
local meta = redis.call("HMGET", KEYS[1], "store", "change")
local result = { meta[1] or "", meta[2] or "0" }
local left = tonumber(ARGV[4])
local function add(name)
  local life = redis.call("HGET", KEYS[2], name)
  if life then
    result[#result + 1], result[#result + 2] = name, life
    left = left - 1
  end
end
if ARGV[1] ~= "" then add(ARGV[1]) end
if left > 0 then
  for _, name in ipairs(redis.call("ZRANGEBYLEX", KEYS[3], ARGV[2], ARGV[3], "LIMIT", 0, left)) do add(name) end
end
return result
