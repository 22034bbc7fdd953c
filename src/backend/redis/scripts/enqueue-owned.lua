--[[
Enqueue (kind 9): as kind 1, messages of one task, whose entries have its id and no chosen one. Follows enqueue.lua and tasks.lua.
Answer  as of kind 1; or 5: nothing stored, the task takes no more work.
Atomic because the task counts its messages from the step on that stores them.
]]
transitions[9] = function(queue, position, stop)
  local OWNERS = 14
  -- After the size of the largest and the length of the first stand its flags, and then the id.
  local id = read("Bc0", ARGV[4], position + 9)
  local refused = useTasks().refusal(id)
  if refused then return refused end
  call("HLEN", KEYS[queue.base + OWNERS])
  local before = field(queue, 16)
  local answer = transitions[1](queue, position, stop)
  local count = field(queue, 16) - before
  if count > 0 then tasks.gain(queue, tasks.admit(id, count), count, before + count) end
  return answer
end
