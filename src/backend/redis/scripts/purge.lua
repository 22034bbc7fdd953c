--[[
Purge: frees what removed queues have left. Safe to repeat.
KEYS  1 trash (set of lives); then twelve per life, all its keys but the record
ARGV  the lives
Result  number of lives
Atomic because a life leaves the trash together with its keys. Unlinking frees the memory outside the server's main thread.
]]
for index = 2, #KEYS do redis.call("UNLINK", KEYS[index]) end
for index = 1, #ARGV do redis.call("SREM", KEYS[1], ARGV[index]) end
return #ARGV
