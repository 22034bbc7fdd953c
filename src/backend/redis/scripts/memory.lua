--[[
Memory: states, chosen ids that are remembered so that a repeat stores nothing, and the way to the dead letters. Follows queue.lua.

memory i<id>: state (1 byte; 0 unacked, 1 gone, 2 dead), place (6), clears of the queue then (6), remembered until, in ms (6),
fingerprint of the bytes (20). A record is kept until its message is gone and its time has passed, whichever is later.
]]
local memory

local function useMemory()
  if memory then return memory end
  local CLEARS, DEATHS, DEAD_LETTERED = 72, 52, 46
  local BODIES, STATES, DEAD, GRAVES, MEMORY, FORGET = 3, 4, 10, 11, 12, 13
  local UNACKED, SETTLED, BURIED = 0, 1, 2
  readClock()
  memory = { UNACKED = UNACKED, SETTLED = SETTLED, BURIED = BURIED }

  function memory.makeState(count, id, reason)
    return pack(">I4B", count, #id) .. id .. reason
  end

  -- Delivery count, chosen id and last reason.
  function memory.readState(state, default)
    if not state or #state < 5 then return default, "", "" end
    local count, length = read(">I4B", state)
    return count, sub(state, 6, 5 + length), sub(state, 6 + length)
  end

  -- The place of an entry, and its chosen id or "", or nothing when it is none of ours.
  function memory.examine(queue, entry)
    if #entry < 14 or byte(entry) ~= 1 then return end
    local sequence, flags, length = read(">I6", entry, 2), byte(entry, 14), byte(entry, 15)
    if sequence == 0 or sequence > field(queue, 16) or flags > 1 then return end
    if flags == 0 then return sub(entry, 2, 7), "" end
    if not length or length == 0 or #entry < 15 + length then return end
    return sub(entry, 2, 7), sub(entry, 16, 15 + length)
  end

  function memory.remember(queue, id, state, place, untilMs, fingerprint)
    local record = pack(">Bc6I6I6c20", state, place, field(queue, CLEARS), untilMs, fingerprint)
    call("HSET", KEYS[queue.base + MEMORY], "i" .. id, record)
  end

  -- State, place, until when, and fingerprint of a chosen id, or nothing when it is not remembered (any longer).
  function memory.recall(queue, id)
    local record = call("HGET", KEYS[queue.base + MEMORY], "i" .. id)
    if not record or #record ~= 39 then return end
    local state, place, clears, untilMs, fingerprint = read(">Bc6I6I6c20", record)
    if state == UNACKED and clears ~= field(queue, CLEARS) then state = SETTLED end
    if state == SETTLED and untilMs <= nowMs then return end
    return state, place, untilMs, fingerprint
  end

  function memory.forget(queue, name)
    call("HDEL", KEYS[queue.base + MEMORY], name)
    call("ZREM", KEYS[queue.base + FORGET], name)
  end

  -- The message of this id changed to `state`.
  function memory.turn(queue, id, state)
    if id == "" then return end
    local _, place, untilMs, fingerprint = memory.recall(queue, id)
    if not place then return end
    if state == SETTLED and untilMs <= nowMs then
      memory.forget(queue, "i" .. id)
    else
      memory.remember(queue, id, state, place, untilMs, fingerprint)
    end
  end

  -- Moves a message to the dead letters. The caller has removed it from where it was handed out.
  function memory.bury(queue, place, count, id, cause, reason, entry)
    entry = entry or call("HGET", KEYS[queue.base + BODIES], place)
    if not entry then entry, cause = "\1" .. place .. pack(">I6B", nowMs, 0), 3 end
    call("HDEL", KEYS[queue.base + BODIES], place)
    call("HDEL", KEYS[queue.base + STATES], place)
    local order = field(queue, DEATHS) + 1
    set(queue, DEATHS, order)
    set(queue, DEAD_LETTERED, field(queue, DEAD_LETTERED) + 1)
    call("ZADD", KEYS[queue.base + DEAD], string.format("%.0f", order), place)
    call("HSET", KEYS[queue.base + GRAVES], place, pack(">BI6I4I2", cause, nowMs, count, #reason) .. reason .. entry)
    memory.turn(queue, id, BURIED)
  end

  return memory
end
