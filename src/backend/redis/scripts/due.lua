--[[
Due: lives of queues of which something may be due now. Changes nothing.
KEYS  1 wake (sorted set)
ARGV  1 how many at most
Result  lives
Atomic as one command would be; it is a script for the sake of the server's own clock.
]]
local time = redis.call("TIME")
return redis.call("ZRANGEBYSCORE", KEYS[1], "-inf", string.format("%.0f", time[1] * 1000000 + time[2]), "LIMIT", 0, ARGV[1])
