--[[
Run: the last part of the scripts that change queues. It runs a list of operations, each with its own answer.
ARGV  4 operations, each: kind (1 byte), group of its queue (2), length (4) and body
Result  per operation: length (4) and answer
Atomic as one script; an operation that fails does so before its first write and leaves the others alone.
]]
for group = 1, (#KEYS - 10) / 13 do
  local good, queue = pcall(load, group)
  queues[group] = queue
  if not good then queues[group] = { fault = type(queue) == "table" and queue.err or tostring(queue) } end
end

local operations, position, size = ARGV[4], 1, #ARGV[4]
local answers, kept, n = {}, {}, 0

if stored then
  local at = 1
  while position <= size do
    local kind, group, length, answerLength
    kind, group, length, position = read(">BI2I4", operations, position)
    answerLength, at = read(">I4", stored, at)
    local answer = sub(stored, at, at + answerLength - 1)
    if replays[kind] and queues[group] and not queues[group].fault and byte(answer) == 0 then answer = replays[kind](queues[group], position, position + length, answer) end
    n = n + 1
    answers[n] = pack(">I4", #answer) .. answer
    position, at = position + length, at + answerLength
  end
  return table.concat(answers)
end

local isMixed = false
while position <= size do
  local kind, group, length
  kind, group, length, position = read(">BI2I4", operations, position)
  local queue, answer, keep = queues[group], "\1", nil
  if queue then
    -- Among others, what grows must know of a full memory before something is removed, which would let it pass.
    local good = true
    if length < size - 7 and not isMixed then
      isMixed = true
      good, answer = pcall(begin)
    end
    if queue.fault then
      good, answer = false, queue.fault
    elseif good then
      good, answer, keep = pcall(transitions[kind], queue, position, position + length)
    end
    if not good then
      local text = type(answer) == "table" and answer.err or tostring(answer)
      -- These say that the server takes no writes now: nothing was written, and the whole call is to be repeated.
      local word = string.match(text, "^%-?(%u+)")
      if not changed and (word == "READONLY" or word == "MISCONF" or word == "NOREPLICAS" or word == "MASTERDOWN") then return redis.error_reply(text) end
      answer, keep = "\4" .. text, nil
    end
  elseif kind == 24 then
    -- Nothing of a queue that is gone is due.
    call("ZREM", KEYS[2], read(">I6", operations, position + 4))
  end
  keep = keep or answer
  n = n + 2
  answers[n - 1], answers[n] = pack(">I4", #answer), answer
  kept[n - 1], kept[n] = keep == answer and answers[n - 1] or pack(">I4", #keep), keep
  position = position + length
end

if tasks then tasks.conclude() end
if changed or begun or isRepeat then
  local names = {}
  for index = 1, #queues do
    if queues[index] and queues[index].changed then names[#names + 1] = sub(queues[index].record, 94) end
  end
  local fault = finish(table.concat(kept), table.concat(names, "\0"))
  if fault then return fault end
end
return table.concat(answers)
