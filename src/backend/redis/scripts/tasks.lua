--[[
Tasks: counts of messages by the task that owns them, and the judgement whether a task has ended. Follows queue.lua. What is read of a
task is kept for the run, and written once at its end (`conclude`), when it is also judged: so no half of a step is.

task record   from byte: 1 version (1), 2 status (1; 0 goes on, 1 completed, 2 failed, 3 cancelled), 3 sealed, 4 cancelling, 5 producer failed,
              6 handed out (1 each), 7 blamed (1; 0 no error, 1 the error is of a message, 2 it is another), 8 number (6), 14 total (6), 20 done (6),
              26 failed (6), 32 cancelled (6), 38 failures ever (6), 44 updated at, in ms (6), 50 finished at, in ms, or 0 (6), 56 created at, in
              ms (6), 62 token of its producer, or 0 (6), 68 how long it is kept, in ms, as completed (6), failed (6), cancelled (6)
texts         eight times length and one (4), or 0 where there is none, and text: type, resource, retry of, stage, meta, result, error, error
              of the producer when another came before
error         kind (1; 0 to 3 as the cause of a dead letter, 4 removed with its queue, 5 producer gone, 6 in the words of who cancelled, 7 in the
              words of the producer), delivery count (4), life of the queue (6), place (6), length (1) and chosen id, length (2) and name of the
              queue, reason
order         task id by number. due: p<id> end of the producer's lease, c<id> cancelling goes on, r<id> the record is to be removed, f<number>
              entries of failures are to be removed, all in microseconds
failures      task number (6), which failure of the task (6), life (6), place (6): its dead letters, by text
task queues   task id, NUL, life (6): queues in which it may have unacked messages, by text
owners        per queue: task id -> unacked messages in it (6), last place (6); while cancelling, how far the search for pending ones came:
              phase (1; 1 delayed ones, 2 returned ones, 3 the list, 4 done) and place after which (6)
]]
-- To be called, for the first time, before anything is removed: it fails when it cannot work.
local function useTasks()
  if tasks then return tasks end
  local RECORDS, TEXTS, ORDER, DUE, FAILURES, QUEUES, OWNERS = 3, 4, 5, 6, 7, 8, 14
  local FORM = ">BBBBBBBI6I6I6I6I6I6I6I6c30"
  readClock()
  -- When somebody put another type there.
  for key = RECORDS, QUEUES do call(key > TEXTS and "ZCARD" or "HLEN", KEYS[key]) end
  local known, touched, counted = {}, {}, {}
  tasks = {}

  -- The task of an id, or false.
  function tasks.find(id)
    local task = known[id]
    if task ~= nil then return task end
    task = false
    local record = call("HGET", KEYS[RECORDS], id)
    -- One that cannot be read is as good as none: no message shall get stuck for it, and doctor finds it.
    if record and #record == 85 and byte(record) == 1 then
      task = { id = id, record = record }
      local _
      _, task.status, task.sealed, task.cancelling, task.producerFailed, task.started, task.blamed, task.number, task.total, task.done,
        task.failed, task.cancelled, task.deaths, task.updated, task.finished, task.rest = read(FORM, record)
    end
    known[id] = task
    return task
  end

  -- Makes a task. `rest` is the end of its record.
  function tasks.make(id, number, sealed, rest)
    local task = { id = id, status = 0, sealed = sealed, cancelling = 0, producerFailed = 0, started = 0, blamed = 0, number = number, total = 0,
      done = 0, failed = 0, cancelled = 0, deaths = 0, updated = nowMs, finished = 0, rest = rest }
    known[id] = task
    tasks.touch(task)
    return task
  end

  function tasks.touch(task)
    if task.isTouched then return end
    task.isTouched = true
    touched[#touched + 1] = task
  end

  -- The answer that refuses more work for a task, or nothing.
  function tasks.refusal(id)
    local task = tasks.find(id)
    if not task then return "\5\0" .. id end
    if task.status > 0 then return "\5" .. string.char(task.status) .. id end
    if task.cancelling == 1 then return "\5\4" .. id end
  end

  function tasks.isOpen(task)
    return task and task.status == 0 and task.cancelling == 0
  end

  -- What is known of the unacked messages of a task in a queue.
  function tasks.ownOf(queue, task)
    local owners = queue.owners
    if not owners then
      owners = {}
      queue.owners = owners
    end
    local own = owners[task.id]
    if own then return own end
    own = { queue = queue, id = task.id, count = 0, last = 0, phase = 0, cursor = 0 }
    local record = call("HGET", KEYS[queue.base + OWNERS], task.id)
    if record and #record == 19 then own.count, own.last, own.phase, own.cursor = read(">I6I6BI6", record) end
    own.before = own.count
    owners[task.id] = own
    counted[#counted + 1] = own
    return own
  end

  -- Counts messages that are stored for a task, which takes them.
  function tasks.admit(id, count)
    local task = tasks.find(id)
    task.total = task.total + count
    return task
  end

  -- Counts messages that became unacked, the last of which has this sequence.
  function tasks.gain(queue, task, count, sequence)
    local own = tasks.ownOf(queue, task)
    own.count, own.isChanged = own.count + count, true
    if sequence > own.last then own.last = sequence end
    tasks.touch(task)
  end

  -- Counts messages that are unacked no more, under `done`, `failed` or `cancelled`.
  function tasks.settle(queue, task, what, count)
    local own = tasks.ownOf(queue, task)
    own.count, own.isChanged = own.count - count, true
    task[what] = task[what] + count
    tasks.touch(task)
  end

  -- Messages that are removed because their task is cancelling. What they leave in collections is the caller's to remove.
  function tasks.withdraw(queue, task, count)
    local CLEARED = 78
    tasks.settle(queue, task, "cancelled", count)
    set(queue, CLEARED, field(queue, CLEARED) + count)
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
    tasks.gain(queue, task, 1, (read(">I6", place)))
    if task.failed > 0 or task.blamed ~= 1 then return end
    local texts = tasks.textsOf(task)
    texts[7], texts[8], task.hasNewTexts = texts[8], false, true
    task.blamed = texts[7] and 2 or 0
  end

  -- A message of a task moves to the dead letters. Answers with what these keep of it.
  function tasks.bury(queue, task, place, count, id, cause, reason)
    tasks.settle(queue, task, "failed", 1)
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

  -- All unacked messages of a queue were removed: those of tasks count as failed.
  function tasks.lose(key, life, name)
    local owners = call("HGETALL", key)
    if #owners == 0 then return end
    call("UNLINK", key)
    for index = 1, #owners, 2 do
      local task = tasks.find(owners[index])
      if task and task.status == 0 and #owners[index + 1] == 19 then
        task.failed = task.failed + read(">I6", owners[index + 1])
        tasks.blame(task, 4, "", 0, life, nil, nil, name)
        tasks.touch(task)
      end
    end
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

  local function judge(task)
    if task.status > 0 or task.sealed + task.cancelling == 0 or task.done + task.failed + task.cancelled < task.total then return end
    task.status = task.cancelling == 1 and 3 or (task.failed > 0 or task.producerFailed == 1) and 2 or 1
    task.finished = nowMs
    local keepMs = read(">I6", task.rest, 7 + 6 * task.status)
    call("ZREM", KEYS[DUE], "c" .. task.id, "p" .. task.id)
    tasks.attend("r", task.id, (nowMs + keepMs) * 1000)
    call("ZREMRANGEBYLEX", KEYS[QUEUES], "[" .. task.id .. "\0", "[" .. task.id .. "\0" .. string.rep("\255", 7))
  end

  -- The last thing of each run that may have changed a task.
  function tasks.conclude()
    for index = 1, #counted do
      local own = counted[index]
      local key = own.isChanged and KEYS[own.queue.base + OWNERS]
      if key and own.count > 0 then
        call("HSET", key, own.id, pack(">I6I6BI6", own.count, own.last, own.phase, own.cursor))
        if own.before == 0 then call("ZADD", KEYS[QUEUES], "0", own.id .. "\0" .. sub(own.queue.record, 10, 15)) end
      elseif key and own.before > 0 then
        call("HDEL", key, own.id)
      end
    end
    for index = 1, #touched do
      local task = touched[index]
      changed = true
      judge(task)
      if task.updated < nowMs then task.updated = nowMs end
      task.record = pack(FORM, 1, task.status, task.sealed, task.cancelling, task.producerFailed, task.started, task.blamed, task.number, task.total,
        task.done, task.failed, task.cancelled, task.deaths, task.updated, task.finished, task.rest)
      call("HSET", KEYS[RECORDS], task.id, task.record)
      if task.hasNewTexts then
        local pieces = {}
        for at = 1, 8 do
          local text = task.texts[at]
          pieces[at] = text and pack(">I4", #text + 1) .. text or "\0\0\0\0"
        end
        call("HSET", KEYS[TEXTS], task.id, table.concat(pieces))
      end
    end
  end

  return tasks
end
