--[[
Next due: how long until a dequeue could find something merely because time passed. Changes nothing.
KEYS  1 record (string), 2 pending (list), 3 returned, 4 delayed, 5 leases (sorted sets)
ARGV  1 id of the store
Result  nothing when the queue is gone; empty when there is no such moment; else milliseconds, rounded up (6 bytes)
Atomic because it compares several collections.
]]
local call, pack = redis.call, struct.pack
local record = call("GET", KEYS[1])
if not record or string.sub(record, 2, 9) ~= ARGV[1] then return false end
if call("LLEN", KEYS[2]) + call("ZCARD", KEYS[3]) > 0 then return pack(">I6", 0) end
local time = call("TIME")
local now, nearest = time[1] * 1000000 + time[2], nil
for key = 4, 5 do
  local moment = tonumber(call("ZRANGE", KEYS[key], 0, 0, "WITHSCORES")[2])
  if moment and (not nearest or moment < nearest) then nearest = moment end
end
return nearest and pack(">I6", math.max(0, math.ceil((nearest - now) / 1000))) or ""
