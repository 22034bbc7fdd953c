--[[
Tasks: counts of messages by the task that owns them, and the judgement whether a task has ended. Follows task-care.lua. What is read of a
task is kept for the run, and written once at its end (`conclude`), when it is also judged: so no half of a step is.

task record   from byte: 1 version (1), 2 status (1; 0 goes on, 1 completed, 2 failed, 3 cancelled), 3 sealed, 4 cancelling, 5 producer failed,
              6 handed out (1 each), 7 blamed (1; 0 no error, 1 the error is of a message, 2 it is another), 8 number (6), 14 total (6), 20 done (6),
              26 failed (6), 32 cancelled (6), 38 failures ever (6), 44 updated at, in ms (6), 50 finished at, in ms, or 0 (6), 56 created at, in
              ms (6), 62 token of its producer, or 0 (6), 68 how long it is kept, in ms, as completed (6), failed (6), cancelled (6)
task counts   while a task goes on, number (6) and life (6) of each queue that had messages of it -> from byte: 1 unacked messages in it (6),
              7 updated at, in ms (6), 13 total that its record does not tell yet (6), 19 first place in the list, or 0 (6), 25 last place (6),
              while cancelling, how far the search for pending ones came: 31 phase (1; 1 delayed ones, 2 returned ones, 3 the list, 4 done) and
              32 place after which (6); 38 task id. So what happens most touches one field: until a task has ended, total, done, updated at and handed out of its record are to be completed with these (task-shown.lua). Also: life (6) -> last place of a message of a
              task that was handed out from the list (6): from its first place on, a task has been handed out; then 66 zeros, which make it so
              long that Redis finds each field of the hash by itself, instead of one after the other in a packed list
texts         eight times length and one (4), or 0 where there is none, and text: type, resource, retry of, stage, meta, result, error, error
              of the producer when another came before
error         kind (1; 0 to 3 as the cause of a dead letter, 4 removed with its queue, 5 producer gone, 6 in the words of who cancelled, 7 in the
              words of the producer), delivery count (4), life of the queue (6), place (6), length (1) and chosen id, length (2) and name of the
              queue, reason
order         task id by number. due: p<id> end of the producer's lease, c<id> cancelling goes on, r<id> the record is to be removed, f<number>
              entries of failures are to be removed, all in microseconds
failures      task number (6), which failure of the task (6), life (6), place (6): its dead letters, by text
task queues   per field of counts two, by text: task id, NUL, life (6); and NUL, life (6), number (6)
searches      ids of tasks that are cancelling and may have pending messages: only while there are some may a dequeue meet one
]]
-- To be called, for the first time, before anything is removed: it fails when somebody put another type where it needs to write.
local function useTasks()
  if tasks then return tasks end
  local RECORDS, DUE, QUEUES, COUNTS, SEARCHES = 3, 6, 8, 9, 10
  local FORM, COUNT_FORM = ">BBBBBBBI6I6I6I6I6I6I6I6c30", ">I6I6I6I6I6BI6"
  readClock()
  call("HLEN", KEYS[RECORDS])
  call("ZCARD", KEYS[DUE])
  call("ZCARD", KEYS[QUEUES])
  call("HLEN", KEYS[COUNTS])
  call("SCARD", KEYS[SEARCHES])
  -- Tasks by id; those to be judged, those whose record is to be written; what queues count: by field, one after the other, by task.
  local known, judged, touched, counts, counted, owned = {}, {}, {}, {}, {}, {}
  tasks = setmetatable({}, { __index = function(_, name)
    addTaskCare(known, owned)
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

  -- At the end of this run it is seen whether a task has ended.
  function tasks.judge(task)
    if task.isJudged then return end
    task.isJudged = true
    judged[#judged + 1] = task
  end

  -- The record of a task is written at the end of this run.
  function tasks.touch(task)
    tasks.judge(task)
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

  local function note(own)
    counts[own.field] = own
    counted[#counted + 1] = own
    local owns = owned[own.id]
    if owns then owns[#owns + 1] = own else owned[own.id] = { own } end
    return own
  end

  -- What a queue counts of a task, by number of the task and life of the queue; nothing where it counts nothing.
  function tasks.countAt(number, life)
    local field = number .. life
    local own = counts[field]
    if own ~= nil then return own end
    local record = call("HGET", KEYS[COUNTS], field)
    if not record or #record < 38 then
      counts[field] = false
      return false
    end
    own = { field = field, life = life, id = sub(record, 38) }
    own.count, own.updated, own.total, own.first, own.last, own.phase, own.cursor = read(COUNT_FORM, record)
    return note(own)
  end

  -- The id of the task in a holding, or "".
  function tasks.idIn(queue, holding)
    local own = #holding == 18 and tasks.countAt(sub(holding, 13), sub(queue.record, 10, 15))
    return own and own.id or ""
  end

  -- What a queue counts of a task that goes on.
  function tasks.ownOf(queue, task)
    local owners = queue.owners
    if not owners then
      owners = {}
      queue.owners = owners
    end
    local own = owners[task.id]
    if own then return own end
    local number, life = pack(">I6", task.number), sub(queue.record, 10, 15)
    own = tasks.countAt(number, life)
    own = own or note({ field = number .. life, life = life, id = task.id, count = 0, updated = 0, total = 0, first = 0, last = 0, phase = 0,
      cursor = 0, isNew = true })
    owners[task.id] = own
    return own
  end

  -- Counts messages that became unacked, the last of which has this sequence; `first` is that of the first in the list, if any. `isOld` for those
  -- that its total tells already.
  function tasks.gain(queue, task, count, sequence, first, isOld)
    local own = tasks.ownOf(queue, task)
    own.count, own.isChanged = own.count + count, true
    if not isOld then own.total = own.total + count end
    if first and own.first == 0 then own.first = first end
    if sequence > own.last then own.last = sequence end
    tasks.judge(task)
  end

  -- Counts messages that are unacked no more. Those that are neither `failed` nor `cancelled` are done.
  function tasks.settle(queue, task, count, what)
    local own = tasks.ownOf(queue, task)
    own.count, own.isChanged = math.max(0, own.count - count), true
    if what then
      task[what] = task[what] + count
      tasks.touch(task)
    else
      tasks.judge(task)
    end
  end

  -- The last thing of each run that may have changed a task; or of each operation, where these answer with tasks.
  function tasks.conclude()
    for index = 1, #judged do
      local task = judged[index]
      changed = true
      if task.status == 0 and task.sealed + task.cancelling > 0 then
        local isOver, owns = true, owned[task.id] or {}
        for other = 1, #owns do isOver = isOver and owns[other].count == 0 end
        if isOver then tasks.finish(task) end
      end
    end
    for index = 1, #counted do
      local own = counted[index]
      if own.isChanged and not own.isGone then
        call("HSET", KEYS[COUNTS], own.field, pack(COUNT_FORM, own.count, math.max(nowMs, own.updated), own.total, own.first, own.last, own.phase, own.cursor) .. own.id)
        if own.isNew then call("HSETNX", KEYS[COUNTS], own.life, string.rep("\0", 72)) end
        if own.isNew then call("ZADD", KEYS[QUEUES], "0", own.id .. "\0" .. own.life, "0", "\0" .. own.life .. sub(own.field, 1, 6)) end
        own.isChanged, own.isNew = false, false
      end
    end
    for index = 1, #touched do
      local task = touched[index]
      if task.updated < nowMs then task.updated = nowMs end
      task.record = pack(FORM, 1, task.status, task.sealed, task.cancelling, task.producerFailed, task.started, task.blamed, task.number, task.total,
        task.done, task.failed, task.cancelled, task.deaths, task.updated, task.finished, task.rest)
      call("HSET", KEYS[RECORDS], task.id, task.record)
      if task.hasNewTexts then tasks.writeTexts(task) end
      task.isTouched, task.hasNewTexts = false, false
    end
    for index = 1, #judged do judged[index].isJudged = false end
    judged, touched = {}, {}
  end

  return tasks
end
