--[[
Ack (kind 4, by receipt; kind 5, by id): removes messages in processing. Follows dequeue.lua.
Body    kind 4: per item place (6 bytes) and token (6)
        kind 5: per item length (1) and chosen id, or 0 and place (6)
Answer  DONE, per item 1 removed or 0 not: stale, not in processing
Atomic because the check of the token and the removal are one step. Removal comes first: it is allowed when the memory is full.
]]
local SLICE = 2000

-- Removes messages, all of them in processing.
local function removeHeld(queue, places, states)
  local base = queue.base
  check(queue, LEASES, HELD, BODIES, MEMORY, FORGET)
  begin()
  call("ZREM", KEYS[base + LEASES], unpack(places))
  call("ZREM", KEYS[base + HELD], unpack(places))
  call("HDEL", KEYS[base + BODIES], unpack(places))
  call("HDEL", KEYS[base + STATES], unpack(places))
  for index = 1, #places do
    local state = states[index]
    local length = byte(state, 11)
    if length > 0 then turn(queue, sub(state, 12, 11 + length), SETTLED) end
  end
  queue.acked = queue.acked + #places
  note(queue)
end

-- The states of those of `places` whose current delivery has the token beside it; each place counts once.
local function current(queue, places, tokens)
  local states, good, seen = call("HMGET", KEYS[queue.base + STATES], unpack(places)), {}, {}
  for index = 1, #places do
    local state, place = states[index], places[index]
    if state and #state >= 11 and sub(state, 1, 6) == tokens[index] and not seen[place] then
      good[index], seen[place] = state, true
    end
  end
  return good
end

local function ackSlice(queue, places, tokens, outcomes)
  local count = #places
  local good = current(queue, places, tokens)
  local acked, states = {}, {}
  for index = 1, count do
    if good[index] then
      acked[#acked + 1], states[#states + 1] = places[index], good[index]
      outcomes[#outcomes + 1] = "\1"
    else
      outcomes[#outcomes + 1] = "\0"
    end
  end
  if #acked > 0 then removeHeld(queue, acked, states) end
end

transitions[4] = function(queue, position, stop)
  local operations, outcomes = ARGV[4], { DONE }
  while position < stop do
    local places, tokens, n = {}, {}, 0
    while position < stop and n < SLICE do
      n = n + 1
      places[n], tokens[n], position = read("c6c6", operations, position)
    end
    ackSlice(queue, places, tokens, outcomes)
  end
  return concat(outcomes)
end

transitions[5] = function(queue, position, stop)
  local operations, outcomes = ARGV[4], { DONE }
  while position < stop do
    local length, place = byte(operations, position), nil
    if length == 0 then
      place = sub(operations, position + 1, position + 6)
      position = position + 7
    else
      local state, known = recall(queue, sub(operations, position + 1, position + length))
      if state == UNACKED then place = known end
      position = position + 1 + length
    end
    local outcome = "\0"
    if place and call("ZSCORE", KEYS[queue.base + LEASES], place) then
      local state = call("HGET", KEYS[queue.base + STATES], place)
      if not state or #state < 11 then state = makeState(NO_TOKEN, 0, "", "") end
      removeHeld(queue, { place }, { state })
      outcome = "\1"
    end
    outcomes[#outcomes + 1] = outcome
  end
  return concat(outcomes)
end
