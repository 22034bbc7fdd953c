--[[
Memory: what is remembered of chosen ids, so that a repeat stores nothing. Follows queue.lua.

memory i<id>: state (1 byte; 0 unacked, 1 gone, 2 dead), place (6), clears of the queue then (6), remembered until, in ms (6),
fingerprint of the bytes (20). A record is kept until its message is gone and its time has passed, whichever is later.
]]
local UNACKED, SETTLED, BURIED = 0, 1, 2
local REMEMBERED = ">Bc6I6I6c20"

local function remember(queue, id, state, place, untilMs, fingerprint)
  call("HSET", KEYS[queue.base + MEMORY], "i" .. id, pack(REMEMBERED, state, place, queue.clears, untilMs, fingerprint))
end

-- State, place, until when, and fingerprint of a chosen id, or nothing when it is not remembered (any longer).
local function recall(queue, id)
  local record = call("HGET", KEYS[queue.base + MEMORY], "i" .. id)
  if not record or #record ~= 39 then return end
  local state, place, clears, untilMs, fingerprint = read(REMEMBERED, record)
  if state == UNACKED and clears ~= queue.clears then state = SETTLED end
  if state == SETTLED and untilMs <= nowMs then return end
  return state, place, untilMs, fingerprint
end

local function forget(queue, field)
  call("HDEL", KEYS[queue.base + MEMORY], field)
  call("ZREM", KEYS[queue.base + FORGET], field)
end

-- The message of this id changed to `state`.
local function turn(queue, id, state)
  if id == "" then return end
  local _, place, untilMs, fingerprint = recall(queue, id)
  if not place then return end
  if state == SETTLED and untilMs <= nowMs then forget(queue, "i" .. id) else remember(queue, id, state, place, untilMs, fingerprint) end
end

-- Moves a message to the dead letters. The caller has removed it from where it was handed out.
local function bury(queue, place, count, id, cause, reason, entry)
  entry = entry or call("HGET", KEYS[queue.base + BODIES], place)
  if not entry then entry, cause = "\1" .. place .. pack(">I6B", nowMs, 0), 3 end
  queue.deaths = queue.deaths + 1
  queue.deadLettered = queue.deadLettered + 1
  call("HDEL", KEYS[queue.base + BODIES], place)
  call("HDEL", KEYS[queue.base + STATES], place)
  call("ZADD", KEYS[queue.base + DEAD], format("%.0f", queue.deaths), place)
  call("HSET", KEYS[queue.base + GRAVES], place, pack(">BI6I4I2", cause, nowMs, count, #reason) .. reason .. entry)
  turn(queue, id, BURIED)
end
