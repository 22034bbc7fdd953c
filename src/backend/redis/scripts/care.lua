--[[
Care: the rarer changes of a queue: clear (kind 20), configure (21), redrive (22), drop (23), sweep (24). Follows settle.lua.
Body    20: nothing. 21: deliveries at most (4 bytes), or 4294967295 to leave it. 22, 23: per item length (1) and chosen id, or 0 and
        place (6). 24: most messages to recover (4), life (6)
Answer  20: 0, pending (6), processing (6). 21: 0, deliveries at most (4). 22, 23: 0, per item 1 done or 0 not found
        24: 0, recovered (4), dead (4), whether more is due (1). 21 and 22 may also be 2: the memory is full, nothing changed.
Atomic because nobody may see a queue half cleared, nor a message both dead and pending. Keys are unlinked, which frees them outside the
server's main thread; so a clear costs the same for ten messages and for a million, and grows only with the number of tasks that had some.
]]
transitions[20] = function(queue)
  local PENDING, RETURNED, DELAYED, LEASES, HELD, LARGEST, CLEARS, CLEARED = 2, 5, 6, 8, 9, 58, 72, 78
  local TASK_QUEUES, life = 8, sub(queue.record, 10, 15)
  local base = queue.base
  local pending = call("LLEN", KEYS[base + PENDING]) + call("ZCARD", KEYS[base + RETURNED]) + call("ZCARD", KEYS[base + DELAYED])
  local processing = call("ZCARD", KEYS[base + LEASES])
  local hasTasks = #call("ZRANGEBYLEX", KEYS[TASK_QUEUES], "[\0" .. life, "[\0" .. life .. string.rep("\255", 7), "LIMIT", 0, 1) > 0
  if hasTasks then useTasks().check() end
  for key = PENDING, HELD do call("UNLINK", KEYS[base + key]) end
  -- Ids chosen for what was cleared count as settled from here on, by this number.
  set(queue, CLEARS, field(queue, CLEARS) + 1)
  set(queue, CLEARED, field(queue, CLEARED) + pending + processing)
  set(queue, LARGEST, 0)
  if hasTasks then tasks.lose(life, sub(queue.record, 94)) end
  return "\0" .. pack(">I6I6", pending, processing)
end

transitions[21] = function(queue, position)
  local MAX_DELIVERIES = 84
  local asked, is = read(">I4", ARGV[4], position), read(">I4", queue.record, MAX_DELIVERIES)
  if asked == 4294967295 or asked == is then return "\0" .. pack(">I4", is) end
  begin()
  if full then return "\2" end
  call("SETRANGE", KEYS[queue.base + 1], MAX_DELIVERIES - 1, pack(">I4", asked))
  changed, queue.changed = true, true
  return "\0" .. pack(">I4", asked)
end

-- Entry, chosen id and task id of a dead letter that was taken from its grave, whose task does not have it among its failures any more; the
-- task is the one that owned it, if that is still there.
local function readGrave(queue, memory, place, grave)
  local at = grave and #grave >= 13 and byte(grave) >= 16 and 24 or 12
  local entry, id, task
  if grave and #grave > at then
    entry = sub(grave, at + 2 + (read(">I2", grave, at)))
    local found, chosen, owner = memory.examine(queue, entry)
    if found then id, task = chosen, owner else entry = nil end
  end
  if at == 24 then
    useTasks().unbury(sub(grave, 12, 23), sub(queue.record, 10, 15), place)
    local owner = task and task ~= "" and tasks.find(task)
    if not owner or owner.number ~= read(">I6", grave, 12) then task = nil end
  elseif task then
    task = nil
  end
  return entry or memory.wrap(place, "", ""), id or "", task or ""
end

-- Takes the dead letters that a list of ids names from their graves, and gives each to `change`.
local function eachDead(queue, position, stop, change)
  local BODIES, STATES, RETURNED, DEAD, GRAVES, MEMORY, FORGET = 3, 4, 5, 10, 11, 12, 13
  local operations, outcomes, base, memory = ARGV[4], { "\0" }, queue.base, useMemory()
  check(queue, BODIES, STATES, RETURNED, DEAD, GRAVES, MEMORY, FORGET)
  while position < stop do
    local length, place = byte(operations, position), nil
    if length == 0 then
      place = sub(operations, position + 1, position + 6)
      position = position + 7
    else
      local state, known = memory.recall(queue, sub(operations, position + 1, position + length))
      if state == memory.BURIED then place = known end
      position = position + 1 + length
    end
    local outcome, grave = "\0", place and call("HGET", KEYS[base + GRAVES], place)
    if grave and #grave > 0 and byte(grave) >= 16 then useTasks().check() end
    if place and call("ZREM", KEYS[base + DEAD], place) == 1 then
      changed, queue.changed = true, true
      call("HDEL", KEYS[base + GRAVES], place)
      change(base, memory, place, readGrave(queue, memory, place, grave))
      outcome = "\1"
    end
    outcomes[#outcomes + 1] = outcome
  end
  return table.concat(outcomes)
end

transitions[22] = function(queue, position, stop)
  local BODIES, STATES, RETURNED = 3, 4, 5
  begin()
  if full then return "\2" end
  return eachDead(queue, position, stop, function(base, memory, place, entry, id, task)
    local _, _, written = memory.examine(queue, entry)
    local owner = task ~= "" and tasks.find(task)
    if tasks and tasks.isOpen(owner) then tasks.revive(queue, owner, place) else task = "" end
    -- After the end of its task it belongs to none.
    if written ~= task then entry = memory.give(queue, entry, task) end
    call("HSET", KEYS[base + BODIES], place, entry)
    call("HSET", KEYS[base + STATES], place, memory.makeState(0, id, "", task))
    call("ZADD", KEYS[base + RETURNED], "0", place)
    memory.turn(queue, id, memory.UNACKED)
  end)
end

transitions[23] = function(queue, position, stop)
  return eachDead(queue, position, stop, function(_, memory, _, _, id) memory.turn(queue, id, memory.SETTLED) end)
end

-- Forgets ids and requests whose time has passed. An id whose message is not gone is looked at again a minute later.
local function forgetDue(queue, bound)
  local MEMORY, FORGET, LATER_MICROSECONDS = 12, 13, 60000000
  local base, memory = queue.base, useMemory()
  local names = call("ZRANGEBYSCORE", KEYS[base + FORGET], "-inf", string.format("%.0f", now), "LIMIT", 0, bound)
  if #names == 0 then return false end
  check(queue, MEMORY)
  local again, n = {}, 0
  for index = 1, #names do
    local name = names[index]
    if byte(name) == 105 and memory.recall(queue, sub(name, 2)) then
      n = n + 2
      again[n - 1], again[n] = string.format("%.0f", now + LATER_MICROSECONDS), name
    else
      memory.forget(queue, name)
      changed = true
    end
  end
  if n == 0 then return #names == bound end
  if not changed then begin() end
  if full and not changed then return false end
  spread("ZADD", KEYS[base + FORGET], again, n, 2)
  changed = true
  return #names == bound
end

transitions[24] = function(queue, position)
  local bound = read(">I4", ARGV[4], position)
  readClock()
  local forgotten = forgetDue(queue, bound)
  local recovered, dead, more, nextMoment = settle(queue, bound)
  more = more or forgotten
  if not more and nextMoment ~= wakeOf(queue) then
    if not changed then begin() end
    if changed or not full then
      setWake(queue, nextMoment)
      changed = true
    end
  end
  return "\0" .. pack(">I4I4B", recovered, dead, more and 1 or 0)
end
