--[[
Due: lives of queues and names of tasks of which something may be due now. Changes nothing.
KEYS  1 wake, 2 task due (sorted sets)
ARGV  1 how many queues at most, 2 how much of tasks at most
Result  lives; what is due of tasks (tasks.lua)
Atomic as one command would be; it is a script for the sake of the server's own clock.
]]
local time = redis.call("TIME")
local now = string.format("%.0f", time[1] * 1000000 + time[2])
return {
  redis.call("ZRANGEBYSCORE", KEYS[1], "-inf", now, "LIMIT", 0, ARGV[1]),
  redis.call("ZRANGEBYSCORE", KEYS[2], "-inf", now, "LIMIT", 0, ARGV[2]),
}
