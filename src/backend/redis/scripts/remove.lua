--[[
Remove: takes queues away, all in one step. Follows tasks.lua.
KEYS  11 meta (hash), 12 queues (hash: name -> life), 13 names (sorted set), 14 trash (set of lives whose other keys are to be unlinked),
      from 15 on the records (strings) of the queues, in the order of ARGV
ARGV  4 change number of the registry on which this call is founded; then name and life per queue
Result  number of queues (6 bytes). CHANGED: the registry changed since, nothing happened.
Atomic because no queue of the subtree may be seen without the others, none made meanwhile may be left behind, and the messages of tasks that go
with them count as failed.
Without its record a queue is gone for every script; the remaining keys are removed afterwards (purge.lua), a few queues at a time.
]]
if stored then return stored end
local meta = call("HMGET", KEYS[11], "store", "change")
if meta[1] ~= ARGV[2] or meta[2] ~= ARGV[4] then return redis.error_reply("CHANGED the registry of queues has changed") end
call("HLEN", KEYS[12]); call("ZCARD", KEYS[13]); call("SCARD", KEYS[14]); call("ZCARD", KEYS[2])
local names, count = {}, 0
if call("ZCARD", KEYS[8]) > 0 then useTasks().check() end
for index = 5, #ARGV, 2 do
  count = count + 1
  call("UNLINK", KEYS[14 + count])
  call("HDEL", KEYS[12], ARGV[index])
  call("ZREM", KEYS[13], ARGV[index])
  call("ZREM", KEYS[2], ARGV[index + 1])
  call("SADD", KEYS[14], ARGV[index + 1])
  if tasks then tasks.lose(pack(">I6", tonumber(ARGV[index + 1])), ARGV[index]) end
  names[count] = ARGV[index]
end
call("HINCRBY", KEYS[11], "change", 1)
changed = true
if tasks then tasks.conclude() end
local answer = pack(">I6", count)
local fault = finish(answer, table.concat(names, "\0"))
if fault then return fault end
return answer
