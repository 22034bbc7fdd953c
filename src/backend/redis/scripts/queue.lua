--[[
Queue: what all transitions know of a queue and of its messages. Follows frame.lua.

KEYS  from 11 on, thirteen per queue of the call ("group"):
       1 queue    (string) the record below                     8 leases  (sorted set: lease end in microseconds -> holding)
       2 pending  (list)   entries never delivered              9 held    (sorted set of holdings, by place) those in processing
       3 bodies   (hash: place -> entry) all others            10 dead    (sorted set: order of death -> place)
       4 states   (hash: place -> state)                       11 graves  (hash: place -> dead letter)
       5 returned (sorted set by place) available again        12 memory  (hash: i<id>, r<request id> -> what is remembered)
       6 delayed  (sorted set: due time in us -> place)        13 forget  (sorted set: when in microseconds -> i<id>, r<id>)
       7 later    (sorted set by place) those delayed

place       sequence number of a message as 6 bytes, big end first, so that text order is queue order ("by place": all scores are 0)
holding     place (6) and token (6) of the current delivery, number of the task (6) if it has one: a receipt is current if, and only if, its
            holding is in leases
entry       1 (1 byte), place (6), enqueued at, in ms (6), flags (1; bit 0: has a chosen id, bit 1: has a task) [number of the task (6)]
            [length (1), id] [length (1), task id], payload
state       delivery count (4; its highest bit: has a task), length (1) and chosen id, [length (1), task id], last reason. Without one:
            delivered once if it is held, and its task, if any, is the one in its holding; else never delivered, no task; no id, no reason
dead letter cause (1; plus 16 when it has a task), died at, in ms (6), delivery count (4), [number of the task (6), which of its failures (6)],
            length (2) and reason, entry
cause       0 the reason says it, 1 deliveries used up, 2 the record could not be read, 3 its payload was missing
record      from byte: 1 version (1), 2 store (8), 10 life (6), 16 sequence (6), 22 enqueued (6), 28 delivered (6), 34 acked (6), 40 returned (6),
            46 dead-lettered (6), 52 order of death (6), 58 bytes of the largest entry in the list (6), 64 wake in microseconds, 0 for never (8),
            72 clears (6), 78 cleared messages (6), 84 deliveries at most (4), 88 created at, in ms (6), 94 name

An operation's answer begins with 0 done, 1 gone, 2 full, 3 ask again, 4 failed, 5 a task takes no more work: then 0 there is none, its status,
or 4 it is cancelling (1 byte), and its id.
]]
-- The queues of this call by group; the operations by kind; how a repeat makes up an answer that was not kept whole.
local queues, transitions, replays = {}, {}, {}
-- What tasks.lua knows, once it is needed.
local tasks

local function load(group)
  local base = 10 + (group - 1) * 13
  local record = call("GET", KEYS[base + 1])
  -- After a FLUSHALL another store may have given the same life to another queue.
  if not record or sub(record, 2, 9) ~= ARGV[2] then return false end
  return { base = base, record = record, fault = (#record < 94 or byte(record) ~= 1) and "CORRUPT the record of a queue cannot be read" }
end

-- A number of the record, as it is now.
local function field(queue, at)
  local value = queue[at]
  if not value then
    value = read(">I6", queue.record, at)
    queue[at] = value
  end
  return value
end

-- Changes a number of the record.
local function set(queue, at, value)
  queue[at] = value
  call("SETRANGE", KEYS[queue.base + 1], at - 1, pack(">I6", value))
  changed, queue.changed = true, true
end
