--[[
Plain enqueue of messages of tasks: as enqueue-owned.lua, for any number of its operations and of enqueue.lua. Follows plain-begin.lua.
KEYS  3 pending, 4 tasks, 5 task counts, 6 task queues
ARGV  4 operations: as run.lua, all of this queue
Result  as run.lua
Atomic because all messages of a call are stored in a row, and a task counts its messages from the step on that stores them.
]]
local sequence, enqueued = read(">I6I6", record, 16)
local size, position, largest = #body, 1, 0
local data, owners, n, starts = {}, {}, 0, {}
local ids, known, k, gained, firsts, lasts = {}, {}, 0, {}, {}, {}
while position <= size do
  local kind, length, most
  kind, length, most, position = read(">BxxI4I4", body, position)
  local stop = position + length - 4
  if most > largest then largest = most end
  starts[#starts + 1] = n
  if kind == 9 then
    local count, own = nil, {}
    count, position = read(">I2", body, position)
    for index = 1, count do
      local id
      id, position = read(">Bc0", body, position)
      local at = known[id]
      if not at then
        k = k + 1
        at, known[id], ids[k], gained[k] = k, k, id, 0
      end
      own[index] = at
    end
    while position < stop do
      local index, at
      n = n + 1
      index, data[n], position = read(">I2I4c0", body, position)
      at = own[index] or 0
      owners[n] = at
      if at > 0 then
        if gained[at] == 0 then firsts[at] = n end
        gained[at], lasts[at] = gained[at] + 1, n
      end
    end
  elseif kind == 1 then
    while position < stop do
      n = n + 1
      data[n], position = read(">I4c0", body, position)
      owners[n] = -1
    end
  else
    return ""
  end
end
if n == 0 or n > 4000 or k == 0 or k > 2000 then return "" end
local time = call("TIME")
local stamp, life = pack(">I6", time[1] * 1000 + math.floor(time[2] / 1000)), sub(record, 10, 15)
local heads, fields = { [0] = "\0", [-1] = "" }, {}
local records = call("HMGET", KEYS[4], unpack(ids))
for index = 1, k do
  local task = records[index]
  if not task or #task ~= 85 then return "" end
  local version, status, _, cancelling = byte(task, 1, 4)
  if version ~= 1 or status ~= 0 or cancelling ~= 0 then return "" end
  local id, number = ids[index], sub(task, 8, 13)
  heads[index] = pack(">Bc6Bc0", 2, number, #id, id)
  fields[index] = number .. life
end
local values, counts, members, m = call("HMGET", KEYS[5], unpack(fields)), {}, {}, 0
for index = 1, k do
  local value, count = values[index], gained[index]
  local first, last = sequence + firsts[index], sequence + lasts[index]
  if value then
    if #value < 38 then return "" end
    local unacked, total, before = read(">I6xxxxxxI6I6", value)
    value = pack(">I6c6I6I6I6c0", unacked + count, stamp, total + count, before > 0 and before or first, last, sub(value, 31))
  else
    value = pack(">I6c6I6I6I6", count, stamp, count, first, last) .. "\0\0\0\0\0\0\0" .. ids[index]
    m = m + 4
    members[m - 3], members[m - 2] = "0", ids[index] .. "\0" .. life
    members[m - 1], members[m] = "0", "\0" .. life .. sub(fields[index], 1, 6)
  end
  counts[index * 2 - 1], counts[index * 2] = fields[index], value
end
-- Seen before anything is written.
if m > 0 then call("ZCARD", KEYS[6]) end
for index = 1, n do data[index] = pack(">BI6", 1, sequence + index) .. stamp .. heads[owners[index]] .. data[index] end
-- The first write: where it is refused, nothing has been stored.
if type(redis.pcall("RPUSH", KEYS[3], unpack(data, 1, n))) == "table" then return "" end
call("HSET", KEYS[5], unpack(counts, 1, 2 * k))
-- So long that Redis finds each field of the hash by itself (tasks.lua).
if m > 0 then call("HSETNX", KEYS[5], life, string.rep("\0", 72)) end
for from = 1, m, 4000 do call("ZADD", KEYS[6], unpack(members, from, math.min(m, from + 3999))) end
call("SETRANGE", KEYS[2], 15, pack(">I6I6", sequence + n, enqueued + n))
if largest > (read(">I6", record, 58)) then call("SETRANGE", KEYS[2], 57, pack(">I6", largest)) end
for index = 1, #starts do starts[index] = pack(">I4BI6", 7, 0, sequence + starts[index] + 1) end
local answer = table.concat(starts)
whole = answer
