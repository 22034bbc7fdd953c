--[[
Task care: what is rarely done with tasks: failures, texts, sealing, the end, removal. Follows queue.lua; tasks.lua makes these functions when one of
them is needed, and tells what the records are made of.
]]
local function addTaskCare(known, owned)
  local RECORDS, TEXTS, ORDER, DUE, FAILURES, QUEUES, COUNTS, SEARCHES = 3, 4, 5, 6, 7, 8, 9, 10

  -- The same for the keys that only failures and changes of tasks themselves need.
  function tasks.check()
    call("HLEN", KEYS[TEXTS])
    call("ZCARD", KEYS[ORDER])
    call("ZCARD", KEYS[FAILURES])
  end

  -- Makes a task. `rest` is the end of its record.
  function tasks.make(id, number, sealed, rest)
    local task = { id = id, status = 0, sealed = sealed, cancelling = 0, producerFailed = 0, started = 0, blamed = 0, number = number, total = 0,
      done = 0, failed = 0, cancelled = 0, deaths = 0, updated = nowMs, finished = 0, rest = rest }
    known[id] = task
    tasks.touch(task)
    return task
  end

  function tasks.textsOf(task)
    if task.texts then return task.texts end
    local record, at, texts = call("HGET", KEYS[TEXTS], task.id) or "", 1, {}
    for index = 1, 8 do
      local length = at + 3 <= #record and read(">I4", record, at) or 0
      texts[index] = length > 0 and sub(record, at + 4, at + 2 + length)
      at = at + 4 + math.max(0, length - 1)
    end
    task.texts = texts
    return texts
  end

  -- Keeps an error, if it is the first.
  function tasks.blame(task, kind, reason, count, life, place, id, name)
    if task.blamed > 0 and kind ~= 5 and kind ~= 7 then return end
    local texts = tasks.textsOf(task)
    id, name = id or "", name or ""
    texts[task.blamed == 0 and 7 or 8] = pack(">BI4", kind, count or 0) .. (life or string.rep("\0", 6)) .. (place or string.rep("\0", 6))
      .. string.char(#id) .. id .. pack(">I2", #name) .. name .. reason
    if task.blamed == 0 then task.blamed = kind < 5 and 1 or 2 end
    task.hasNewTexts = true
    tasks.touch(task)
  end

  -- A dead letter of a task became pending again: it takes its failure back.
  function tasks.revive(queue, task, place)
    task.failed = math.max(0, task.failed - 1)
    tasks.gain(queue, task, 1, (read(">I6", place)), nil, true)
    tasks.touch(task)
    if task.failed > 0 or task.blamed ~= 1 then return end
    local texts = tasks.textsOf(task)
    texts[7], texts[8], task.hasNewTexts = texts[8], false, true
    task.blamed = texts[7] and 2 or 0
  end

  -- A message of a task moves to the dead letters. Answers with what these keep of it.
  function tasks.bury(queue, task, place, count, id, cause, reason)
    tasks.settle(queue, task, 1, "failed")
    task.deaths = task.deaths + 1
    local life, mark = sub(queue.record, 10, 15), pack(">I6I6", task.number, task.deaths)
    call("ZADD", KEYS[FAILURES], "0", mark .. life .. place)
    tasks.blame(task, cause, reason, count, life, place, id, sub(queue.record, 94))
    return mark
  end

  -- Forgets a dead letter of a task. `mark` is what it kept.
  function tasks.unbury(mark, life, place)
    call("ZREM", KEYS[FAILURES], mark .. life .. place)
  end

  -- The record of a task takes over what a queue counts of it.
  local function absorb(task, own, head)
    task.total = task.total + own.total
    task.updated = math.max(task.updated, own.updated)
    if own.first > 0 and head and #head > 5 and read(">I6", head) >= own.first then task.started = 1 end
    own.isGone = true
    tasks.touch(task)
  end

  -- All unacked messages of a queue were removed: those of tasks count as failed.
  function tasks.lose(life, name)
    local from = "\0" .. life
    local members = call("ZRANGEBYLEX", KEYS[QUEUES], "[" .. from, "[" .. from .. string.rep("\255", 7))
    if #members == 0 then return end
    local head = call("HGET", KEYS[COUNTS], life)
    for index = 1, #members do
      local own = tasks.countAt(sub(members[index], 8), life)
      call("ZREM", KEYS[QUEUES], members[index])
      if own then
        call("ZREM", KEYS[QUEUES], own.id .. from)
        call("HDEL", KEYS[COUNTS], own.field)
        local task = tasks.find(own.id)
        if task and task.status == 0 then
          absorb(task, own, head)
          if own.count > 0 then
            task.failed = task.failed + own.count
            tasks.blame(task, 4, "", 0, life, nil, nil, name)
          end
        end
        own.count = 0
      end
    end
    call("HDEL", KEYS[COUNTS], life)
  end

  -- What each queue counts of a task.
  function tasks.countsOf(task)
    local number, skipped, found = pack(">I6", task.number), #task.id + 2, {}
    for _, member in ipairs(call("ZRANGEBYLEX", KEYS[QUEUES], "[" .. task.id .. "\0", "[" .. task.id .. "\0" .. string.rep("\255", 7))) do
      tasks.countAt(number, sub(member, skipped))
    end
    -- All that were read, and those that are new.
    for _, own in ipairs(owned[task.id] or {}) do
      if not own.isGone then found[#found + 1] = own end
    end
    return found
  end

  -- The producer of a task adds no more.
  function tasks.seal(task)
    task.sealed = 1
    -- A write that removes comes first, since a full memory then lets the others pass.
    call("ZREM", KEYS[DUE], "p" .. task.id)
    changed = true
    tasks.touch(task)
  end

  function tasks.attend(kind, name, moment)
    call("ZADD", KEYS[DUE], string.format("%.0f", moment), kind .. name)
  end

  -- Removes up to `bound` entries of failures. Answers whether there are more.
  function tasks.forgetFailures(number, bound)
    local from, to = "[" .. number, "[" .. number .. string.rep("\255", 19)
    local found = call("ZRANGEBYLEX", KEYS[FAILURES], from, to, "LIMIT", 0, bound)
    if #found > 0 then call("ZREM", KEYS[FAILURES], unpack(found)) end
    return #found == bound
  end

  -- Removes the record of a task that has ended.
  function tasks.remove(task)
    call("HDEL", KEYS[RECORDS], task.id)
    call("HDEL", KEYS[TEXTS], task.id)
    call("ZREM", KEYS[ORDER], task.id)
    call("ZREM", KEYS[DUE], "r" .. task.id)
    local number = pack(">I6", task.number)
    if tasks.forgetFailures(number, 500) then tasks.attend("f", number, now) end
    known[task.id] = false
    changed = true
  end

  -- Messages that are removed because their task is cancelling. What they leave in collections is the caller's to remove.
  function tasks.withdraw(queue, task, count)
    local CLEARED = 78
    tasks.settle(queue, task, count, "cancelled")
    set(queue, CLEARED, field(queue, CLEARED) + count)
  end

  -- A task ends if all its messages are settled: nobody adds to it any more.
  function tasks.finish(task)
    local owns = tasks.countsOf(task)
    for index = 1, #owns do
      if owns[index].count > 0 then return end
    end
    for index = 1, #owns do
      local own = owns[index]
      absorb(task, own, nil)
      if not own.isNew then
        local life = "\0" .. own.life
        call("HDEL", KEYS[COUNTS], own.field)
        call("ZREM", KEYS[QUEUES], own.id .. life, life .. sub(own.field, 1, 6))
        if #call("ZRANGEBYLEX", KEYS[QUEUES], "[" .. life, "[" .. life .. string.rep("\255", 7), "LIMIT", 0, 1) == 0 then call("HDEL", KEYS[COUNTS], own.life) end
      end
    end
    task.done = task.total - task.failed - task.cancelled
    tasks.touch(task)
    task.status = task.cancelling == 1 and 3 or (task.failed > 0 or task.producerFailed == 1) and 2 or 1
    task.finished = nowMs
    local keepMs = read(">I6", task.rest, 7 + 6 * task.status)
    call("ZREM", KEYS[DUE], "c" .. task.id, "p" .. task.id)
    tasks.attend("r", task.id, (nowMs + keepMs) * 1000)
    call("SREM", KEYS[SEARCHES], task.id)
  end

  function tasks.writeTexts(task)
    local pieces = {}
    for at = 1, 8 do
      local text = task.texts[at]
      pieces[at] = text and pack(">I4", #text + 1) .. text or "\0\0\0\0"
    end
    call("HSET", KEYS[TEXTS], task.id, table.concat(pieces))
  end
end
