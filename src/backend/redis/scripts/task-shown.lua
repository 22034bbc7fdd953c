--[[
Task shown: the record of a task as it is at this moment, completed with what its queues count (tasks.lua). Given the keys of task counts and
task queues.
]]
local function shownTask(id, record, countsKey, queuesKey)
  local call, read, sub, byte = redis.call, struct.unpack, string.sub, string.byte
  if #record ~= 85 or byte(record) ~= 1 or byte(record, 2) > 0 then return record end
  local members = call("ZRANGEBYLEX", queuesKey, "[" .. id .. "\0", "[" .. id .. "\0" .. string.rep("\255", 7))
  local started, number = byte(record, 6), sub(record, 8, 13)
  local total, _, failed, cancelled = read(">I6I6I6I6", record, 14)
  local updated, unacked, STEP = read(">I6", record, 44), 0, 2000
  for from = 1, #members, STEP do
    local fields, n = {}, 0
    for index = from, math.min(#members, from + STEP - 1) do
      local life = sub(members[index], #id + 2)
      n = n + 2
      fields[n - 1], fields[n] = number .. life, life
    end
    local values = call("HMGET", countsKey, unpack(fields))
    for index = 1, n, 2 do
      local value, head = values[index], values[index + 1]
      if value and #value > 37 then
        local count, moment, more, first = read(">I6I6I6I6", value)
        total, unacked, updated = total + more, unacked + count, math.max(updated, moment)
        if first > 0 and head and #head > 5 and read(">I6", head) >= first then started = 1 end
      end
    end
  end
  local done = math.max(0, total - unacked - failed - cancelled)
  return sub(record, 1, 5) .. string.char(started) .. sub(record, 7, 13) .. struct.pack(">I6I6", total, done) .. sub(record, 26, 43)
    .. struct.pack(">I6", updated) .. sub(record, 50)
end
