--[[
Plain ack of messages of which some belong to tasks: as ack.lua, of messages without a state. Follows plain-begin.lua.
KEYS  3 bodies, 4 states, 5 leases, 6 held, 7 tasks, 8 task counts, 9 task queues, 10 task due
Atomic because the check of the token, the removal and the end of a task are one step.
]]
local n = #body / 18
if n == 0 or n > 2000 or call("HLEN", KEYS[4]) > 0 then return "" end
local life, holdings, places = sub(record, 10, 15), {}, {}
local done, fields, k = {}, {}, 0
for index = 1, n do
  local at = index * 18 - 17
  places[index] = sub(body, at, at + 5)
  local number = sub(body, at + 12, at + 17)
  if number == "\0\0\0\0\0\0" then
    holdings[index] = sub(body, at, at + 11)
  else
    holdings[index] = sub(body, at, at + 17)
    local count = done[number]
    if count then
      done[number] = count + 1
    else
      k = k + 1
      done[number], fields[k] = 1, number .. life
    end
  end
end
-- Some stale, or twice the same: each needs an answer of its own.
local seen, scores = {}, call("ZMSCORE", KEYS[5], unpack(holdings))
for index = 1, n do
  if not scores[index] or seen[holdings[index]] then return n == 1 and "\0\0" or "" end
  seen[holdings[index]] = true
end
local time = call("TIME")
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local stamp, counts, c = pack(">I6", nowMs), {}, 0
local ids, empty, z = {}, {}, 0
local values = k > 0 and call("HMGET", KEYS[8], unpack(fields))
for index = 1, k do
  local field, value = fields[index], values[index]
  if not value or #value < 38 then return "" end
  local left = read(">I6", value) - done[sub(field, 1, 6)]
  if left < 0 then return "" end
  value = pack(">I6c6c0", left, stamp, sub(value, 13))
  if left == 0 then
    z = z + 1
    ids[z], empty[z] = sub(value, 38), index
  end
  c = c + 2
  counts[c - 1], counts[c] = field, value
end
-- Tasks of which this queue has no more messages: they end here, if it is the only one and all went well.
local records, ended, e, gone, members, dues = nil, {}, 0, {}, {}, {}
if z > 0 then
  call("ZCARD", KEYS[10])
  records = call("HMGET", KEYS[7], unpack(ids))
  for index = 1, z do
    local task, id, at = records[index], ids[index], empty[index] * 2
    if not task or #task ~= 85 then return "" end
    local version, status, sealed, cancelling, failed = byte(task, 1, 5)
    if version ~= 1 or status ~= 0 or cancelling ~= 0 then return "" end
    if sealed == 1 then
      local from = "[" .. id .. "\0"
      if failed ~= 0 or sub(task, 26, 37) ~= "\0\0\0\0\0\0\0\0\0\0\0\0" or #call("ZRANGEBYLEX", KEYS[9], from, from .. string.rep("\255", 7), "LIMIT", 0, 2) ~= 1 then return "" end
      local total, keptMs = read(">I6", task, 14) + read(">I6", counts[at], 13), read(">I6", task, 68)
      e = e + 2
      ended[e - 1], ended[e] = id, "\1\1\1\0\0\1" .. sub(task, 7, 13) .. pack(">I6I6", total, total) .. sub(task, 26, 43) .. stamp .. stamp .. sub(task, 56)
      dues[e - 1], dues[e] = string.format("%.0f", (nowMs + keptMs) * 1000), "r" .. id
      members[e - 1], members[e] = id .. "\0" .. life, "\0" .. life .. sub(counts[at - 1], 1, 6)
      gone[e / 2] = counts[at - 1]
    end
  end
end
-- With this they are removed; where somebody spoilt the next two keys, only rubbish stays behind.
call("ZREM", KEYS[5], unpack(holdings))
redis.pcall("ZREM", KEYS[6], unpack(holdings))
redis.pcall("HDEL", KEYS[3], unpack(places))
if e < c then call("HSET", KEYS[8], unpack(counts, 1, c)) end
if e > 0 then
  call("HSET", KEYS[7], unpack(ended, 1, e))
  call("HDEL", KEYS[8], unpack(gone, 1, e / 2))
  call("ZREM", KEYS[9], unpack(members, 1, e))
  call("ZADD", KEYS[10], unpack(dues, 1, e))
  if #call("ZRANGEBYLEX", KEYS[9], "[\0" .. life, "[\0" .. life .. string.rep("\255", 7), "LIMIT", 0, 1) == 0 then call("HDEL", KEYS[8], life) end
end
call("SETRANGE", KEYS[2], 33, pack(">I6", read(">I6", record, 34) + n))
local answer = "\0" .. string.rep("\1", n)
