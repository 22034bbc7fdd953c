--[[
Memory: states, chosen ids that are remembered so that a repeat stores nothing, and the way to the dead letters. Follows tasks.lua.

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

  function memory.makeState(count, id, reason, task)
    if task ~= "" then return pack(">I4B", count + 2147483648, #id) .. id .. string.char(#task) .. task .. reason end
    return pack(">I4B", count, #id) .. id .. reason
  end

  -- Delivery count, chosen id, last reason and task id; "" for what there is not.
  function memory.readState(state, default)
    if not state or #state < 5 then return default, "", "", "" end
    local count, length = read(">I4B", state)
    if count < 2147483648 then return count, sub(state, 6, 5 + length), sub(state, 6 + length), "" end
    local at = 7 + length + (byte(state, 6 + length) or 0)
    return count - 2147483648, sub(state, 6, 5 + length), sub(state, at), sub(state, 7 + length, at - 1)
  end

  -- The place of an entry, its chosen id and its task id (or ""), where its payload begins, and the number of its task (or ""); or nothing
  -- when it is none of ours.
  function memory.examine(queue, entry)
    if #entry < 14 or byte(entry) ~= 1 then return end
    local sequence, flags, at, texts = read(">I6", entry, 2), byte(entry, 14), 15, { "", "" }
    if sequence == 0 or sequence > field(queue, 16) or flags > 3 then return end
    if flags > 1 then at = 21 end
    for bit = 1, flags > 0 and 2 or 0 do
      if math.floor(flags / bit) % 2 == 1 then
        local length = byte(entry, at)
        if not length or length == 0 or #entry < at + length then return end
        texts[bit] = sub(entry, at + 1, at + length)
        at = at + 1 + length
      end
    end
    return sub(entry, 2, 7), texts[1], texts[2], at, flags > 1 and sub(entry, 15, 20) or ""
  end

  -- Flags, number, chosen id and task id of an entry; the task must be there.
  local function textsOf(id, task)
    local owner = task ~= "" and useTasks().find(task)
    local head = string.char((id == "" and 0 or 1) + (owner and 2 or 0)) .. (owner and pack(">I6", owner.number) or "")
    return head .. (id == "" and "" or string.char(#id) .. id) .. (owner and string.char(#task) .. task or "")
  end

  -- An entry of ours as that of another task, or of none.
  function memory.give(queue, entry, task)
    local _, id, _, at = memory.examine(queue, entry)
    return sub(entry, 1, 13) .. textsOf(id, task) .. sub(entry, at)
  end

  -- An entry of ours around bytes that are none, or around nothing.
  function memory.wrap(place, task, bytes)
    return "\1" .. place .. pack(">I6", nowMs) .. textsOf("", task) .. bytes
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
  function memory.bury(queue, place, count, id, cause, reason, task, entry)
    entry = entry or call("HGET", KEYS[queue.base + BODIES], place)
    if not entry then entry, cause = memory.wrap(place, task, ""), 3 end
    local owner = task ~= "" and useTasks().find(task)
    local mark = owner and owner.status == 0 and tasks.bury(queue, owner, place, count, id, cause, reason) or ""
    call("HDEL", KEYS[queue.base + BODIES], place)
    call("HDEL", KEYS[queue.base + STATES], place)
    local order = field(queue, DEATHS) + 1
    set(queue, DEATHS, order)
    set(queue, DEAD_LETTERED, field(queue, DEAD_LETTERED) + 1)
    call("ZADD", KEYS[queue.base + DEAD], string.format("%.0f", order), place)
    call("HSET", KEYS[queue.base + GRAVES], place, pack(">BI6I4", mark == "" and cause or cause + 16, nowMs, count) .. mark .. pack(">I2", #reason)
      .. reason .. entry)
    memory.turn(queue, id, BURIED)
  end

  -- A record that is none of ours goes to the dead letters under a place of its own.
  function memory.quarantine(queue, entry)
    local sequence = field(queue, 16) + 1
    set(queue, 16, sequence)
    local place = pack(">I6", sequence)
    memory.bury(queue, place, 0, "", 2, "", "", memory.wrap(place, "", entry))
  end

  -- A message is removed because its task is cancelling. The caller has removed it from where it was available, or from processing.
  function memory.withdraw(queue, owner, place, id)
    call("HDEL", KEYS[queue.base + BODIES], place)
    call("HDEL", KEYS[queue.base + STATES], place)
    memory.turn(queue, id, SETTLED)
    tasks.withdraw(queue, owner, 1)
  end

  -- The task of that id if it is cancelling.
  function memory.cancelling(task)
    local owner = task ~= "" and useTasks().find(task)
    return owner and owner.status == 0 and owner.cancelling == 1 and owner
  end

  return memory
end
