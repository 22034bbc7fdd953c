--[[
Task run: the last part of the script that changes tasks themselves. It runs a list of operations, each with its own answer; only one that stands
alone may have queues.
KEYS  the last one: meta (hash) of the namespace
ARGV  4 operations, each: length (4), kind (1 byte) and body
Result  per operation: length (4) and answer, of which each file tells; a task in it is: length (1) and id, length (4) and record, length (4)
        and texts. CHANGED: another store has this namespace now, nothing happened.
Atomic as one script; an operation that fails does so before its first write and leaves the others alone.
]]
if stored then return stored end
if call("HGET", KEYS[#KEYS], "store") ~= ARGV[2] then return redis.error_reply("CHANGED another store has this namespace now") end
for group = 1, math.floor((#KEYS - 11) / 13) do
  local good, queue = pcall(load, group)
  queues[group] = queue
  if not good then queues[group] = { fault = type(queue) == "table" and queue.err or tostring(queue) } end
end
useTasks().check()
local operations, position, size, pieces = ARGV[4], 1, #ARGV[4], {}
while position <= size do
  local length, good, answer, task, rest
  length, position = read(">I4", operations, position)
  local before = changed
  good = true
  -- Among others, what grows must know of a full memory before something is removed, which would let it pass.
  if length < size - 4 then good, answer = pcall(begin) end
  if good then good, answer, task, rest = pcall(transitions[byte(operations, position)], position + 1, position + length) end
  if good then
    tasks.conclude()
    if task then
      local texts, record = call("HGET", KEYS[4], task.id) or "", shownTask(task.id, task.record, KEYS[9], KEYS[8])
      answer = answer .. pack(">B", #task.id) .. task.id .. pack(">I4", #record) .. record .. pack(">I4", #texts) .. texts .. (rest or "")
    end
  else
    local text = type(answer) == "table" and answer.err or tostring(answer)
    if changed and not before then error(text, 0) end
    -- These say that the server takes no writes now: nothing was written, and the whole call is to be repeated.
    local word = string.match(text, "^%-?(%u+)")
    if not changed and (word == "READONLY" or word == "MISCONF" or word == "NOREPLICAS" or word == "MASTERDOWN") then return redis.error_reply(text) end
    answer = "\4" .. text
  end
  pieces[#pieces + 1] = pack(">I4", #answer) .. answer
  position = position + length
end
local names = {}
for index = 1, #queues do
  if queues[index] and queues[index].changed then names[#names + 1] = sub(queues[index].record, 94) end
end
local answer = table.concat(pieces)
local fault = finish(answer, table.concat(names, "\0"))
if fault then return fault end
return answer
