--[[
Peek: the message that a dequeue would hand out now. Changes nothing: what is due is looked at where it lies.
KEYS  1 record (string), 2 pending (list), 3 bodies, 4 states (hashes), 5 returned, 6 delayed, 7 leases (sorted sets), 8 tasks (hash)
ARGV  1 id of the store
Result  nothing when the queue is gone; empty when nothing is available; else delivery count (4 bytes) and entry
Atomic because it compares the heads of several collections.
]]
local call, pack, read, sub, byte = redis.call, struct.pack, struct.unpack, string.sub, string.byte
local record = call("GET", KEYS[1])
if not record or sub(record, 2, 9) ~= ARGV[1] then return false end
local sequence, maxDeliveries = read(">I6", record, 16), read(">I4", record, 84)
local time = call("TIME")
local now = string.format("%.0f", time[1] * 1000000 + time[2])

local function readable(entry)
  if not entry or #entry < 14 or byte(entry) ~= 1 then return nil end
  local place, flags = read(">I6", entry, 2), byte(entry, 14)
  if place == 0 or place > sequence or flags > 3 then return nil end
  if flags >= 2 then
    -- What belongs to a task that is cancelling is never handed out.
    local at = flags == 3 and 22 + (byte(entry, 21) or 0) or 21
    local task = call("HGET", KEYS[8], sub(entry, at + 1, at + (byte(entry, at) or 0)))
    if task and byte(task, 4) == 1 then return nil end
  end
  return place
end

local best, bestEntry, bestCount
-- `limited`: its lease has ended, so that a dequeue would first see whether its deliveries are used up.
local function offer(place, limited)
  local at = read(">I6", place)
  if best and best <= at then return false end
  local state = call("HGET", KEYS[4], place)
  local count = state and #state >= 5 and read(">I4", state) % 2147483648 or limited and 1 or 0
  if limited and maxDeliveries > 0 and count >= maxDeliveries then return false end
  local entry = call("HGET", KEYS[3], place)
  if readable(entry) ~= at then return false end
  best, bestEntry, bestCount = at, entry, count
  return true
end

for index = 0, 1000 do
  local entry = call("LINDEX", KEYS[2], index)
  local place = readable(entry)
  if place then best, bestEntry, bestCount = place, entry, 0 end
  if place or not entry then break end
end
for index = 0, 1000 do
  local place = call("ZRANGE", KEYS[5], index, index)[1]
  if not place or offer(place, false) or (best and best <= read(">I6", place)) then break end
end
-- Usually few: the sweep of every open store makes due messages available soon.
for key = 6, 7 do
  for _, member in ipairs(call("ZRANGEBYSCORE", KEYS[key], "-inf", now)) do offer(sub(member, 1, 6), key == 7) end
end
return best and pack(">I4", bestCount) .. bestEntry or ""
