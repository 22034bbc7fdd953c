--[[
Nack and release (kind 6), extend (kind 7). Follows memory.lua.
Body    kind 6: per item: place, token and number of its task, or 0 (18 bytes), flags (1; bit 0: give up, bit 1: release, which does not count as a delivery, bit 2: keep the
                reason there was), delay in ms (6), length (2) and reason
        kind 7: per item: the same (18), lease in ms (4)
Answer  0, per item 0 stale, 1 pending again (or extended), 2 moved to the dead letters, 3 removed since its task is cancelling
Atomic because a message leaves processing and arrives in pending or among the dead letters in one step. Removal comes first.
]]
local function giveBack(queue, holding, flags, delayMs, reason)
  local STATES, RETURNED, DELAYED, LATER, LEASES, HELD = 4, 5, 6, 7, 8, 9
  local base, memory, place = queue.base, useMemory(), sub(holding, 1, 6)
  local count, id, before, task = memory.readState(call("HGET", KEYS[base + STATES], place), 1)
  if task == "" and #holding > 12 then task = useTasks().idIn(queue, holding) end
  local giveUp, released, maxDeliveries = flags % 2 == 1, math.floor(flags / 2) % 2 == 1, read(">I4", queue.record, 84)
  if flags >= 4 then reason = before end
  local cancelling = memory.cancelling(task)
  if task ~= "" then tasks.check() end
  call("ZREM", KEYS[base + LEASES], holding)
  changed, queue.changed = true, true
  call("ZREM", KEYS[base + HELD], holding)
  if cancelling and not giveUp then
    memory.withdraw(queue, cancelling, place, id)
    return "\3"
  end
  if giveUp or (not released and maxDeliveries > 0 and count >= maxDeliveries) then
    memory.bury(queue, place, count, id, giveUp and 0 or 1, reason, task)
    return "\2"
  end
  if released then count = math.max(0, count - 1) end
  call("HSET", KEYS[base + STATES], place, memory.makeState(count, id, reason, task))
  if delayMs > 0 then
    local due = now + delayMs * 1000
    call("ZADD", KEYS[base + DELAYED], string.format("%.0f", due), place)
    call("ZADD", KEYS[base + LATER], "0", place)
    attend(queue, due)
  else
    call("ZADD", KEYS[base + RETURNED], "0", place)
  end
  set(queue, 40, field(queue, 40) + 1)
  return "\1"
end

transitions[6] = function(queue, position, stop)
  local BODIES, STATES, RETURNED, DELAYED, LATER, LEASES, HELD, DEAD, GRAVES, MEMORY, FORGET = 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13
  check(queue, BODIES, STATES, RETURNED, DELAYED, LATER, LEASES, HELD, DEAD, GRAVES, MEMORY, FORGET)
  local operations, outcomes = ARGV[4], { "\0" }
  while position < stop do
    local holding, flags, delayMs, reason
    holding, flags, delayMs, reason, position = read(">c18BI6I2c0", operations, position)
    if sub(holding, 13) == "\0\0\0\0\0\0" then holding = sub(holding, 1, 12) end
    local isCurrent = call("ZSCORE", KEYS[queue.base + LEASES], holding)
    outcomes[#outcomes + 1] = isCurrent and giveBack(queue, holding, flags, delayMs, reason) or "\0"
  end
  return table.concat(outcomes)
end

transitions[7] = function(queue, position, stop)
  readClock()
  local operations, outcomes = ARGV[4], { "\0" }
  local leases = KEYS[queue.base + 8]
  while position < stop do
    local holding, leaseMs
    holding, leaseMs, position = read(">c18I4", operations, position)
    if sub(holding, 13) == "\0\0\0\0\0\0" then holding = sub(holding, 1, 12) end
    local outcome = "\0"
    if call("ZSCORE", leases, holding) then
      -- Removed first, since a full memory refuses a write that may grow unless one that removes came before.
      call("ZREM", leases, holding)
      call("ZADD", leases, string.format("%.0f", now + leaseMs * 1000), holding)
      changed, queue.changed = true, true
      attend(queue, now + leaseMs * 1000)
      outcome = "\1"
    end
    outcomes[#outcomes + 1] = outcome
  end
  return table.concat(outcomes)
end
