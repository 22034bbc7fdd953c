--[[
Enqueue (kind 9): stores messages without chosen ids and delays, of which some belong to tasks. Follows tasks.lua.
Body    bytes of the largest entry of this operation (4), number of tasks (2), per task length (1) and id; then per message: which of these tasks,
        from 1, or 0 for none (2), length (4) and payload
Answer  as of kind 1; or 5: nothing stored, a task takes no more work.
Atomic because all messages of a call are stored in a row, and a task counts its messages from the step on that stores them.
]]
-- `made`: the id of the task that this call makes; it is the only one then.
local function enqueueOwned(queue, position, stop, made)
  local PENDING, SEQUENCE, LARGEST = 2, 16, 58
  local operations, largest, count = ARGV[4], read(">I4I2", ARGV[4], position)
  position = position + 6
  local owners, heads, counts, firsts, lasts = {}, { [0] = "\0" }, {}, {}, {}
  useTasks()
  for index = 1, made and 1 or count do
    local id = made
    if not made then
      id, position = read(">Bc0", operations, position)
      local refused = tasks.refusal(id)
      if refused then return refused end
    end
    local owner = tasks.find(id)
    owners[index], counts[index] = owner, 0
    heads[index] = pack(">BI6B", 2, owner.number, #id) .. id
  end
  if full then return "\2" end
  local entries, n, sequence, stamp = {}, 0, field(queue, SEQUENCE), pack(">I6", nowMs)
  while position < stop do
    local which, data
    which, data, position = read(">I2I4c0", operations, position)
    n = n + 1
    entries[n] = pack(">BI6", 1, sequence + n) .. stamp .. heads[which] .. data
    if which > 0 then counts[which], firsts[which], lasts[which] = counts[which] + 1, firsts[which] or sequence + n, sequence + n end
  end
  if n > 0 then
    -- The first write tells whether the memory is full: then nothing has been stored.
    local first = redis.pcall("RPUSH", KEYS[queue.base + PENDING], unpack(entries, 1, math.min(n, 4000)))
    if type(first) == "table" then
      if string.find(first.err, "OOM", 1, true) then return "\2" end
      error(first.err, 0)
    end
    for from = 4001, n, 4000 do call("RPUSH", KEYS[queue.base + PENDING], unpack(entries, from, math.min(n, from + 3999))) end
    queue[SEQUENCE], queue[22] = sequence + n, field(queue, 22) + n
    call("SETRANGE", KEYS[queue.base + 1], SEQUENCE - 1, pack(">I6I6", queue[SEQUENCE], queue[22]))
    changed, queue.changed = true, true
    if largest > field(queue, LARGEST) then set(queue, LARGEST, largest) end
    for index = 1, #owners do
      if counts[index] > 0 then tasks.gain(queue, owners[index], counts[index], lasts[index], firsts[index]) end
    end
  end
  return "\0" .. pack(">I6", sequence + 1)
end

transitions[9] = function(queue, position, stop) return enqueueOwned(queue, position, stop) end
