--[[
Ack and forward (kind 8): removes messages in processing and stores what they forward. Follows give-back.lua. Uses other groups too.
Body    per item: place (6 bytes), token (6), number of forwards (2), per forward: group of its queue (2), length (4) and body of an
        enqueue of kind 2. Before the items: number of groups used (2) and these groups (2 each), which must all exist.
Answer  DONE, per item 0 stale, or 1 and per forward: length (4) and answer of the enqueue
        GONE: one of the queues is missing, nothing changed. FULL: nothing changed.
Atomic because any follow-up exists if, and only if, its source is removed.
]]
transitions[8] = function(queue, position, stop)
  local operations, pieces = ARGV[4], { DONE }
  local groups = read(">I2", operations, position)
  position = position + 2
  for _ = 1, groups do
    local target = queues[read(">I2", operations, position)]
    if not target then return GONE end
    check(target, PENDING, BODIES, DELAYED, LATER, MEMORY, FORGET)
    position = position + 2
  end
  check(queue, LEASES, HELD, BODIES, STATES, MEMORY, FORGET)
  begin()
  if full then return FULL end
  while position < stop do
    local place, token, forwards
    place, token, forwards, position = read(">c6c6I2", operations, position)
    local outcome = {}
    ackSlice(queue, { place }, { token }, outcome)
    pieces[#pieces + 1] = outcome[1]
    for _ = 1, forwards do
      local group, length
      group, length, position = read(">I2I4", operations, position)
      if outcome[1] == "\1" then
        local answer = transitions[2](queues[group], position, position + length)
        pieces[#pieces + 1] = pack(">I4", #answer) .. answer
      end
      position = position + length
    end
  end
  return concat(pieces)
end
