--[[
Ack by id (kind 5): removes messages that are in processing, whoever holds them. Follows ack.lua.
Body    per item: length (1 byte) and chosen id, or 0 and place (6)
Answer  0, per item 1 removed or 0 not in processing
Atomic because a message that went back to pending in between must not be removed.
]]
transitions[5] = function(queue, position, stop)
  local HELD = 9
  local operations, outcomes, memory = ARGV[4], { "\0" }, useMemory()
  while position < stop do
    local length, place = byte(operations, position), nil
    if length == 0 then
      place = sub(operations, position + 1, position + 6)
      position = position + 7
    else
      local state, known = memory.recall(queue, sub(operations, position + 1, position + length))
      if state == memory.UNACKED then place = known end
      position = position + 1 + length
    end
    local holding = place and call("ZRANGEBYLEX", KEYS[queue.base + HELD], "[" .. place, "[" .. place .. string.rep("\255", 6), "LIMIT", 0, 1)[1]
    outcomes[#outcomes + 1] = holding and ackHoldings(queue, { holding }, 1) or "\0"
  end
  return table.concat(outcomes)
end
