--[[
Care: the rarer changes of a queue: clear (kind 20), configure (21), redrive (22), drop (23), sweep (24). Follows settle.lua.
Body    20: nothing. 21: deliveries at most (4 bytes), or 4294967295 to leave it. 22, 23: per item length (1) and chosen id, or 0 and
        place (6). 24: most messages to recover (4), life (6)
Answer  20: DONE, pending (6), processing (6). 21: DONE, deliveries at most (4). 22, 23: DONE, per item 1 done or 0 not found
        24: DONE, recovered (4), dead (4), whether more is due (1). 22 may also be FULL.
Atomic because nobody may see a queue half cleared, nor a message both dead and pending. Keys are unlinked, which frees them outside the
server's main thread; so a clear costs the same for ten messages and for a million.
]]
transitions[20] = function(queue)
  local base = queue.base
  check(queue, PENDING, BODIES, STATES, RETURNED, DELAYED, LATER, LEASES, HELD)
  local pending = call("LLEN", KEYS[base + PENDING]) + call("ZCARD", KEYS[base + RETURNED]) + call("ZCARD", KEYS[base + DELAYED])
  local processing = call("ZCARD", KEYS[base + LEASES])
  begin()
  for key = PENDING, HELD do call("UNLINK", KEYS[base + key]) end
  queue.largest = 0
  -- Ids chosen for what was cleared count as settled from here on, by this number.
  queue.clears = queue.clears + 1
  queue.cleared = queue.cleared + pending + processing
  note(queue)
  return DONE .. pack(">I6I6", pending, processing)
end

transitions[21] = function(queue, position)
  local maxDeliveries = read(">I4", ARGV[4], position)
  if maxDeliveries ~= 4294967295 and maxDeliveries ~= queue.maxDeliveries then
    begin()
    if full then return FULL end
    queue.maxDeliveries = maxDeliveries
    note(queue)
  end
  return DONE .. pack(">I4", queue.maxDeliveries)
end

-- The places of the dead letters that a list of ids names; false where there is none.
local function findDead(queue, position, stop)
  local places, n = {}, 0
  while position < stop do
    local length, place = byte(ARGV[4], position), nil
    if length == 0 then
      place = sub(ARGV[4], position + 1, position + 6)
      position = position + 7
    else
      local state, known = recall(queue, sub(ARGV[4], position + 1, position + length))
      if state == BURIED then place = known end
      position = position + 1 + length
    end
    n = n + 1
    places[n] = place and call("ZSCORE", KEYS[queue.base + DEAD], place) and place or false
  end
  return places, n
end

-- Takes a dead letter from its grave: its entry and its chosen id.
local function exhume(queue, place)
  call("ZREM", KEYS[queue.base + DEAD], place)
  local grave = call("HGET", KEYS[queue.base + GRAVES], place)
  call("HDEL", KEYS[queue.base + GRAVES], place)
  note(queue)
  if not grave or #grave < 13 then return "\1" .. place .. pack(">I6B", nowMs, 0), "" end
  local reasonLength = read(">I2", grave, 12)
  local entry = sub(grave, 14 + reasonLength)
  local _, id = examine(queue, entry)
  return entry, id or ""
end

local function eachDead(queue, position, stop, change)
  check(queue, BODIES, STATES, RETURNED, DEAD, GRAVES, MEMORY, FORGET)
  local places, n = findDead(queue, position, stop)
  local outcomes, seen = {}, {}
  for index = 1, n do
    local place = places[index]
    if place and not seen[place] then
      seen[place] = true
      begin()
      local entry, id = exhume(queue, place)
      change(place, entry, id)
      outcomes[index] = "\1"
    else
      outcomes[index] = "\0"
    end
  end
  return DONE .. concat(outcomes)
end

transitions[22] = function(queue, position, stop)
  return eachDead(queue, position, stop, function(place, entry, id)
    call("HSET", KEYS[queue.base + BODIES], place, entry)
    call("HSET", KEYS[queue.base + STATES], place, makeState(NO_TOKEN, 0, id, ""))
    call("ZADD", KEYS[queue.base + RETURNED], "0", place)
    turn(queue, id, UNACKED)
  end)
end

transitions[23] = function(queue, position, stop)
  return eachDead(queue, position, stop, function(_, _, id) turn(queue, id, SETTLED) end)
end

-- Forgets ids and requests whose time has passed. An id whose message is not gone is looked at again a minute later.
local function forgetDue(queue, bound)
  local base = queue.base
  local fields = call("ZRANGEBYSCORE", KEYS[base + FORGET], "-inf", nowText, "LIMIT", 0, bound)
  if #fields == 0 then return false end
  check(queue, MEMORY)
  begin()
  local again, n = {}, 0
  for index = 1, #fields do
    local field = fields[index]
    if byte(field) == 105 and recall(queue, sub(field, 2)) then
      n = n + 2
      again[n - 1], again[n] = format("%.0f", now + 60000000), field
    else
      forget(queue, field)
      note(queue)
    end
  end
  if n > 0 and (changed or not full) then
    spread("ZADD", KEYS[base + FORGET], again, n, 2)
    note(queue)
  end
  return #fields == bound and (changed or not full)
end

transitions[24] = function(queue, position)
  local bound = read(">I4", ARGV[4], position)
  check(queue, FORGET)
  local forgotten = forgetDue(queue, bound)
  local recovered, dead, more = settle(queue, bound)
  return DONE .. pack(">I4I4B", recovered, dead, (more or forgotten) and 1 or 0)
end
