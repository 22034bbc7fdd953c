--[[
Enqueue (kinds 1 and 2): stores messages at the end of their queue, or as delayed. Follows settle.lua.
Body    largest message of this operation (4 bytes), then per message
        kind 1: length (4) and rest of the entry, from its flags on
        kind 2: 1 when it has a chosen id (1 byte), delay in ms (6), fingerprint (20), length (4) and rest of the entry
Answer  DONE, sequence of the first stored (6); kind 2: per message 0 stored, 1 repeated, 2 conflict. The stored have sequences in a row.
        FULL: nothing stored.
Atomic because all messages of a call are stored in a row, and a chosen id and its message together.
]]
local function append(queue, entries, count)
  if count > 0 then spread("RPUSH", KEYS[queue.base + PENDING], entries, count, 1) end
end

transitions[1] = function(queue, position, stop)
  check(queue, PENDING)
  begin()
  if full then return FULL end
  local operations, sequence, entries, n = ARGV[4], queue.sequence, {}, 0
  local largest = read(">I4", operations, position)
  if largest > queue.largest then queue.largest = largest end
  position = position + 4
  local stamp = pack(">I6", nowMs)
  while position < stop do
    local tail
    tail, position = read(">I4c0", operations, position)
    n = n + 1
    entries[n] = pack(">BI6", 1, sequence + n) .. stamp .. tail
  end
  append(queue, entries, n)
  queue.sequence = sequence + n
  queue.enqueued = queue.enqueued + n
  note(queue)
  return DONE .. pack(">I6", sequence + 1)
end

-- The place of a message among those stored, or what a message with this chosen id was before.
local function judge(queue, id, fingerprint)
  local state, _, _, known = recall(queue, id)
  if not state then return "\0" end
  return known == fingerprint and "\1" or "\2"
end

transitions[2] = function(queue, position, stop)
  check(queue, PENDING, BODIES, DELAYED, LATER, MEMORY, FORGET)
  begin()
  if full then return FULL end
  local operations, entries, n, outcomes = ARGV[4], {}, 0, {}
  local first = queue.sequence + 1
  local largest = read(">I4", operations, position)
  if largest > queue.largest then queue.largest = largest end
  position = position + 4
  local stamp = pack(">I6", nowMs)
  while position < stop do
    local chosen, delayMs, fingerprint, tail
    chosen, delayMs, fingerprint, tail, position = read(">BI6c20I4c0", operations, position)
    local outcome, id = "\0", nil
    if chosen == 1 then
      id = sub(tail, 3, 2 + byte(tail, 2))
      outcome = judge(queue, id, fingerprint)
    end
    if outcome == "\0" then
      queue.sequence = queue.sequence + 1
      local place = pack(">I6", queue.sequence)
      if id then
        local untilMs = nowMs + rememberMs
        remember(queue, id, UNACKED, place, untilMs, fingerprint)
        call("ZADD", KEYS[queue.base + FORGET], format("%.0f", untilMs * 1000), "i" .. id)
        attend(queue, untilMs * 1000)
      end
      local entry = "\1" .. place .. stamp .. tail
      if delayMs > 0 then
        local due = now + delayMs * 1000
        call("HSET", KEYS[queue.base + BODIES], place, entry)
        call("ZADD", KEYS[queue.base + DELAYED], format("%.0f", due), place)
        call("ZADD", KEYS[queue.base + LATER], "0", place)
        attend(queue, due)
      else
        n = n + 1
        entries[n] = entry
      end
      queue.enqueued = queue.enqueued + 1
      note(queue)
    end
    outcomes[#outcomes + 1] = outcome
  end
  append(queue, entries, n)
  return DONE .. pack(">I6", first) .. concat(outcomes)
end
