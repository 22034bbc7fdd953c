--[[
Settle: makes available what became due: ended leases go back to their places (or to the dead letters when their deliveries are used
up, or away when their task is cancelling), delayed messages whose time has come take theirs. Follows memory.lua. Bounded; answers recovered, dead, whether more is due now,
and otherwise the next moment at which something may be due.
Atomic because a dequeue must not look past a message that is available at that moment.
]]
local function settle(queue, bound)
  local BODIES, STATES, RETURNED, DELAYED, LATER, LEASES, HELD, DEAD, GRAVES, MEMORY, FORGET = 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13
  local RETURNED_COUNT, MAX_DELIVERIES = 40, 84
  local base, recovered, dead, promoted = queue.base, 0, 0, 0
  local nowText = string.format("%.0f", now)

  local holdings = call("ZRANGEBYSCORE", KEYS[base + LEASES], "-inf", nowText, "LIMIT", 0, bound)
  recovered = #holdings
  if recovered > 0 then
    check(queue, BODIES, STATES, RETURNED, HELD, DEAD, GRAVES, MEMORY, FORGET)
    local memory, maxDeliveries = useMemory(), read(">I4", queue.record, MAX_DELIVERIES)
    local places = {}
    for index = 1, recovered do places[index] = sub(holdings[index], 1, 6) end
    local states = call("HMGET", KEYS[base + STATES], unpack(places))
    for index = 1, recovered do
      if #holdings[index] > 12 then
        useTasks().check()
        break
      end
    end
    call("ZREM", KEYS[base + LEASES], unpack(holdings))
    changed, queue.changed = true, true
    call("ZREM", KEYS[base + HELD], unpack(holdings))
    local back, changes, n = {}, {}, 0
    for index = 1, recovered do
      local place = places[index]
      local deliveries, id, reason, task = memory.readState(states[index], 1)
      if task == "" and #holdings[index] > 12 then task = tasks.idIn(queue, holdings[index]) end
      local cancelling = memory.cancelling(task)
      if cancelling then
        memory.withdraw(queue, cancelling, place, id)
      elseif maxDeliveries > 0 and deliveries >= maxDeliveries then
        memory.bury(queue, place, deliveries, id, 1, reason, task)
        dead = dead + 1
      else
        n = n + 2
        back[n - 1], back[n] = "0", place
        changes[n - 1], changes[n] = place, memory.makeState(deliveries, id, reason, task)
      end
    end
    if n > 0 then
      spread("ZADD", KEYS[base + RETURNED], back, n, 2)
      spread("HSET", KEYS[base + STATES], changes, n, 2)
      set(queue, RETURNED_COUNT, field(queue, RETURNED_COUNT) + n / 2)
    end
  end

  local places = call("ZRANGEBYSCORE", KEYS[base + DELAYED], "-inf", nowText, "LIMIT", 0, bound)
  promoted = #places
  if promoted > 0 then
    check(queue, RETURNED, LATER)
    call("ZREM", KEYS[base + DELAYED], unpack(places))
    changed, queue.changed = true, true
    call("ZREM", KEYS[base + LATER], unpack(places))
    local back = {}
    for index = 1, promoted do
      back[index * 2 - 1], back[index * 2] = "0", places[index]
    end
    spread("ZADD", KEYS[base + RETURNED], back, promoted * 2, 2)
  end

  if recovered == bound or promoted == bound then return recovered, dead, true end
  local nextMoment = 0
  for _, key in ipairs({ LEASES, DELAYED, FORGET }) do
    local moment = tonumber(call("ZRANGE", KEYS[base + key], 0, 0, "WITHSCORES")[2])
    if moment and (nextMoment == 0 or moment < nextMoment) then nextMoment = moment end
  end
  return recovered, dead, false, nextMoment
end
