--[[
Changes of tasks: update (kind 41), seal (42), renew the leases of producers (43), remove the record (46), what is due (47). Follows tasks.lua.
Body    41, 42, 46 begin with length (1 byte) and id. 41: then stage, meta, result: length and one (4) and text each, or 0 to leave it.
        42: then token of the producer (6), or 0 for whoever asks; 1 if the producer failed (1) and why. 43: per item length (1) and id, token (6),
        lease in ms (4). 47: per name in task due: length (1) and name
Answer  41: 0; task. 42: 0, 0 sealed or 1 stale; task. 43: 0, per item 1 renewed or 0 stale. 46: 0. 47: 0, 1 if more is due or 0.
        5: there is no such task, or it has ended. 6: it goes on, and 4 it is cancelling, 5 pending, 6 running (1 byte), and its id
Atomic because a task is judged with what changed in it.
]]
local function idAt(position)
  return read(">Bc0", ARGV[4], position)
end

-- The answer that refuses what only a task that has ended allows.
local function activeAnswer(task)
  local shown = shownTask(task.id, task.record, KEYS[9], KEYS[8])
  local total, done, failed, cancelled = read(">I6I6I6I6", shown, 14)
  local isRunning = byte(shown, 6) == 1 and done + failed + cancelled < total
  return "\6" .. (task.cancelling == 1 and "\4" or isRunning and "\6" or "\5") .. task.id
end

transitions[41] = function(position)
  local id
  id, position = idAt(position)
  local task = useTasks().find(id)
  if not task or task.status > 0 then return tasks.refusal(id) end
  begin()
  if full then error("OOM the memory of the server is full", 0) end
  local texts = tasks.textsOf(task)
  for index = 4, 6 do
    local length = read(">I4", ARGV[4], position)
    if length > 0 then texts[index], task.hasNewTexts = sub(ARGV[4], position + 4, position + 2 + length), true end
    position = position + 4 + math.max(0, length - 1)
  end
  tasks.touch(task)
  return "\0", task
end

transitions[42] = function(position, stop)
  local id
  id, position = idAt(position)
  local task = useTasks().find(id)
  if not task then return "\5\0" .. id end
  local token, failed = read(">I6B", ARGV[4], position)
  if task.sealed == 1 or task.status > 0 or (token > 0 and token ~= read(">I6", task.rest, 7)) then return "\0\1", task end
  tasks.seal(task)
  if failed == 1 then
    task.producerFailed = 1
    tasks.blame(task, 7, sub(ARGV[4], position + 7, stop - 1))
  end
  return "\0\0", task
end

transitions[43] = function(position, stop)
  local DUE, outcomes, request = 6, { "\0" }, ARGV[4]
  useTasks()
  while position < stop do
    local id, token, leaseMs
    id, token, leaseMs, position = read(">Bc0I6I4", request, position)
    local task, outcome = tasks.find(id), "\0"
    if task and task.sealed == 0 and token > 0 and token == read(">I6", task.rest, 7) then
      -- Removed first, since a full memory refuses a write that may grow unless one that removes came before.
      call("ZREM", KEYS[DUE], "p" .. id)
      tasks.attend("p", id, now + leaseMs * 1000)
      changed, outcome = true, "\1"
    end
    outcomes[#outcomes + 1] = outcome
  end
  return table.concat(outcomes)
end

transitions[46] = function(position)
  local id = idAt(position)
  local task = useTasks().find(id)
  if not task then return "\5\0" .. id end
  if task.status == 0 then return activeAnswer(task) end
  tasks.remove(task)
  return "\0"
end

transitions[47] = function(position, stop)
  local DUE, request, more = 6, ARGV[4], "\0"
  useTasks()
  while position < stop do
    local member
    member, position = read(">Bc0", request, position)
    local moment, kind, name = tonumber(call("ZSCORE", KEYS[DUE], member)), sub(member, 1, 1), sub(member, 2)
    if moment and moment <= now then
      local task = kind ~= "f" and tasks.find(name)
      if kind == "p" and task and task.status == 0 and task.sealed == 0 then
        tasks.seal(task)
        task.producerFailed = 1
        tasks.blame(task, 5, "")
      elseif kind == "r" and task and task.status > 0 then
        tasks.remove(task)
      elseif kind == "f" and tasks.forgetFailures(name, 500) then
        changed, more = true, "\1"
      else
        -- Nothing of it is due any more.
        call("ZREM", KEYS[DUE], member)
        changed = true
      end
    end
  end
  return "\0" .. more
end
