--[[
Frame: the first part of every script that changes something. It makes a repeat safe: a session (one open store) has a few
lanes, and on each lane one request at a time with an ascending number. The last number and answer of each lane are kept; the same
number again gets that answer, and a smaller one (a request that waited in a socket while its sender went on) is refused.

KEYS  1 session (hash: lane -> number (6 bytes) and answer)
      2 wake (sorted set: life of a queue -> when something of it may be due, in microseconds)
      3 tasks (hash: id -> record), 4 task texts (hash: id -> texts), 5 task order (sorted set: number -> id), 6 task due (sorted set: when
        in microseconds -> what), 7 task failures, 8 task queues (sorted sets, by text), 9 task counts (hash), 10 task searches (set):
        tasks.lua tells of them
ARGV  1 header: lane (1 byte), number (6), how long ids are remembered in ms (6), how long a silent session is kept in ms (4),
        bits: 1 to renew that, 2 an earlier copy of this call may still be under way (1)
      2 id of the store
      3 channel on which changes are told
Errors  UNCERTAIN, SUPERSEDED: see below. Any error means that nothing was written.

Functions are made anew at each run and cost about a microsecond, so what is rarely needed is made inside a function that is called
then (memory.lua, settle.lua), and constants stand in the functions that use them.
]]
local call, pack, read, sub, byte = redis.call, struct.pack, struct.unpack, string.sub, string.byte
local header = ARGV[1]
local lane, numberText = sub(header, 1, 1), sub(header, 2, 7)

-- The answer of an earlier run of this very request, if there was one.
local stored
local last = call("HGET", KEYS[1], lane)
if last then
  local number = sub(last, 1, 6)
  if number == numberText then
    if #last == 6 then return redis.error_reply("UNCERTAIN an earlier run of this request broke off") end
    stored = sub(last, 7)
  elseif #last < 6 or read(">I6", number) > read(">I6", numberText) then
    return redis.error_reply("SUPERSEDED a later request of this session has been answered")
  end
end

-- changed: something was written. full: the server's memory is full, so nothing may grow; what removes first may still run.
local begun, full, changed = false, false, false
local now, nowMs

-- The server's time, in microseconds and in milliseconds.
local function readClock()
  if not now then
    local time = call("TIME")
    now = time[1] * 1000000 + time[2]
    nowMs = math.floor(now / 1000)
  end
end

-- Called before the first write of what grows. It registers the request and so finds out whether the memory is full.
local function begin()
  if begun then return end
  begun = true
  local answer = redis.pcall("HSET", KEYS[1], lane, numberText)
  if type(answer) == "table" and answer.err then
    if not string.find(answer.err, "OOM", 1, true) then error(answer.err, 0) end
    full = true
  end
end

local sessionMs, bits = read(">I4B", header, 14)
local isRepeat = bits > 1

-- Called after the last write, with the answer that a repeat shall get and the names of the changed queues, joined by NUL. Of a call that was sent
-- more than once each answer is kept, also one that changed nothing: a copy that comes late must not act after its caller has that answer. Where
-- nothing was changed and that cannot be kept, it answers with an error.
local function finish(answer, names)
  if changed or isRepeat or (begun and not full) then
    local kept = (changed and call or redis.pcall)("HSET", KEYS[1], lane, numberText .. answer)
    if type(kept) == "table" then return redis.error_reply("UNCERTAIN the memory of the server is full, so that a late copy of this call would not be known") end
    if bits % 2 == 1 or not last then call("PEXPIRE", KEYS[1], sessionMs) end
  end
  -- Nobody's call fails because it may not be told of.
  if changed then redis.pcall("PUBLISH", ARGV[3], names) end
end

-- Runs a command with many arguments in pieces that fit Lua's stack; `size` arguments belong together.
local function spread(command, key, arguments, count, size)
  if count <= 4000 then return call(command, key, unpack(arguments, 1, count)) end
  local step = 4000 - 4000 % size
  for first = 1, count, step do
    call(command, key, unpack(arguments, first, math.min(first + step - 1, count)))
  end
end
