--[[
Redrive a task (kind 45): makes dead letters of a task pending again, as messages of another or of the same. Follows task-change.lua.
Body    length (1 byte) and id of the task they are of, length (1) and id of the one that is to own them; then per dead letter: group of its queue
        (2), entry of failures (24)
Answer  0, how many became pending again (4), whether there are more (1). 5, 6 as of task-change.lua
Atomic because a message must not be seen both dead and pending, nor counted by both tasks or by none.
]]
transitions[45] = function(position, stop)
  local FAILURES, BODIES, STATES, RETURNED, DEAD, GRAVES, MEMORY, FORGET = 7, 3, 4, 5, 10, 11, 12, 13
  local request, memory = ARGV[4], useMemory()
  local from, into
  from, into, position = read(">Bc0Bc0", request, position)
  local source = useTasks().find(from)
  if not source then return "\5\0" .. from end
  local refused = tasks.refusal(into)
  if refused then return refused end
  local target = tasks.find(into)
  if source ~= target and source.status == 0 then return activeAnswer(source) end
  for group = 1, #queues do
    if queues[group] and queues[group].fault then error(queues[group].fault, 0) end
    if queues[group] then check(queues[group], BODIES, STATES, RETURNED, DEAD, GRAVES, MEMORY, FORGET) end
  end
  begin()
  if full then error("OOM the memory of the server is full", 0) end
  local redriven = 0
  while position < stop do
    local group, entry
    group, entry, position = read(">I2c24", request, position)
    local queue, place = queues[group], sub(entry, 19, 24)
    -- What was dropped, or removed with its queue, is none of its failures any more.
    changed = call("ZREM", KEYS[FAILURES], entry) == 1 or changed
    local grave = queue and call("HGET", KEYS[queue.base + GRAVES], place)
    if grave and sub(grave, 12, 23) == sub(entry, 1, 12) and call("ZREM", KEYS[queue.base + DEAD], place) == 1 then
      queue.changed = true
      call("HDEL", KEYS[queue.base + GRAVES], place)
      local message = sub(grave, 26 + (read(">I2", grave, 24)))
      local found, id, owner = memory.examine(queue, message)
      if not found then message, id, owner = memory.wrap(place, into, ""), "", into end
      if owner ~= into then message = memory.give(queue, message, into) end
      call("HSET", KEYS[queue.base + BODIES], place, message)
      call("HSET", KEYS[queue.base + STATES], place, memory.makeState(0, id, "", into))
      call("ZADD", KEYS[queue.base + RETURNED], "0", place)
      memory.turn(queue, id, memory.UNACKED)
      if source == target then tasks.revive(queue, target, place) else tasks.gain(queue, target, 1, (read(">I6", place))) end
      redriven = redriven + 1
    end
  end
  local number = pack(">I6", source.number)
  local more = #call("ZRANGEBYLEX", KEYS[FAILURES], "[" .. number, "[" .. number .. string.rep("\255", 19), "LIMIT", 0, 1)
  return "\0" .. pack(">I4B", redriven, more)
end
