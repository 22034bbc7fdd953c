--[[
Task: a task, and queues in which it may have pending messages. Follows task-shown.lua. Changes nothing.
KEYS  1 tasks, 2 task texts, 3 task counts (hashes), 4 task queues (sorted set, by text)
ARGV  1 id; 2 how many queues at most
Result  nothing when there is none; else record, texts, then lives (6 bytes each)
Atomic so that all of it is of one moment.
]]
local id, limit = ARGV[1], tonumber(ARGV[2])
local record = redis.call("HGET", KEYS[1], id)
if not record then return false end
local result, n = { shownTask(id, record, KEYS[3], KEYS[4]), redis.call("HGET", KEYS[2], id) or "" }, 2
if limit == 0 then return result end
local from = "[" .. id .. "\0"
for _, member in ipairs(redis.call("ZRANGEBYLEX", KEYS[4], from, from .. string.rep("\255", 7))) do
  local life = string.sub(member, #id + 2)
  local value = redis.call("HGET", KEYS[3], string.sub(record, 8, 13) .. life)
  if value and #value > 37 and string.byte(value, 31) < 4 and string.sub(value, 1, 6) ~= "\0\0\0\0\0\0" then
    n = n + 1
    result[n] = life
    if n == limit + 2 then break end
  end
end
return result
