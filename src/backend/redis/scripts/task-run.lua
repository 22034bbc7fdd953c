--[[
Task run: the last part of the script that changes tasks themselves. It runs one operation.
KEYS    the last one: meta (hash) of the namespace
ARGV  4 operation: kind (1 byte) and body
Result  the answer, of which each file tells; a task in it is: length (1) and id, length (4) and record, length (4) and texts. CHANGED: another
        store has this namespace now, nothing happened.
Atomic as one script; an operation that fails does so before its first write.
]]
if stored then return stored end
if call("HGET", KEYS[#KEYS], "store") ~= ARGV[2] then return redis.error_reply("CHANGED another store has this namespace now") end
for group = 1, math.floor((#KEYS - 9) / 14) do
  local good, queue = pcall(load, group)
  queues[group] = queue
  if not good then queues[group] = { fault = type(queue) == "table" and queue.err or tostring(queue) } end
end
useTasks().check()
local good, answer, task, rest = pcall(transitions[byte(ARGV[4])], 2)
if not good then
  local text = type(answer) == "table" and answer.err or tostring(answer)
  if changed then error(text, 0) end
  return redis.error_reply(text)
end
tasks.conclude()
if task then
  local texts = call("HGET", KEYS[4], task.id) or ""
  answer = answer .. pack(">B", #task.id) .. task.id .. pack(">I4", #task.record) .. task.record .. pack(">I4", #texts) .. texts .. (rest or "")
end
local names = {}
for index = 1, #queues do
  if queues[index] and queues[index].changed then names[#names + 1] = sub(queues[index].record, 94) end
end
finish(answer, table.concat(names, "\0"))
return answer
