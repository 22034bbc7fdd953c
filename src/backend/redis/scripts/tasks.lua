--[[
Tasks: counts of messages by the task that owns them, and the judgement whether a task has ended. Follows task-care.lua. What is read of a
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
-- To be called, for the first time, before anything is removed: it fails when somebody put another type where it needs to write.
local function useTasks()
  if tasks then return tasks end
  local RECORDS, DUE, QUEUES, OWNERS = 3, 6, 8, 14
  local FORM = ">BBBBBBBI6I6I6I6I6I6I6I6c30"
  readClock()
  call("HLEN", KEYS[RECORDS])
  call("ZCARD", KEYS[DUE])
  call("ZCARD", KEYS[QUEUES])
  local known, touched, counted = {}, {}, {}
  tasks = setmetatable({}, { __index = function(_, name)
    addTaskCare(known)
    return rawget(tasks, name)
  end })

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
      if task.status == 0 and task.sealed + task.cancelling > 0 and task.done + task.failed + task.cancelled >= task.total then tasks.finish(task) end
      if task.updated < nowMs then task.updated = nowMs end
      task.record = pack(FORM, 1, task.status, task.sealed, task.cancelling, task.producerFailed, task.started, task.blamed, task.number, task.total,
        task.done, task.failed, task.cancelled, task.deaths, task.updated, task.finished, task.rest)
      call("HSET", KEYS[RECORDS], task.id, task.record)
      if task.hasNewTexts then tasks.writeTexts(task) end
    end
  end

  return tasks
end
