--[[
Task: a task, and the queues in which it may have unacked messages. Changes nothing.
KEYS  1 tasks, 2 task texts (hashes), 3 task queues (sorted set, by text)
ARGV  1 id; 2 how many queues at most
Result  nothing when there is none; else record, texts, then lives (6 bytes each)
Atomic so that all of it is of one moment.
]]
local record = redis.call("HGET", KEYS[1], ARGV[1])
if not record then return false end
local result, skipped = { record, redis.call("HGET", KEYS[2], ARGV[1]) or "" }, #ARGV[1] + 2
local from = "[" .. ARGV[1] .. "\0"
for index, member in ipairs(redis.call("ZRANGEBYLEX", KEYS[3], from, from .. string.rep("\255", 7), "LIMIT", 0, ARGV[2])) do
  result[index + 2] = string.sub(member, skipped)
end
return result
