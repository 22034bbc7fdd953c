--[[
Enqueue (kind 1): stores messages without chosen ids and delays at the end of their queue. Follows queue.lua.
Body    bytes of the largest entry of this operation (4), then per message: length (4) and rest of the entry, from its flags on
Answer  0, sequence of the first stored (6); the others follow it in a row. 2: nothing stored, the memory is full.
Atomic because all messages of a call are stored in a row.
]]
transitions[1] = function(queue, position, stop)
  local PENDING, SEQUENCE, LARGEST = 2, 16, 58
  if full then return "\2" end
  readClock()
  local operations, entries, n = ARGV[4], {}, 0
  local largest = read(">I4", operations, position)
  position = position + 4
  local sequence, stamp = field(queue, SEQUENCE), pack(">I6", nowMs)
  while position < stop do
    local tail
    tail, position = read(">I4c0", operations, position)
    n = n + 1
    entries[n] = pack(">BI6", 1, sequence + n) .. stamp .. tail
  end
  if n > 0 then
    -- The first write tells whether the memory is full: then nothing has been stored.
    local first = redis.pcall("RPUSH", KEYS[queue.base + PENDING], unpack(entries, 1, math.min(n, 4000)))
    if type(first) == "table" then
      if string.find(first.err, "OOM", 1, true) then return "\2" end
      error(first.err, 0)
    end
    for from = 4001, n, 4000 do call("RPUSH", KEYS[queue.base + PENDING], unpack(entries, from, math.min(n, from + 3999))) end
    -- Sequence and enqueued stand side by side.
    queue[SEQUENCE], queue[22] = sequence + n, field(queue, 22) + n
    call("SETRANGE", KEYS[queue.base + 1], SEQUENCE - 1, pack(">I6I6", queue[SEQUENCE], queue[22]))
    changed, queue.changed = true, true
    if largest > field(queue, LARGEST) then set(queue, LARGEST, largest) end
  end
  return "\0" .. pack(">I6", sequence + 1)
end
