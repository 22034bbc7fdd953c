--[[
Nack and release (kind 6), extend (kind 7). Follows ack.lua.
Body    kind 6: per item place (6 bytes), token (6), flags (1; bit 0: give up, bit 1: release, which does not count as a
                delivery, bit 2: keep the reason there was),
                delay in ms (6), length (2) and reason
        kind 7: per item place (6), token (6), lease in ms (4)
Answer  DONE, per item 0 stale, 1 pending again (or extended), 2 moved to the dead letters
Atomic because a message leaves processing and arrives in pending or among the dead letters in one step.
]]
local function giveBack(queue, place, state, flags, delayMs, reason)
  local base = queue.base
  local count, id, before = readState(state)
  local giveUp, released = flags % 2 == 1, floor(flags / 2) % 2 == 1
  if flags >= 4 then reason = before end
  begin()
  call("ZREM", KEYS[base + LEASES], place)
  call("ZREM", KEYS[base + HELD], place)
  note(queue)
  if giveUp or (not released and queue.maxDeliveries > 0 and count >= queue.maxDeliveries) then
    bury(queue, place, count, id, giveUp and 0 or 1, reason)
    return "\2"
  end
  if released then count = math.max(0, count - 1) end
  call("HSET", KEYS[base + STATES], place, makeState(NO_TOKEN, count, id, reason))
  if delayMs > 0 then
    local due = now + delayMs * 1000
    call("ZADD", KEYS[base + DELAYED], format("%.0f", due), place)
    call("ZADD", KEYS[base + LATER], "0", place)
    attend(queue, due)
  else
    call("ZADD", KEYS[base + RETURNED], "0", place)
  end
  queue.returned = queue.returned + 1
  return "\1"
end

transitions[6] = function(queue, position, stop)
  check(queue, BODIES, STATES, LEASES, HELD, RETURNED, DELAYED, LATER, DEAD, GRAVES, MEMORY, FORGET)
  local operations, outcomes = ARGV[4], { DONE }
  while position < stop do
    local place, token, flags, delayMs, reason
    place, token, flags, delayMs, reason, position = read(">c6c6BI6I2c0", operations, position)
    local state = call("HGET", KEYS[queue.base + STATES], place)
    local good = state and #state >= 11 and sub(state, 1, 6) == token
    outcomes[#outcomes + 1] = good and giveBack(queue, place, state, flags, delayMs, reason) or "\0"
  end
  return concat(outcomes)
end

transitions[7] = function(queue, position, stop)
  check(queue, STATES, LEASES)
  local operations, outcomes = ARGV[4], { DONE }
  local key = KEYS[queue.base + LEASES]
  while position < stop do
    local place, token, leaseMs
    place, token, leaseMs, position = read(">c6c6I4", operations, position)
    local state = call("HGET", KEYS[queue.base + STATES], place)
    local good = state and #state >= 11 and sub(state, 1, 6) == token
    if good then
      begin()
      -- Removed first, for the sake of a full memory.
      if full then call("ZREM", key, place) end
      call("ZADD", key, format("%.0f", now + leaseMs * 1000), place)
      attend(queue, now + leaseMs * 1000)
      note(queue)
    end
    outcomes[#outcomes + 1] = good and "\1" or "\0"
  end
  return concat(outcomes)
end
