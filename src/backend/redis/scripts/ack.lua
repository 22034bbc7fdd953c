--[[
Ack by receipt (kind 4): removes messages in processing. Follows memory.lua.
Body    per item: place (6 bytes), token (6) and number of its task, or 0 (6)
Answer  0, per item 1 removed or 0 stale
Atomic because the check of the token and the removal are one step. Removal comes first: it is allowed when the memory is full.
]]
-- Removes messages by their holdings, which are different, and in leases unless there is only one. Answers whether they were.
local function removeHeld(queue, holdings, n)
  local BODIES, STATES, LEASES, HELD, ACKED = 3, 4, 8, 9, 34
  local base, places = queue.base, {}
  for index = 1, n do places[index] = sub(holdings[index], 1, 6) end
  -- Few messages have a state: those with a chosen id, and those that came back before.
  local states = call("HLEN", KEYS[base + STATES]) > 0 and call("HMGET", KEYS[base + STATES], unpack(places, 1, n))
  local done, lastNumber, owner
  for index = 1, n do
    local holding = holdings[index]
    if #holding > 12 then
      local number = sub(holding, 13)
      if number ~= lastNumber then
        lastNumber, owner = number, nil
        local id = useTasks().idIn(queue, holding)
        if id ~= "" then owner = tasks.find(id) end
        if owner and owner.status > 0 then owner = nil end
      end
      if owner then
        done = done or {}
        done[owner] = (done[owner] or 0) + 1
      end
    end
  end
  -- With this they are removed; where somebody spoilt the next two keys, only rubbish stays behind.
  if call("ZREM", KEYS[base + LEASES], unpack(holdings, 1, n)) == 0 then return false end
  changed, queue.changed = true, true
  redis.pcall("ZREM", KEYS[base + HELD], unpack(holdings, 1, n))
  redis.pcall("HDEL", KEYS[base + BODIES], unpack(places, 1, n))
  if states then
    call("HDEL", KEYS[base + STATES], unpack(places, 1, n))
    for index = 1, n do
      local state = states[index]
      local length = state and byte(state, 5)
      if length and length > 0 then
        local memory = useMemory()
        memory.turn(queue, sub(state, 6, 5 + length), memory.SETTLED)
      end
    end
  end
  for task, count in pairs(done or {}) do tasks.settle(queue, task, count) end
  set(queue, ACKED, field(queue, ACKED) + n)
  return true
end

local function ackHoldings(queue, holdings, n)
  if n == 1 then return removeHeld(queue, holdings, 1) and "\1" or "\0" end
  local scores = call("ZMSCORE", KEYS[queue.base + 8], unpack(holdings, 1, n))
  local good, m, seen, outcomes = holdings, 0, {}, nil
  for index = 1, n do
    local holding = holdings[index]
    if scores[index] and not seen[holding] then
      seen[holding] = true
      m = m + 1
      if outcomes then good[m], outcomes[index] = holding, "\1" end
    else
      if not outcomes then
        -- The first that is stale: from here on each gets its own answer.
        good, outcomes = {}, {}
        for before = 1, index - 1 do good[before], outcomes[before] = holdings[before], "\1" end
      end
      outcomes[index] = "\0"
    end
  end
  if m > 0 then removeHeld(queue, good, m) end
  return outcomes and table.concat(outcomes) or string.rep("\1", n)
end

transitions[4] = function(queue, position, stop)
  local SLICE = 2000
  local operations, answer = ARGV[4], "\0"
  while position < stop do
    local holdings, n = {}, 0
    while position < stop and n < SLICE do
      n = n + 1
      local hasTask = sub(operations, position + 12, position + 17) ~= "\0\0\0\0\0\0"
      holdings[n] = sub(operations, position, position + (hasTask and 17 or 11))
      position = position + 18
    end
    answer = answer .. ackHoldings(queue, holdings, n)
  end
  return answer
end
