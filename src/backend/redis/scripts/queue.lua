--[[
Queue: what all transitions know of a queue and of its messages. Follows frame.lua.

KEYS  from 3 on, thirteen per queue of the call ("group"):
       1 queue    (string) the record below                     8 leases  (sorted set: lease end in microseconds -> place)
       2 pending  (list)   entries never delivered              9 held    (sorted set by place) those in processing
       3 bodies   (hash: place -> entry) all others            10 dead    (sorted set: order of death -> place)
       4 states   (hash: place -> state)                       11 graves  (hash: place -> dead letter)
       5 returned (sorted set by place) available again        12 memory  (hash: i<id>, r<request id> -> what is remembered)
       6 delayed  (sorted set: due time in us -> place)        13 forget  (sorted set: when in microseconds -> i<id>, r<id>)
       7 later    (sorted set by place) those delayed

A place is the sequence number of a message as 6 bytes, big end first, so that text order is queue order ("by place": all scores 0).
entry: 1 (1 byte), place (6), enqueued at, in ms (6), flags (1; bit 0: has a chosen id) [length (1), id], payload
state: token of the current delivery (6, zeros: none), delivery count (4), length (1) and chosen id, last reason
dead letter: cause (1), died at, in ms (6), delivery count (4), length (2) and reason, entry
causes: 0 the reason says it, 1 deliveries used up, 2 the record could not be read, 3 its payload was missing
]]
local PENDING, BODIES, STATES, RETURNED, DELAYED, LATER, LEASES, HELD, DEAD, GRAVES, MEMORY, FORGET = 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13
local KEYS_OF_QUEUE, KEYS_BEFORE = 13, 2
local SIZE_OF = { false, "LLEN", "HLEN", "HLEN", "ZCARD", "ZCARD", "ZCARD", "ZCARD", "ZCARD", "ZCARD", "HLEN", "HLEN", "ZCARD" }
local NO_TOKEN = rep("\0", 6)

-- First byte of each operation's answer.
local DONE, GONE, FULL, AGAIN, FAILED = "\0", "\1", "\2", "\3", "\4"

-- The queues of this call by group; the operations by kind; how a repeat makes up an answer that was not kept whole.
local queues, transitions, replays = {}, {}, {}

local function load(group)
  local base = KEYS_BEFORE + (group - 1) * KEYS_OF_QUEUE
  local record = call("GET", KEYS[base + 1])
  if not record then return false end
  if #record <= RECORD_BYTES or byte(record) ~= 1 then error("CORRUPT the record of a queue cannot be read", 0) end
  local queue = { base = base, name = sub(record, RECORD_BYTES + 1), sound = {} }
  local _, store
  _, store, queue.life, queue.sequence, queue.enqueued, queue.delivered, queue.acked, queue.returned, queue.deadLettered, queue.deaths,
    queue.largest, queue.wake, queue.clears, queue.cleared, queue.maxDeliveries, queue.createdMs = read(RECORD, record)
  -- After a FLUSHALL another store may have given the same life to another queue.
  if store ~= ARGV[2] then return false end
  queue.oldWake = queue.wake
  return queue
end

local function save(queue)
  call("SET", KEYS[queue.base + 1], pack(RECORD, 1, ARGV[2], queue.life, queue.sequence, queue.enqueued, queue.delivered, queue.acked,
    queue.returned, queue.deadLettered, queue.deaths, queue.largest, queue.wake, queue.clears, queue.cleared, queue.maxDeliveries, queue.createdMs)
    .. queue.name)
  if queue.wake == queue.oldWake then return end
  if queue.wake == 0 then call("ZREM", KEYS[2], queue.life) else call("ZADD", KEYS[2], format("%.0f", queue.wake), queue.life) end
end

-- Something of this queue may be due at `moment`, in microseconds. The wake time is never later than the first such moment.
local function attend(queue, moment)
  if queue.wake == 0 or moment < queue.wake then queue.wake = moment end
end

-- Reads the size of each key, and so fails, before anything is written, when somebody put another type there.
local function check(queue, ...)
  for index = 1, select("#", ...) do
    local key = select(index, ...)
    if not queue.sound[key] then
      call(SIZE_OF[key], KEYS[queue.base + key])
      queue.sound[key] = true
    end
  end
end

local function note(queue)
  queue.dirty, changed = true, true
end

-- The place of an entry, and its chosen id or "", or nothing when it is none of ours.
local function examine(queue, entry)
  if #entry < 14 or byte(entry) ~= 1 then return end
  local sequence, flags, length = read(">I6", entry, 2), byte(entry, 14), byte(entry, 15)
  if sequence == 0 or sequence > queue.sequence or flags > 1 then return end
  if flags == 0 then return sub(entry, 2, 7), "" end
  if not length or length == 0 or #entry < 15 + length then return end
  return sub(entry, 2, 7), sub(entry, 16, 15 + length)
end

local function makeState(token, count, id, reason)
  return token .. pack(">I4B", count, #id) .. id .. reason
end

-- Delivery count, chosen id and last reason; a message without a state was never delivered.
local function readState(state)
  if not state or #state < 11 then return 0, "", "" end
  local count, length = read(">I4B", state, 7)
  return count, sub(state, 12, 11 + length), sub(state, 12 + length)
end
