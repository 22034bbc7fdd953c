--[[
Remove: takes queues away, all in one step. Follows frame.lua.
KEYS  3 meta (hash), 4 queues (hash: name -> life), 5 names (sorted set), 6 trash (set of lives whose other keys are to be unlinked),
      from 7 on the records (string) of the queues, in the order of ARGV
ARGV  4 change number of the registry on which this call is founded; then name and life per queue
Result  number of queues (6 bytes). CHANGED: the registry changed since, nothing happened.
Atomic because no queue of the subtree may be seen without the others, and none made meanwhile may be left behind.
Without its record a queue is gone for every script; the remaining keys are removed afterwards (purge.lua), a few queues at a time.
]]
if stored then return stored end
local meta = call("HMGET", KEYS[3], "store", "change")
if meta[1] ~= ARGV[2] or meta[2] ~= ARGV[4] then return redis.error_reply("CHANGED the registry of queues has changed") end
call("HLEN", KEYS[4]); call("ZCARD", KEYS[5]); call("SCARD", KEYS[6]); call("ZCARD", KEYS[2])
local names, count = {}, 0
for index = 5, #ARGV, 2 do
  count = count + 1
  call("UNLINK", KEYS[6 + count])
  call("HDEL", KEYS[4], ARGV[index])
  call("ZREM", KEYS[5], ARGV[index])
  call("ZREM", KEYS[2], ARGV[index + 1])
  call("SADD", KEYS[6], ARGV[index + 1])
  names[count] = ARGV[index]
end
call("HINCRBY", KEYS[3], "change", 1)
changed = true
local answer = pack(">I6", count)
finish(answer, table.concat(names, "\0"))
return answer
