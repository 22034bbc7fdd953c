--[[
Plain enqueue: as enqueue.lua. Follows plain-begin.lua.
KEYS  3 pending
Atomic because all messages of a call are stored in a row.
]]
local sequence, enqueued = read(">I6I6", record, 16)
local largest, position = read(">I4", body)
local time = call("TIME")
local stamp = pack(">I6", time[1] * 1000 + math.floor(time[2] / 1000))
local entries, n, size = {}, 0, #body
while position <= size do
  local tail
  tail, position = read(">I4c0", body, position)
  n = n + 1
  entries[n] = pack(">BI6", 1, sequence + n) .. stamp .. tail
end
if n == 0 or n > 4000 then return "" end
-- The first write: where it is refused, nothing has been stored.
if type(redis.pcall("RPUSH", KEYS[3], unpack(entries, 1, n))) == "table" then return "" end
call("SETRANGE", KEYS[2], 15, pack(">I6I6", sequence + n, enqueued + n))
if largest > (read(">I6", record, 58)) then call("SETRANGE", KEYS[2], 57, pack(">I6", largest)) end
local answer = "\0" .. pack(">I6", sequence + 1)
