--[[
Ack and forward (kind 8): removes messages in processing and stores what they forward. Follows ack.lua and enqueue-special.lua. Uses other
groups too.
Body    number of groups used (2 bytes) and these groups (2 each), which must all exist; number of tasks (2), per task length (1) and id, which must
        take work where they get a message; then per item: place, token and number of its task, or 0 (18), number of forwards (2),
        per forward: group of its queue (2), length (4) and body of an enqueue of kind 2
Answer  0, per item 0 stale, or 1 and per forward: length (4) and answer of the enqueue
        1: one of the queues is missing, nothing changed. 2: the memory is full, nothing changed. 5: a task takes no more work, likewise.
Atomic because any follow-up exists if, and only if, its source is removed.
]]
transitions[8] = function(queue, position, stop)
  local PENDING, BODIES, STATES, DELAYED, LATER, LEASES, HELD, MEMORY, FORGET = 2, 3, 4, 6, 7, 8, 9, 12, 13
  local operations, pieces = ARGV[4], { "\0" }
  local groups = read(">I2", operations, position)
  position = position + 2
  for _ = 1, groups do
    local target = queues[read(">I2", operations, position)]
    if not target then return "\1" end
    check(target, PENDING, BODIES, STATES, DELAYED, LATER, MEMORY, FORGET)
    position = position + 2
  end
  check(queue, LEASES, HELD, BODIES, STATES, MEMORY, FORGET)
  local refused
  refused, position = refusalOf(position)
  if refused then
    refused = nil
    local at = position
    while at < stop and not refused do
      local forwards = read(">I2", operations, at + 18)
      at = at + 20
      for _ = 1, forwards do
        local group, length
        group, length, at = read(">I2I4", operations, at)
        refused = refused or refusalIn(queues[group], at, at + length)
        at = at + length
      end
    end
    if refused then return refused end
  end
  begin()
  if full then return "\2" end
  while position < stop do
    local holding, forwards
    holding, forwards, position = read(">c18I2", operations, position)
    if sub(holding, 13) == "\0\0\0\0\0\0" then holding = sub(holding, 1, 12) end
    local outcome = ackHoldings(queue, { holding }, 1)
    pieces[#pieces + 1] = outcome
    for _ = 1, forwards do
      local group, length
      group, length, position = read(">I2I4", operations, position)
      if outcome == "\1" then
        local answer = transitions[2](queues[group], position, position + length)
        pieces[#pieces + 1] = pack(">I4", #answer) .. answer
      end
      position = position + length
    end
  end
  return table.concat(pieces)
end
