--[[
Enqueue (kind 2): stores messages of which some have chosen ids or delays; or also tasks (kind 10). Follows enqueue.lua and memory.lua.
Body    kind 10 begins with the number of tasks (2 bytes), per task length (1) and id. Then, and for kind 2 alone, bytes of the largest entry of
        this operation (4), per message: flags as those of its entry (1 byte), delay in ms (6), fingerprint (20), length (4) and rest of the
        entry, from its flags on, without the numbers of tasks
Answer  0, sequence of the first stored (6), per message 0 stored, 1 repeated, 2 conflict. The stored have sequences in a row.
        2: nothing stored, the memory is full. 5: nothing stored, since a task that was to get a message takes no more work.
Atomic because all messages of a call are stored in a row, and a chosen id and its message together.
]]
-- Reads ids of tasks. Answers with the refusal of the first that takes no more work, if there is one, and where they end.
local function refusalOf(position)
  local operations, refused, count = ARGV[4], nil, read(">I2", ARGV[4], position)
  position = position + 2
  for _ = 1, count do
    local id
    id, position = read(">Bc0", operations, position)
    refused = refused or useTasks().refusal(id)
  end
  return refused, position
end

-- What is not stored needs no task that takes work: a repeat gets the first answer, also after the end of its task. Answers with the refusal of the
-- first task of a body of kind 2 that is to get a message.
local function refusalIn(queue, position, stop)
  local memory, admitted = useMemory(), {}
  check(queue, 12)
  position = position + 4
  while position < stop do
    local flags, id, tail = nil, nil, nil
    flags, tail, position = read(">BxxxxxxxxxxxxxxxxxxxxxxxxxxI4c0", ARGV[4], position)
    local at = 2
    if flags % 2 == 1 then
      id = sub(tail, 3, 2 + byte(tail, 2))
      at = 3 + #id
    end
    if not id or not (admitted[id] or memory.recall(queue, id)) then
      if id then admitted[id] = true end
      local refused = flags > 1 and tasks.refusal(sub(tail, at + 1, at + byte(tail, at)))
      if refused then return refused end
    end
  end
end

-- `made`: the task that this call makes, whose id stands in none of the messages.
transitions[2] = function(queue, position, stop, made)
  local PENDING, BODIES, STATES, DELAYED, LATER, MEMORY, FORGET = 2, 3, 4, 6, 7, 12, 13
  local SEQUENCE, ENQUEUED, LARGEST = 16, 22, 58
  local memory = useMemory()
  check(queue, PENDING, BODIES, STATES, DELAYED, LATER, MEMORY, FORGET)
  begin()
  if full then return "\2" end
  local operations, entries, n, outcomes, owned, firsts, numbers = ARGV[4], {}, 0, {}, {}, {}, {}
  local largest = read(">I4", operations, position)
  position = position + 4
  local first, stamp, base = field(queue, SEQUENCE) + 1, pack(">I6", nowMs), queue.base
  local sequence = first - 1
  while position < stop do
    local flags, delayMs, fingerprint, tail
    flags, delayMs, fingerprint, tail, position = read(">BI6c20I4c0", operations, position)
    local outcome, id, task = "\0", "", ""
    if flags % 2 == 1 then
      id = sub(tail, 3, 2 + byte(tail, 2))
      local state, _, _, known = memory.recall(queue, id)
      if state then outcome = known == fingerprint and "\1" or "\2" end
    end
    if outcome == "\0" then
      sequence = sequence + 1
      local place = pack(">I6", sequence)
      if id ~= "" then
        local untilMs = nowMs + read(">I6", header, 8)
        memory.remember(queue, id, memory.UNACKED, place, untilMs, fingerprint)
        call("ZADD", KEYS[base + FORGET], string.format("%.0f", untilMs * 1000), "i" .. id)
        attend(queue, untilMs * 1000)
      end
      if flags > 1 then
        local at = id == "" and 2 or 3 + #id
        if made then
          task, tail = made, sub(tail, 1, at - 1) .. string.char(#made) .. made .. sub(tail, at)
        else
          task = sub(tail, at + 1, at + byte(tail, at))
        end
        owned[task] = (owned[task] or 0) + 1
        numbers[task] = numbers[task] or pack(">I6", useTasks().find(task).number)
        tail = sub(tail, 1, 1) .. numbers[task] .. sub(tail, 2)
        if delayMs == 0 then firsts[task] = firsts[task] or sequence end
      end
      local entry = "\1" .. place .. stamp .. tail
      if delayMs > 0 then
        local due = now + delayMs * 1000
        call("HSET", KEYS[base + BODIES], place, entry)
        call("HSET", KEYS[base + STATES], place, memory.makeState(0, id, "", task))
        call("ZADD", KEYS[base + DELAYED], string.format("%.0f", due), place)
        call("ZADD", KEYS[base + LATER], "0", place)
        attend(queue, due)
      else
        n = n + 1
        entries[n] = entry
      end
    end
    outcomes[#outcomes + 1] = outcome
  end
  if n > 0 then spread("RPUSH", KEYS[base + PENDING], entries, n, 1) end
  if sequence >= first then
    set(queue, ENQUEUED, field(queue, ENQUEUED) + sequence - first + 1)
    set(queue, SEQUENCE, sequence)
    if largest > field(queue, LARGEST) then set(queue, LARGEST, largest) end
  end
  for task, count in pairs(owned) do tasks.gain(queue, tasks.find(task), count, sequence, firsts[task]) end
  return "\0" .. pack(">I6", first) .. table.concat(outcomes)
end

transitions[10] = function(queue, position, stop)
  local refused, from = refusalOf(position)
  if refused then refused = refusalIn(queue, from, stop) end
  return refused or transitions[2](queue, from, stop)
end
