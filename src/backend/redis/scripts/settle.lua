--[[
Settle: makes available what became due: ended leases go back to their places (or to the dead letters when their deliveries are used
up), delayed messages whose time has come take theirs. Follows memory.lua. Bounded; answers whether more is due.
Atomic because a dequeue must not look past a message that is available at that moment.
]]
local function recoverEnded(queue, bound)
  local base = queue.base
  local places = call("ZRANGEBYSCORE", KEYS[base + LEASES], "-inf", nowText, "LIMIT", 0, bound)
  local count = #places
  if count == 0 then return 0, 0 end
  check(queue, BODIES, STATES, RETURNED, HELD, DEAD, GRAVES, MEMORY, FORGET)
  local states = call("HMGET", KEYS[base + STATES], unpack(places))
  begin()
  call("ZREM", KEYS[base + LEASES], unpack(places))
  call("ZREM", KEYS[base + HELD], unpack(places))
  note(queue)
  local back, changes, n, dead = {}, {}, 0, 0
  for index = 1, count do
    local place = places[index]
    local deliveries, id, reason = readState(states[index])
    if queue.maxDeliveries > 0 and deliveries >= queue.maxDeliveries then
      bury(queue, place, deliveries, id, 1, reason)
      dead = dead + 1
    else
      n = n + 2
      back[n - 1], back[n] = "0", place
      changes[n - 1], changes[n] = place, makeState(NO_TOKEN, deliveries, id, reason)
    end
  end
  if n > 0 then
    spread("ZADD", KEYS[base + RETURNED], back, n, 2)
    spread("HSET", KEYS[base + STATES], changes, n, 2)
  end
  queue.returned = queue.returned + n / 2
  return count, dead
end

local function promoteDue(queue, bound)
  local base = queue.base
  local places = call("ZRANGEBYSCORE", KEYS[base + DELAYED], "-inf", nowText, "LIMIT", 0, bound)
  local count = #places
  if count == 0 then return 0 end
  check(queue, RETURNED, LATER)
  begin()
  call("ZREM", KEYS[base + DELAYED], unpack(places))
  call("ZREM", KEYS[base + LATER], unpack(places))
  note(queue)
  local back = {}
  for index = 1, count do
    back[index * 2 - 1], back[index * 2] = "0", places[index]
  end
  spread("ZADD", KEYS[base + RETURNED], back, count * 2, 2)
  return count
end

-- Recovered, dead, and whether more is due now.
local function settle(queue, bound)
  if queue.wake == 0 or queue.wake > now then return 0, 0, false end
  local recovered, dead = recoverEnded(queue, bound)
  local promoted = promoteDue(queue, bound)
  if recovered == bound or promoted == bound then return recovered, dead, true end
  -- Nothing is due any more: the next moment is the first of what remains.
  local nextWake = 0
  for _, key in ipairs({ LEASES, DELAYED, FORGET }) do
    local first = call("ZRANGE", KEYS[queue.base + key], 0, 0, "WITHSCORES")
    local moment = first[2] and tonumber(first[2])
    if moment and (nextWake == 0 or moment < nextWake) then nextWake = moment end
  end
  if nextWake ~= queue.wake then
    begin()
    if changed or not full then queue.wake, queue.dirty = nextWake, true end
  end
  return recovered, dead, false
end
