--[[
Dequeue (kind 3): hands out the oldest available messages, pending -> processing. Follows settle.lua.
Body    number of messages wanted by all calls (4 bytes), then per call: token of its deliveries (6), limit (2), lease in ms (4), flags (1;
        bit 0: has a request id, then it is the only call), [length (1) and request id]
Answer  0, then per call: status (1; 0 done, 1 this request id was used with other arguments, 2 more may be available, ask again),
        token (6), number of messages (2), per message: delivery count (4), length (4) and entry
        3: so much is due that this run only made a part of it available
Kept    for a repeat: the same with places (6 each) instead of messages; the repeat reads those still held with the token
Atomic because a message is at no instant in neither or in both of pending and processing.
]]
-- A message of a task is handed out.
local function handOut(owner)
  if owner.started == 1 then return end
  owner.started = 1
  tasks.touch(owner)
end

-- What stands in the way of handing out the head of the list, one after the other: messages that came back, records of others.
local function harvestWithCare(queue, wanted, places, entries, states)
  local HANDED_OUT_BYTES = 8388608
  local PENDING, BODIES, STATES, RETURNED = 2, 3, 4, 5
  local memory, base = useMemory(), queue.base
  local n, bytes, dropped = #places, 0, 0
  check(queue, STATES, 10, 11, 12, 13)
  local life = sub(queue.record, 10, 15)
  -- Whether any task has messages here.
  if #call("ZRANGEBYLEX", KEYS[8], "[\0" .. life, "[\0" .. life .. string.rep("\255", 7), "LIMIT", 0, 1) > 0 then useTasks().check() end
  for index = 1, n do bytes = bytes + #entries[index] end

  local function reap(place, entry, count, id, reason, task, number)
    if task ~= "" then
      local owner = useTasks().find(task)
      if owner and owner.number ~= read(">I6", number) then owner = false end
      if owner and memory.cancelling(task) then
        dropped = dropped + 1
        return memory.withdraw(queue, owner, place, id)
      end
      if tasks.isOpen(owner) then
        handOut(owner)
      else
        -- Somebody took the record of its task away.
        entry = memory.give(queue, entry, "")
      end
    end
    n = n + 1
    places[n], entries[n] = place, entry
    states[n] = (count > 1 or id ~= "" or reason ~= "") and memory.makeState(count, id, reason, "")
    bytes = bytes + #entry
  end

  local function reapHead()
    local entry = call("LPOP", KEYS[base + PENDING])
    if not entry then return false end
    changed, queue.changed = true, true
    local place, id, task, _, number = memory.examine(queue, entry)
    if place then reap(place, entry, 1, id, "", task, number) else memory.quarantine(queue, entry) end
    return true
  end

  local function reapReturned(place)
    call("ZREM", KEYS[base + RETURNED], place)
    changed, queue.changed = true, true
    local entry = call("HGET", KEYS[base + BODIES], place)
    local state = call("HGET", KEYS[base + STATES], place)
    local count, id, reason, task = memory.readState(state, 0)
    local found, chosen, owner, number, _
    if entry then found, chosen, owner, _, number = memory.examine(queue, entry) end
    if found == place then
      reap(place, entry, count + 1, chosen, reason, owner, number)
      -- What was delivered once and has nothing else to tell needs no state.
      if state and n > 0 and places[n] == place and not states[n] then states[n] = memory.makeState(count + 1, chosen, reason, "") end
    else
      memory.bury(queue, place, count, id, entry and 2 or 3, reason, task, entry and memory.wrap(place, task, entry) or nil)
    end
  end

  local head
  while n < wanted and bytes < HANDED_OUT_BYTES and dropped < 1000 do
    local place = call("ZRANGE", KEYS[base + RETURNED], 0, 0)[1]
    if place and head == nil then
      local entry = call("LINDEX", KEYS[base + PENDING], 0)
      local own = entry and memory.examine(queue, entry)
      head = entry and (own and read(">I6", own) or 0) or false
    end
    if place and not (head and head < read(">I6", place)) then
      reapReturned(place)
    else
      head = nil
      if not reapHead() then break end
    end
  end
end

-- Looks whether tasks can be worked with. If not, what was taken from the list goes back to it.
local function secureTasks(queue, entries, popped, index)
  local good, fault = pcall(useTasks)
  if good then return end
  local back, n = {}, 0
  for later = #popped, index, -1 do
    n = n + 1
    back[n] = popped[later]
  end
  for earlier = #entries, 1, -1 do
    n = n + 1
    back[n] = entries[earlier]
  end
  spread("LPUSH", KEYS[queue.base + 2], back, n, 1)
  error(fault, 0)
end

-- What `claim` found last: messages of one task often follow each other.
local lastPart, lastOwner

-- The state of an entry with a chosen id or a task, or false if it needs none, and its task; or nothing when it needs care; or that it was
-- removed since its task is cancelling.
local function claim(queue, entry, flags)
  local at, state = flags > 1 and 21 or 15, false
  if flags % 2 == 1 then
    local length = byte(entry, at) or 0
    if length == 0 or #entry < at + length then return end
    state, at = "\0\0\0\1" .. sub(entry, at, at + length), at + 1 + length
    if flags == 1 then return state end
  end
  local length = flags < 4 and byte(entry, at)
  if not length or length == 0 or #entry < at + length then return end
  local part = sub(entry, at, at + length)
  if part == lastPart then return state, lastOwner end
  local owner = useTasks().find(sub(part, 2))
  if not owner or owner.status > 0 or owner.number ~= read(">I6", entry, 15) then return end
  if owner.cancelling == 1 then
    useMemory().withdraw(queue, owner, sub(entry, 2, 7), state and sub(state, 6) or "")
    return nil, owner, true
  end
  lastPart, lastOwner = part, owner
  return state, owner
end

-- The head of the list, several at a time. Stops at a record that needs care, whose entry it gives back to the list.
local function harvest(queue, wanted, hasReturned)
  local HANDED_OUT_BYTES, HANDED_OUT, PENDING, LARGEST = 8388608, 2000, 2, 58
  local places, entries, states, bytes, dropped = {}, {}, {}, 0, 0
  if wanted > HANDED_OUT then wanted = HANDED_OUT end
  if hasReturned then
    harvestWithCare(queue, wanted, places, entries, states)
    return places, entries, states
  end
  while #places < wanted and bytes < HANDED_OUT_BYTES and dropped < 1000 do
    -- `largest` bounds what one command may bring into memory.
    local count = math.min(wanted - #places, math.max(1, math.floor((HANDED_OUT_BYTES - bytes) / (field(queue, LARGEST) + 64))))
    local popped = call("LPOP", KEYS[queue.base + PENDING], count)
    if not popped then break end
    changed, queue.changed = true, true
    local n = #places
    for index = 1, #popped do
      local entry = popped[index]
      local magic, place, flags
      if #entry >= 14 then magic, place, flags = read("Bc6xxxxxxB", entry) end
      local state, owner, isDropped
      if magic == 1 and flags > 1 and not tasks then secureTasks(queue, entries, popped, index) end
      if magic == 1 and flags > 0 then state, owner, isDropped = claim(queue, entry, flags) end
      if isDropped then
        dropped = dropped + 1
      elseif magic == 1 and (flags == 0 or state ~= nil) then
        if owner then handOut(owner) end
        n = n + 1
        places[n], entries[n], states[n] = place, entry, state
        bytes = bytes + #entry
      else
        -- It is none of ours: what was not looked at yet goes back to the head, and each is taken with care.
        local back, m = {}, 0
        for later = #popped, index, -1 do
          m = m + 1
          back[m] = popped[later]
        end
        call("LPUSH", KEYS[queue.base + PENDING], unpack(back, 1, m))
        harvestWithCare(queue, wanted, places, entries, states)
        return places, entries, states
      end
    end
    if #popped < count then
      set(queue, LARGEST, 0)
      break
    end
  end
  return places, entries, states
end

-- Writes the deliveries of a harvest: one command per collection.
local function hold(queue, n, places, entries, states, leases, held)
  local BODIES, STATES, LEASES, HELD, DELIVERED = 3, 4, 8, 9, 28
  local base, bodies, changes, b, c = queue.base, {}, {}, 0, 0
  for index = 1, n do
    local place, state = places[index], states[index]
    b = b + 2
    bodies[b - 1], bodies[b] = place, entries[index]
    if state then
      c = c + 2
      changes[c - 1], changes[c] = place, state
    end
  end
  spread("HSET", KEYS[base + BODIES], bodies, b, 2)
  spread("ZADD", KEYS[base + LEASES], leases, n * 2, 2)
  -- Where somebody spoilt these two, the messages are in processing all the same, and their leases bring them back.
  pcall(spread, "ZADD", KEYS[base + HELD], held, n * 2, 2)
  if c > 0 then pcall(spread, "HSET", KEYS[base + STATES], changes, c, 2) end
  set(queue, DELIVERED, field(queue, DELIVERED) + n)
end

transitions[3] = function(queue, position, stop)
  local PENDING, BODIES, RETURNED, LEASES, MEMORY, FORGET, DUE_AT_ONCE = 2, 3, 5, 8, 12, 13, 1000
  readClock()
  local wake = wakeOf(queue)
  if wake > 0 and wake <= now then
    local _, _, more, nextMoment = settle(queue, DUE_AT_ONCE)
    if more then return "\3" end
    -- Nothing is written for the sake of this alone; the sweep does it.
    if changed and nextMoment ~= wake then setWake(queue, nextMoment) end
  end

  local operations, wanted = ARGV[4], read(">I4", ARGV[4], position)
  position = position + 4
  local requestId, arguments
  if byte(operations, position + 12) % 2 == 1 then
    check(queue, MEMORY, FORGET)
    requestId, arguments = sub(operations, position + 14, stop - 1), sub(operations, position + 6, position + 12)
    local record = call("HGET", KEYS[queue.base + MEMORY], "r" .. requestId)
    if record then
      local untilMs, known, at = read(">I6c7", record)
      if untilMs > nowMs then
        if known ~= arguments then return "\0\1" .. string.rep("\0", 8) end
        return "\0" .. sub(record, at), "\0\0" .. sub(record, at + 1, at + 6) .. "\0\0"
      end
    end
  end

  local returned = call("ZCARD", KEYS[queue.base + RETURNED])
  local available = call("LLEN", KEYS[queue.base + PENDING]) + returned
  local places, entries, states, total = {}, {}, {}, 0
  if available > 0 then
    -- What is handed out must arrive in these two: seen before anything is taken.
    call("HLEN", KEYS[queue.base + BODIES])
    call("ZCARD", KEYS[queue.base + LEASES])
    places, entries, states = harvest(queue, wanted, returned > 0)
    total = #places
  end
  local pieces, kept, p, k, first = { "\0" }, { "\0" }, 1, 1, 1
  local leases, held, l, lastLease, ends, soonest, countedState, count = {}, {}, 0, -1, nil, nil, nil, "\0\0\0\1"
  while position < stop do
    local token, limit, leaseMs = read(">c6I2I4", operations, position)
    position = requestId and stop or position + 13
    local final = first + limit - 1
    if final > total then final = total end
    -- Empty means that nothing is available, not that this run reached its bound.
    local head = pack(">Bc6I2", (final < first and available > total) and 2 or 0, token, final - first + 1)
    p, k = p + 1, k + 1
    pieces[p], kept[k] = head, head
    if final >= first then
      if leaseMs ~= lastLease then
        lastLease = leaseMs
        ends = string.format("%.0f", now + leaseMs * 1000)
        if not soonest or leaseMs < soonest then soonest = leaseMs end
      end
      for index = first, final do
        local place, entry, state = places[index], entries[index], states[index]
        local holding = place .. token
        if byte(entry, 14) > 1 then holding = holding .. sub(entry, 15, 20) end
        l = l + 2
        leases[l - 1], leases[l], held[l - 1], held[l] = ends, holding, "0", holding
        if state ~= countedState then
          countedState, count = state, state and sub(state, 1, 4) or "\0\0\0\1"
        end
        pieces[p + 1], pieces[p + 2] = count .. pack(">I4", #entry), entry
        p, k = p + 2, k + 1
        kept[k] = place
      end
      first = final + 1
    end
  end
  local answer = table.concat(pieces)
  if total > 0 then
    hold(queue, total, places, entries, states, leases, held)
    attend(queue, now + soonest * 1000)
    if requestId then
      local untilMs = nowMs + read(">I6", header, 8)
      call("HSET", KEYS[queue.base + MEMORY], "r" .. requestId, pack(">I6", untilMs) .. arguments .. sub(answer, 2))
      call("ZADD", KEYS[queue.base + FORGET], string.format("%.0f", untilMs * 1000), "r" .. requestId)
      attend(queue, untilMs * 1000)
    end
  end
  return answer, table.concat(kept)
end

-- A repeat: the same answer, read anew from what is still held with the token; what is not was recovered and is another's.
replays[3] = function(queue, position, stop, kept)
  local BODIES, STATES, LEASES, MEMORY = 3, 4, 8, 12
  local memory, at, pieces = useMemory(), 2, { "\0" }
  if byte(ARGV[4], position + 16) % 2 == 1 then
    local record = call("HGET", KEYS[queue.base + MEMORY], "r" .. sub(ARGV[4], position + 18, stop - 1))
    if record and byte(kept, 2) == 0 then return "\0" .. sub(record, 14) end
  end
  while at <= #kept do
    local status, token, count = read(">Bc6I2", kept, at)
    at = at + 9
    local head, found = #pieces + 1, 0
    for index = 0, count - 1 do
      local place = sub(kept, at + index * 6, at + index * 6 + 5)
      local entry = call("HGET", KEYS[queue.base + BODIES], place)
      local number = entry and #entry > 20 and byte(entry, 14) > 1 and sub(entry, 15, 20) or ""
      if entry and call("ZSCORE", KEYS[queue.base + LEASES], place .. token .. number) then
        found = found + 1
        local deliveries = memory.readState(call("HGET", KEYS[queue.base + STATES], place), 1)
        pieces[head + found] = pack(">I4I4", deliveries, #entry) .. entry
      end
    end
    -- All of it was recovered meanwhile: "empty" would be wrong while others are available, so that the caller asks anew.
    pieces[head] = pack(">Bc6I2", count > 0 and found == 0 and 2 or status, token, found)
    at = at + count * 6
  end
  return table.concat(pieces)
end
