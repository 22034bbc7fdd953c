--[[
Cancel a task (kind 44): marks it, and removes its pending messages, a bounded number. Follows memory.lua.
Body    length (1 byte) and id; 1 to mark it, 0 to go on with one that is marked (1); how many messages to look at (4); length (2) and reason; then
        per group: life of its queue (6)
Answer  0, messages removed (4), whether more are left (1); task. 5: there is no such task
Atomic because what it removes leaves the counts of queue and task together. Messages of the list lie in a row: those of the task are taken out
by moving the others before and between them to where returned messages have their places, so that their order stays.
]]

-- The delayed ones (phase 1), then the returned ones (2): what becomes due in between is among the latter.
local function searchSet(queue, task, own, bound)
  local STATES, RETURNED, DELAYED, LATER = 4, 5, 6, 7
  local base, memory, key = queue.base, useMemory(), own.phase == 1 and LATER or RETURNED
  local from = own.cursor == 0 and "-" or "(" .. pack(">I6", own.cursor)
  local places = call("ZRANGEBYLEX", KEYS[base + key], from, "[" .. pack(">I6", own.last), "LIMIT", 0, bound)
  local states, removed = #places > 0 and call("HMGET", KEYS[base + STATES], unpack(places)), 0
  for index = 1, #places do
    local _, id, _, owner = memory.readState(states[index], 0)
    if owner == task.id then
      call("ZREM", KEYS[base + key], places[index])
      if key == LATER then call("ZREM", KEYS[base + DELAYED], places[index]) end
      memory.withdraw(queue, task, places[index], id)
      removed = removed + 1
    end
  end
  if #places < bound then
    own.phase, own.cursor = own.phase + 1, 0
  else
    own.cursor = read(">I6", places[#places])
  end
  return removed, #places
end

local function searchList(queue, task, own, bound)
  local PENDING, BODIES, STATES, RETURNED, LARGEST, MOVED_BYTES = 2, 3, 4, 5, 58, 8388608
  local base, memory = queue.base, useMemory()
  local first = call("LINDEX", KEYS[base + PENDING], 0)
  local place = first and memory.examine(queue, first)
  if not first or (place and read(">I6", place) > own.last) then
    own.phase = 4
    return 0, 0
  end
  local count = math.min(bound, math.max(1, math.floor(MOVED_BYTES / (field(queue, LARGEST) + 64))))
  local popped = call("LPOP", KEYS[base + PENDING], count)
  changed, queue.changed = true, true
  local bodies, states, places, back, removed = {}, {}, {}, {}, 0
  for index = 1, #popped do
    local entry = popped[index]
    local at, id, owner = memory.examine(queue, entry)
    -- Those of another task that is cancelling go too: its own search may have been through the returned ones already.
    local cancelling = at and memory.cancelling(owner)
    if not at then
      memory.quarantine(queue, entry)
    elseif cancelling then
      memory.withdraw(queue, cancelling, at, id)
      if cancelling == task then removed = removed + 1 end
    elseif read(">I6", at) > own.last then
      back[#back + 1] = entry
    else
      bodies[#bodies + 1], bodies[#bodies + 2] = at, entry
      places[#places + 1], places[#places + 2] = "0", at
      if id ~= "" or owner ~= "" then states[#states + 1], states[#states + 2] = at, memory.makeState(0, id, "", owner) end
    end
  end
  for index = #back, 1, -1 do call("LPUSH", KEYS[base + PENDING], back[index]) end
  if #bodies > 0 then
    call("HSET", KEYS[base + BODIES], unpack(bodies))
    call("ZADD", KEYS[base + RETURNED], unpack(places))
  end
  if #states > 0 then call("HSET", KEYS[base + STATES], unpack(states)) end
  return removed, #popped
end

transitions[44] = function(position)
  local DUE, SEARCHES, request = 6, 10, ARGV[4]
  local id, marks, bound, reason
  id, marks, bound, reason, position = read(">Bc0BI4I2c0", request, position)
  local task = useTasks().find(id)
  if not task then return "\5\0" .. id end
  if task.status > 0 or (task.cancelling == 0 and marks == 0) then return "\0\0\0\0\0\0", task end
  for group = 1, #queues do
    local queue = queues[group]
    if queue and not queue.fault then check(queue, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13) end
  end
  -- A write that removes comes first, since a full memory then lets the others pass.
  call("ZREM", KEYS[DUE], "c" .. id)
  if task.cancelling == 0 then
    tasks.seal(task)
    task.cancelling = 1
    if reason ~= "" then tasks.blame(task, 6, reason) end
  end
  local removed = 0
  for group = 1, #queues do
    local queue, life = queues[group], sub(request, position, position + 5)
    position = position + 6
    local own = tasks.countAt(pack(">I6", task.number), life)
    if not queue then
      -- It went without its messages being counted: they are not there any more.
      if own then own.phase, own.isChanged = 4, true end
    elseif own and not queue.fault and bound > 0 then
      if own.phase == 0 then own.phase = 1 end
      own.isChanged = true
      while bound > 0 and own.phase < 4 and own.count > 0 do
        local found, seen = (own.phase < 3 and searchSet or searchList)(queue, task, own, bound)
        removed, bound = removed + found, bound - seen
      end
      -- Those in processing are left to whoever holds them.
      if own.count <= 0 then own.phase = 4 end
    end
  end
  changed = true
  tasks.judge(task)
  local more = 0
  for _, own in ipairs(tasks.countsOf(task)) do
    if own.phase < 4 and own.count > 0 then more = 1 end
  end
  if more == 1 then
    tasks.attend("c", id, now)
    call("SADD", KEYS[SEARCHES], id)
  else
    call("SREM", KEYS[SEARCHES], id)
  end
  return "\0" .. pack(">I4B", removed, more), task
end
