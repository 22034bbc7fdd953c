--[[
Remove: takes queues away, all in one step. Follows tasks.lua.
KEYS  9 meta (hash), 10 queues (hash: name -> life), 11 names (sorted set), 12 trash (set of lives whose other keys are to be unlinked),
      from 13 on two per queue, in the order of ARGV: record (string), owners (hash)
ARGV  4 change number of the registry on which this call is founded; then name and life per queue
Result  number of queues (6 bytes). CHANGED: the registry changed since, nothing happened.
Atomic because no queue of the subtree may be seen without the others, none made meanwhile may be left behind, and the messages of tasks that go
with them count as failed.
Without its record a queue is gone for every script; the remaining keys are removed afterwards (purge.lua), a few queues at a time.
]]
if stored then return stored end
local meta = call("HMGET", KEYS[9], "store", "change")
if meta[1] ~= ARGV[2] or meta[2] ~= ARGV[4] then return redis.error_reply("CHANGED the registry of queues has changed") end
call("HLEN", KEYS[10]); call("ZCARD", KEYS[11]); call("SCARD", KEYS[12]); call("ZCARD", KEYS[2])
local names, count = {}, 0
for index = 5, #ARGV, 2 do
  count = count + 1
  if call("HLEN", KEYS[12 + 2 * count]) > 0 then useTasks().check() end
end
count = 0
for index = 5, #ARGV, 2 do
  count = count + 1
  call("UNLINK", KEYS[11 + 2 * count])
  call("HDEL", KEYS[10], ARGV[index])
  call("ZREM", KEYS[11], ARGV[index])
  call("ZREM", KEYS[2], ARGV[index + 1])
  call("SADD", KEYS[12], ARGV[index + 1])
  if tasks then tasks.lose(KEYS[12 + 2 * count], pack(">I6", tonumber(ARGV[index + 1])), ARGV[index]) end
  names[count] = ARGV[index]
end
call("HINCRBY", KEYS[9], "change", 1)
changed = true
if tasks then tasks.conclude() end
local answer = pack(">I6", count)
finish(answer, table.concat(names, "\0"))
return answer
