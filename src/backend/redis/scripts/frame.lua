--[[
Frame: the first part of every script that changes something. It makes a repeat safe: a session (one open store) has a few
lanes, and on each lane one request at a time with an ascending number. The last number and answer of each lane are kept; the same
number again gets that answer, and a smaller one (a request that waited in a socket while its sender went on) is refused.

KEYS  1 session (hash: n<lane> -> number, a<lane> -> number and answer)
      2 wake (sorted set: life of a queue -> when something of it may be due, in microseconds)
ARGV  1 header: lane (1 byte), number (6), how long ids are remembered in ms (6), how long a silent session is kept in ms (4),
        whether to renew that (1)
      2 id of the store
      3 channel on which changes are told
Errors  UNCERTAIN, SUPERSEDED: see below. Any error before `changed` is set means that nothing was written.
]]
local call = redis.call
local pack, read = struct.pack, struct.unpack
local sub, byte, rep, format = string.sub, string.byte, string.rep, string.format
local concat, floor = table.concat, math.floor

-- The record of a queue: version, store, life, sequence, enqueued, delivered, acked, returned, dead-lettered, order of death, largest
-- entry, wake in microseconds (0: never), clears, cleared messages, deliveries at most, created at, in ms; its name follows.
local RECORD = ">Bc8I6I6I6I6I6I6I6I6I6I8I6I6I4I6"
local RECORD_BYTES = 93

local time = call("TIME")
local now = time[1] * 1000000 + time[2]
local nowMs = floor(now / 1000)
local nowText = format("%.0f", now)

local lane, number, rememberMs, sessionMs, renew = read(">BI6I6I4B", ARGV[1])
local numberText = sub(ARGV[1], 2, 7)
local lastField, answerField = "n" .. lane, "a" .. lane

-- The answer of an earlier run of this very request, if there was one.
local stored
local last = call("HGET", KEYS[1], lastField)
if last == numberText then
  local kept = call("HGET", KEYS[1], answerField)
  if not kept or sub(kept, 1, 6) ~= numberText then
    return redis.error_reply("UNCERTAIN an earlier run of this request broke off")
  end
  stored = sub(kept, 7)
elseif last and (#last ~= 6 or read(">I6", last) > number) then
  return redis.error_reply("SUPERSEDED a later request of this session has been answered")
end

-- full: the server's memory is full, so nothing may grow; what removes first is still allowed to run.
local begun, full, changed, refused = false, false, false, nil

-- Called before the first write. It registers the request and so finds out whether the server takes writes at all.
local function begin()
  if begun then return end
  begun = true
  local answer = redis.pcall("HSET", KEYS[1], lastField, numberText)
  if type(answer) == "table" and answer.err then
    if not string.find(answer.err, "OOM", 1, true) then
      refused = answer.err
      error(refused, 0)
    end
    full = true
  end
end

-- Called after the last write, with the answer that a repeat shall get and the names of the changed queues, joined by NUL.
local function finish(answer, names)
  if begun and (changed or not full) then
    call("HSET", KEYS[1], lastField, numberText, answerField, numberText .. answer)
    if renew == 1 or not last then call("PEXPIRE", KEYS[1], sessionMs) end
  end
  -- Nobody's call fails because it may not be told of.
  if changed then redis.pcall("PUBLISH", ARGV[3], names) end
end

-- Runs a command with many arguments in pieces that fit Lua's stack; `size` arguments belong together.
local function spread(command, key, arguments, count, size)
  local step = 4000 - 4000 % size
  for first = 1, count, step do
    local final = first + step - 1
    if final > count then final = count end
    call(command, key, unpack(arguments, first, final))
  end
end
