--[[
Statistics: counts, ages and settings of one queue, at one moment. Changes nothing.
KEYS  1 record (string), 2 pending (list), 3 bodies (hash), 4 returned, 5 delayed, 6 later, 7 leases, 8 held, 9 dead (sorted sets)
ARGV  1 id of the store
Result  nothing when the queue is gone; else 14 numbers (6 bytes each): pending, processing, delayed, dead, enqueued, delivered, acked,
        returned, dead-lettered, cleared, created at in ms, deliveries at most, and two ages in ms plus one: oldest pending, oldest in processing, 0 for none
Atomic because its numbers shall fit together.
]]
local call, pack, read = redis.call, struct.pack, struct.unpack
local record = call("GET", KEYS[1])
if not record or string.sub(record, 2, 9) ~= ARGV[1] then return false end
local time = call("TIME")
local now = time[1] * 1000000 + time[2]
local nowMs = math.floor(now / 1000)

local function ageOf(entry)
  if not entry or #entry < 14 or string.byte(entry) ~= 1 then return 0 end
  return math.max(0, nowMs - read(">I6", entry, 8)) + 1
end
local function ageOfFirst(key)
  local first = call("ZRANGE", key, 0, 0)[1]
  return first and ageOf(call("HGET", KEYS[3], string.sub(first, 1, 6))) or 0
end

local _, _, _, _, enqueued, delivered, acked, returned, deadLettered, _, _, _, _, cleared, maxDeliveries, createdMs =
  read(">Bc8I6I6I6I6I6I6I6I6I6I8I6I6I4I6", record)
local waiting = call("ZCARD", KEYS[5])
local pending = call("LLEN", KEYS[2]) + call("ZCARD", KEYS[4]) + waiting
local delayed = waiting > 0 and call("ZCOUNT", KEYS[5], "(" .. string.format("%.0f", now), "+inf") or 0
local oldestPending = math.max(ageOf(call("LINDEX", KEYS[2], 0)), ageOfFirst(KEYS[4]), ageOfFirst(KEYS[6]))
return pack(">I6I6I6I6I6I6I6I6I6I6I6I6I6I6", pending, call("ZCARD", KEYS[7]), delayed, call("ZCARD", KEYS[9]), enqueued, delivered, acked,
  returned, deadLettered, cleared, createdMs, maxDeliveries, oldestPending, ageOfFirst(KEYS[8]))
