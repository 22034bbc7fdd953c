--[[
Wake: when something of a queue may be due, and whether its keys can be worked with. Follows queue.lua.
]]
local function wakeOf(queue)
  queue.wake = queue.wake or read(">I8", queue.record, 64)
  return queue.wake
end

local function setWake(queue, moment)
  queue.wake = moment
  local life = read(">I6", queue.record, 10)
  call("SETRANGE", KEYS[queue.base + 1], 63, pack(">I8", moment))
  if moment == 0 then call("ZREM", KEYS[2], life) else call("ZADD", KEYS[2], string.format("%.0f", moment), life) end
end

-- Something of this queue may be due at `moment`. The wake time is never later than the first such moment.
local function attend(queue, moment)
  local wake = wakeOf(queue)
  if wake == 0 or moment < wake then setWake(queue, moment) end
end

-- Reads the sizes of keys, and so fails, before anything is written, when somebody put another type there.
local function check(queue, ...)
  local SIZE_OF = { false, "LLEN", "HLEN", "HLEN", "ZCARD", "ZCARD", "ZCARD", "ZCARD", "ZCARD", "ZCARD", "HLEN", "HLEN", "ZCARD" }
  for index = 1, select("#", ...) do
    local key = select(index, ...)
    call(SIZE_OF[key], KEYS[queue.base + key])
  end
end
