--[[
Make a task (kind 40) with its first messages. Follows enqueue-owned.lua and enqueue-special.lua.
Body    length (1 byte) and id, or 0 to make one; 1 if sealed (1); token of the producer (6), its lease in ms (4); how long the task is kept, in
        ms, as completed (6), failed (6), cancelled (6); length (4) and texts; then per batch: group of its queue (2), kind (1), length (4) and body of an
        enqueue of kind 2 or 9, whose messages leave out the id of their task
Answer  0 done, 0 made or 1 there is one of that id; task; per batch: length (4) and answer of the enqueue. 1: one of the queues is missing.
Atomic because a task must not be seen without its messages, nor these without it.
]]
transitions[40] = function(position, stop)
  local TEXTS, ORDER, PENDING, BODIES, STATES, DELAYED, LATER, MEMORY, FORGET = 4, 5, 2, 3, 4, 6, 7, 12, 13
  local request, book = ARGV[4], useTasks()
  local id, sealed, token, leaseMs, keep, texts
  id, sealed, token, leaseMs, keep, texts, position = read(">Bc0Bc6I4c18I4c0", request, position)
  local existing = id ~= "" and book.find(id)
  if existing then return "\0\1", existing end
  for group = 1, #queues do
    if not queues[group] then return "\1" end
    if queues[group].fault then error(queues[group].fault, 0) end
    check(queues[group], PENDING, BODIES, STATES, DELAYED, LATER, MEMORY, FORGET)
  end
  begin()
  if full then error("OOM the memory of the server is full", 0) end
  local number = call("HINCRBY", KEYS[#KEYS], "task", 1)
  if id == "" then
    local digits, left = "", number
    repeat
      local digit = left % 36
      digits, left = sub("0123456789abcdefghijklmnopqrstuvwxyz", digit + 1, digit + 1) .. digits, (left - digit) / 36
    until left == 0
    id = "t-" .. ARGV[2] .. "-" .. digits
  end
  local task = book.make(id, number, sealed, pack(">I6", nowMs) .. token .. keep)
  call("HSET", KEYS[TEXTS], id, texts)
  call("ZADD", KEYS[ORDER], string.format("%.0f", number), id)
  if sealed == 0 then book.attend("p", id, now + leaseMs * 1000) end
  local pieces = {}
  while position < stop do
    local group, kind, length
    group, kind, length, position = read(">I2BI4", request, position)
    local answer = (kind == 9 and enqueueOwned or transitions[2])(queues[group], position, position + length, id)
    pieces[#pieces + 1] = pack(">I4", #answer) .. answer
    position = position + length
  end
  return "\0\0", task, table.concat(pieces)
end
