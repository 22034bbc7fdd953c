--[[
Plain dequeue: as dequeue.lua, from the head of the list only, without request ids. Follows plain-begin.lua.
KEYS  3 pending, 4 bodies, 5 returned, 6 leases, 7 held, 8 task counts, 9 task searches
Result  where there is anything, a list: the entries, each delivered for the first time, then the answer without messages. Bytes that are joined
        would be read once more by the server, and again where they are cut apart.
Atomic because a message is at no instant in neither or in both of pending and processing.
]]
local wanted, largest, wake = read(">I4", body), read(">I6", record, 58), read(">I8", record, 64)
local time = call("TIME")
local now = time[1] * 1000000 + time[2]
-- Something is due, came back, is large or much; or a lease would end before the queue is looked after.
if wake <= now or wanted > 1000 or wanted * largest > 8388608 or call("ZCARD", KEYS[5]) > 0 then return "" end
local size = #body
for position = 5, size, 13 do
  local leaseMs, flags = read(">I4B", body, position + 8)
  if now + leaseMs * 1000 < wake or flags % 2 == 1 then return "" end
end
local available = call("LLEN", KEYS[3])
if available == 0 then
  local pieces = { "\0" }
  for position = 5, size, 13 do pieces[#pieces + 1] = "\0" .. sub(body, position, position + 5) .. "\0\0" end
  local empty = table.concat(pieces)
  -- As `finish` in frame.lua: a copy that comes late must not take anything.
  if byte(header, 18) > 1 and type(redis.pcall("HSET", KEYS[1], sub(header, 1, 1), sub(header, 2, 7) .. pack(">I4", #empty) .. empty)) == "table" then
    return ""
  end
  return empty
end
-- What is handed out must arrive in these two: seen before anything is taken.
call("HLEN", KEYS[4])
call("ZCARD", KEYS[6])
local entries = call("LPOP", KEYS[3], wanted)
local total, isPlain, lastOwned = #entries, true, nil
for index = 1, total do
  local entry = entries[index]
  local flags = #entry > 13 and byte(entry) == 1 and byte(entry, 14)
  if flags == 2 and #entry > 20 and #entry > 20 + byte(entry, 21) then
    lastOwned = entry
  elseif flags ~= 0 then
    isPlain = false
    break
  end
end
if isPlain and lastOwned then
  -- Only where no task is being cancelled is none met; that it was handed out is to be seen in the counts.
  local searches = redis.pcall("SCARD", KEYS[9])
  isPlain = searches == 0 and type(redis.pcall("HLEN", KEYS[8])) ~= "table"
end
if not isPlain then
  -- One with a chosen id, or none of ours: all go back to their places.
  local back = {}
  for from = 1, total do back[from] = entries[total + 1 - from] end
  call("LPUSH", KEYS[3], unpack(back))
  return ""
end
local heads, places, bodies, leases, held, h, k, m, first = { "\0" }, { "\0" }, {}, {}, {}, 1, 1, 0, 1
-- From their ends: a small sorted set is searched from its begin for the place of a new member, which is then soon found.
local r, lastLease, ends = 2 * total, -1, nil
for position = 5, size, 13 do
  local token, limit, leaseMs = read(">c6I2I4", body, position)
  local final = first + limit - 1
  if final > total then final = total end
  local head = "\0" .. token .. pack(">I2", final - first + 1)
  h, k = h + 1, k + 1
  heads[h], places[k] = head, head
  if leaseMs ~= lastLease then lastLease, ends = leaseMs, string.format("%.0f", now + leaseMs * 1000) end
  for index = first, final do
    local entry = entries[index]
    local place = sub(entry, 2, 7)
    local holding = place .. token
    if lastOwned and byte(entry, 14) == 2 then holding = holding .. sub(entry, 15, 20) end
    m, k = m + 2, k + 1
    bodies[m - 1], bodies[m], leases[r - 1], leases[r], held[r - 1], held[r] = place, entry, ends, holding, "0", holding
    places[k] = place
    r = r - 2
  end
  first = final + 1
end
call("HSET", KEYS[4], unpack(bodies, 1, m))
call("ZADD", KEYS[6], unpack(leases, 1, m))
-- Where somebody spoilt this one, the messages are in processing all the same, and their leases bring them back.
redis.pcall("ZADD", KEYS[7], unpack(held, 1, m))
if lastOwned then call("HSET", KEYS[8], sub(record, 10, 15), sub(lastOwned, 2, 7) .. string.rep("\0", 66)) end
call("SETRANGE", KEYS[2], 27, pack(">I6", read(">I6", record, 28) + total))
if total < wanted and largest > 0 then call("SETRANGE", KEYS[2], 57, "\0\0\0\0\0\0") end
kept = table.concat(places)
local answer = entries
answer[total + 1] = table.concat(heads)
