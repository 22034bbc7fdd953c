--[[
Run: the last part of the scripts that change queues. It runs a list of operations, each with its own answer.
ARGV  4 operations, each: kind (1 byte), group of its queue (2), length (4) and body
Result  per operation: length (4) and answer; first byte 0 done, 1 queue gone, 2 memory full, 3 ask again, 4 failed (text follows)
Atomic as one script; an operation that fails does so before its first write and leaves the others alone.
]]
for group = 1, (#KEYS - KEYS_BEFORE) / KEYS_OF_QUEUE do
  queues[group] = load(group)
end

local operations = ARGV[4]
local position, size = 1, #operations
local answers, kept, n = {}, {}, 0

if stored then
  local at = 1
  while position <= size do
    local kind, group, length, answerLength
    kind, group, length, position = read(">BI2I4", operations, position)
    answerLength, at = read(">I4", stored, at)
    local answer = sub(stored, at, at + answerLength - 1)
    if replays[kind] and queues[group] and sub(answer, 1, 1) == DONE then
      answer = replays[kind](queues[group], position, position + length, answer)
    end
    answers[#answers + 1] = pack(">I4", #answer) .. answer
    position, at = position + length, at + answerLength
  end
  return concat(answers)
end

while position <= size do
  local kind, group, length
  kind, group, length, position = read(">BI2I4", operations, position)
  local queue, answer, keep = queues[group], GONE, nil
  if not queue and kind == 24 then
    -- Nothing of a queue that is gone is due.
    call("ZREM", KEYS[2], read(">I6", operations, position + 4))
  elseif queue then
    local good
    good, answer, keep = pcall(transitions[kind], queue, position, position + length)
    if not good then
      if refused then return redis.error_reply(refused) end
      answer, keep = FAILED .. (type(answer) == "table" and answer.err or tostring(answer)), nil
    end
  end
  keep = keep or answer
  n = n + 2
  answers[n - 1], answers[n] = pack(">I4", #answer), answer
  kept[n - 1], kept[n] = keep == answer and answers[n - 1] or pack(">I4", #keep), keep
  position = position + length
end

local names = {}
for _, queue in ipairs(queues) do
  if queue and queue.dirty then
    save(queue)
    names[#names + 1] = queue.name
  end
end
finish(concat(kept), concat(names, "\0"))
return concat(answers)
