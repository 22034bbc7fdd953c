--[[
Task audit: counts the messages of tasks in a part of a queue. Changes nothing.
KEYS  1 pending (list), 2 bodies (hash)
ARGV  1 `list` or `hash`; 2 where to begin; 3 about how many messages to look at
Result  where to go on, or 0 at the end; then id and number of its messages per task
Atomic as one command would be; it is a script so that the messages themselves need not travel.
]]
local sub, byte = string.sub, string.byte
local counts, result, cursor, first, step = {}, {}, nil, 1, 1
local entries
if ARGV[1] == "list" then
  entries = redis.call("LRANGE", KEYS[1], ARGV[2], ARGV[2] + ARGV[3] - 1)
  cursor = #entries < tonumber(ARGV[3]) and "0" or string.format("%.0f", ARGV[2] + ARGV[3])
else
  local page = redis.call("HSCAN", KEYS[2], ARGV[2], "COUNT", ARGV[3])
  cursor, entries, first, step = page[1], page[2], 2, 2
end
for index = first, #entries, step do
  local entry = entries[index]
  local flags = #entry > 20 and byte(entry) == 1 and byte(entry, 14) or 0
  if flags == 2 or flags == 3 then
    local at = flags == 3 and 22 + byte(entry, 21) or 21
    local id = sub(entry, at + 1, at + (byte(entry, at) or 0))
    counts[id] = (counts[id] or 0) + 1
  end
end
result[1] = cursor
for id, count in pairs(counts) do
  result[#result + 1], result[#result + 2] = id, string.format("%.0f", count)
end
return result
