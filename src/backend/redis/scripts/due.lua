--[[
Due: lives of queues and names of tasks of which something may be due now, and lives whose keys are still to be freed. Changes nothing.
KEYS  1 wake, 2 task due (sorted sets), 3 trash (set)
ARGV  1 how many queues at most, 2 how much of tasks at most, 3 how many lives of the trash at most
Result  lives; what is due of tasks (tasks.lua); lives of the trash, or nothing where it cannot be read
Atomic as one command would be; it is a script for the sake of the server's own clock.
]]
local time = redis.call("TIME")
local now = string.format("%.0f", time[1] * 1000000 + time[2])
-- What is due is looked after whatever became of the trash.
local trash = redis.pcall("SRANDMEMBER", KEYS[3], ARGV[3])
return {
  redis.call("ZRANGEBYSCORE", KEYS[1], "-inf", now, "LIMIT", 0, ARGV[1]),
  redis.call("ZRANGEBYSCORE", KEYS[2], "-inf", now, "LIMIT", 0, ARGV[2]),
  not trash.err and trash,
}
