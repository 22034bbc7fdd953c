--[[
Dequeue (kind 3): hands out the oldest available messages, pending -> processing. Follows enqueue.lua.
Body    per call: token of its deliveries (6 bytes), limit (2), lease in ms (4), flags (1; bit 0: has a request id),
        with it: length (1) and request id
Answer  DONE, then per call: 0 (or 1: this request id was used with other arguments; 2: more may be available, ask again) (1),
        number of messages (2), per message: token (6), delivery count (4), length (4) and entry.
        AGAIN: so much is due that this run only made a part of it available.
Kept    for a repeat: the same with places (6 each) instead of messages; the repeat reads those still held with the token.
Atomic because a message is at no instant in neither or in both of pending and processing.
]]
local HANDED_OUT_BYTES, HANDED_OUT, DUE_AT_ONCE = 8388608, 2000, 1000

-- What one run hands out, collected so that each key is written with one command.
local function newHarvest()
  return { n = 0, bytes = 0, places = {}, counts = {}, entries = {}, ids = {}, reasons = {}, returned = {} }
end

local function reap(harvest, place, count, entry, id, reason, returned)
  local n = harvest.n + 1
  harvest.n = n
  harvest.bytes = harvest.bytes + #entry
  harvest.places[n], harvest.counts[n], harvest.entries[n], harvest.ids[n], harvest.reasons[n], harvest.returned[n] =
    place, count, entry, id, reason, returned
end

-- Takes up to `want` from the head of the list. A record that is none of ours goes to the dead letters, and the next one is taken.
local function reapList(queue, harvest, want)
  local key = KEYS[queue.base + PENDING]
  while harvest.n < want and harvest.bytes < HANDED_OUT_BYTES do
    -- `largest` bounds what one command may bring into memory.
    local count = want - harvest.n
    local fit = floor((HANDED_OUT_BYTES - harvest.bytes) / (queue.largest + 64))
    if fit < 1 then fit = 1 end
    if count > fit then count = fit end
    local entries = call("LPOP", key, count)
    local got = entries and #entries or 0
    for index = 1, got do
      local entry = entries[index]
      local place, id = examine(queue, entry)
      if place then
        reap(harvest, place, 1, entry, id, "", false)
      else
        queue.sequence = queue.sequence + 1
        place = pack(">I6", queue.sequence)
        bury(queue, place, 0, "", 2, "", "\1" .. place .. pack(">I6B", nowMs, 0) .. entry)
      end
    end
    if got > 0 then note(queue) end
    if got < count then
      queue.largest = 0
      return
    end
  end
end

-- Takes one returned message, whose body and state lie in hashes.
local function reapReturned(queue, harvest, place)
  call("ZREM", KEYS[queue.base + RETURNED], place)
  note(queue)
  local entry = call("HGET", KEYS[queue.base + BODIES], place)
  local count, id, reason = readState(call("HGET", KEYS[queue.base + STATES], place))
  local found, chosen
  if entry then found, chosen = examine(queue, entry) end
  if found ~= place then
    bury(queue, place, count, id, entry and 2 or 3, reason, entry and ("\1" .. place .. pack(">I6B", nowMs, 0) .. entry) or nil)
    return
  end
  reap(harvest, place, count + 1, entry, chosen, reason, true)
end

local function harvestFrom(queue, want)
  local harvest = newHarvest()
  local base = queue.base
  while harvest.n < want and harvest.bytes < HANDED_OUT_BYTES do
    local places = call("ZRANGE", KEYS[base + RETURNED], 0, 99)
    if #places == 0 then
      reapList(queue, harvest, want)
      break
    end
    local index, head = 1, nil
    while index <= #places and harvest.n < want and harvest.bytes < HANDED_OUT_BYTES do
      if head == nil then
        local entry = call("LINDEX", KEYS[base + PENDING], 0)
        local place = entry and examine(queue, entry)
        head = entry and (place and read(">I6", place) or 0) or false
      end
      if head and head < read(">I6", places[index]) then
        reapList(queue, harvest, harvest.n + 1)
        head = nil
      else
        reapReturned(queue, harvest, places[index])
        index = index + 1
      end
    end
  end
  return harvest
end

-- Writes deliveries first .. final of a harvest with one token and lease.
local function hold(queue, harvest, first, final, token, leaseMs)
  local base, n, fresh = queue.base, 0, 0
  local ends = format("%.0f", now + leaseMs * 1000)
  local plain = makeState(token, 1, "", "")
  local bodies, states, leases, held = {}, {}, {}, {}
  for index = first, final do
    local place, id = harvest.places[index], harvest.ids[index]
    n = n + 2
    states[n - 1] = place
    leases[n - 1], leases[n], held[n - 1], held[n] = ends, place, "0", place
    if harvest.returned[index] then
      states[n] = makeState(token, harvest.counts[index], id, harvest.reasons[index])
    else
      fresh = fresh + 2
      bodies[fresh - 1], bodies[fresh] = place, harvest.entries[index]
      states[n] = id == "" and plain or makeState(token, 1, id, "")
    end
  end
  if fresh > 0 then spread("HSET", KEYS[base + BODIES], bodies, fresh, 2) end
  spread("HSET", KEYS[base + STATES], states, n, 2)
  spread("ZADD", KEYS[base + LEASES], leases, n, 2)
  spread("ZADD", KEYS[base + HELD], held, n, 2)
  queue.delivered = queue.delivered + n / 2
  attend(queue, now + leaseMs * 1000)
end

local function recallRequest(queue, id)
  local record = call("HGET", KEYS[queue.base + MEMORY], "r" .. id)
  if not record then return end
  local untilMs, arguments, position = read(">I6c7", record)
  if untilMs > nowMs then return arguments, sub(record, position) end
end

local function rememberRequest(queue, id, arguments, answer)
  local untilMs = nowMs + rememberMs
  call("HSET", KEYS[queue.base + MEMORY], "r" .. id, pack(">I6", untilMs) .. arguments .. answer)
  call("ZADD", KEYS[queue.base + FORGET], format("%.0f", untilMs * 1000), "r" .. id)
  attend(queue, untilMs * 1000)
end

-- The calls of one operation. What is wanted is only what no remembered answer covers, so that all that is taken is handed out.
local function parseCalls(queue, position, stop)
  local operations, calls, wanted = ARGV[4], {}, 0
  while position < stop do
    local one = { arguments = sub(operations, position + 6, position + 12) }
    local flags
    one.token, one.limit, one.leaseMs, flags, position = read(">c6I2I4B", operations, position)
    if flags % 2 == 1 then
      one.requestId, position = read("Bc0", operations, position)
      one.known, one.answer = recallRequest(queue, one.requestId)
    end
    if not one.known then wanted = wanted + one.limit end
    calls[#calls + 1] = one
  end
  return calls, wanted > HANDED_OUT and HANDED_OUT or wanted
end

transitions[3] = function(queue, position, stop)
  local _, _, more = settle(queue, DUE_AT_ONCE)
  if more then return AGAIN end
  local calls, wanted = parseCalls(queue, position, stop)
  local available = call("LLEN", KEYS[queue.base + PENDING]) + call("ZCARD", KEYS[queue.base + RETURNED])
  local harvest
  if wanted > 0 and available > 0 then
    check(queue, BODIES, STATES, LEASES, HELD, DEAD, GRAVES, MEMORY, FORGET)
    begin()
    harvest = harvestFrom(queue, wanted)
  else
    harvest = newHarvest()
  end
  local pieces, kept, p, k, first = {}, {}, 0, 0, 1
  for index = 1, #calls do
    local one = calls[index]
    p, k = p + 1, k + 1
    if one.known then
      local conflict = one.known ~= one.arguments
      pieces[p] = conflict and "\1\0\0" or one.answer
      kept[k] = conflict and "\1\0\0" or "\0\0\0"
    else
      local final = first + one.limit - 1
      if final > harvest.n then final = harvest.n end
      local count, from = final - first + 1, p
      -- Empty means that nothing is available, not that this run reached its bound.
      pieces[p] = pack(">BI2", (count == 0 and available > harvest.n) and 2 or 0, count)
      kept[k] = pieces[p]
      for at = first, final do
        local entry = harvest.entries[at]
        pieces[p + 1], pieces[p + 2] = one.token .. pack(">I4I4", harvest.counts[at], #entry), entry
        p, k = p + 2, k + 1
        kept[k] = harvest.places[at]
      end
      if count > 0 then
        hold(queue, harvest, first, final, one.token, one.leaseMs)
        first = final + 1
        if one.requestId then rememberRequest(queue, one.requestId, one.arguments, concat(pieces, "", from, p)) end
      end
    end
  end
  return DONE .. concat(pieces), DONE .. concat(kept)
end

-- A repeat: the same answer, read anew from what is still held with the token; what is not was recovered and is another's.
replays[3] = function(queue, position, stop, kept)
  local operations, at, pieces = ARGV[4], 2, { DONE }
  while position < stop do
    local token, _, _, flags
    token, _, _, flags, position = read(">c6I2I4B", operations, position)
    local requestId
    if flags % 2 == 1 then requestId, position = read("Bc0", operations, position) end
    local status, count = read(">BI2", kept, at)
    at = at + 3
    local _, answer
    if requestId and status == 0 then _, answer = recallRequest(queue, requestId) end
    if answer then
      pieces[#pieces + 1] = answer
    else
      local head, found = #pieces + 1, 0
      for index = 0, count - 1 do
        local place = sub(kept, at + index * 6, at + index * 6 + 5)
        local state = call("HGET", KEYS[queue.base + STATES], place)
        local entry = state and sub(state, 1, 6) == token and call("HGET", KEYS[queue.base + BODIES], place)
        if entry then
          found = found + 1
          pieces[head + found] = token .. pack(">I4I4", (readState(state)), #entry) .. entry
        end
      end
      pieces[head] = pack(">BI2", status, found)
    end
    at = at + count * 6
  end
  return concat(pieces)
end
