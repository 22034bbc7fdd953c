--[[
Plain ack: as ack.lua, of messages without a state. Follows plain-begin.lua.
KEYS  3 bodies, 4 states, 5 leases, 6 held
Atomic because the check of the token and the removal are one step.
]]
local n = #body / 18
if n == 0 or n > 2000 or call("HLEN", KEYS[4]) > 0 then return "" end
local holdings, places = {}, {}
for index = 1, n do
  local at = index * 18 - 17
  holdings[index], places[index] = sub(body, at, at + 11), sub(body, at, at + 5)
end
if n > 1 then
  -- Some stale, or twice the same: each needs an answer of its own.
  local seen, scores = {}, call("ZMSCORE", KEYS[5], unpack(holdings))
  for index = 1, n do
    if not scores[index] or seen[holdings[index]] then return "" end
    seen[holdings[index]] = true
  end
end
-- With this they are removed; where somebody spoilt the next two keys, only rubbish stays behind.
if call("ZREM", KEYS[5], unpack(holdings)) == 0 then return "\0\0" end
redis.pcall("ZREM", KEYS[6], unpack(holdings))
redis.pcall("HDEL", KEYS[3], unpack(places))
call("SETRANGE", KEYS[2], 33, pack(">I6", read(">I6", record, 34) + n))
local answer = "\0" .. string.rep("\1", n)
