-- Schema 2: tasks, pieces of work that own messages.
--
-- `message` and `place` are made anew, since their new column must stand before the payload and the reason: what follows a large value is
-- read only by going through all of it.

CREATE TABLE message_2 (
  key INTEGER PRIMARY KEY,
  enqueued_at INTEGER NOT NULL,     -- wall clock, milliseconds
  placed INTEGER NOT NULL,          -- 1: was delayed at enqueue, or redriven, so that its row in `place` tells its state, not the head
  id TEXT,                          -- NULL: the id is made from slot and sequence
  task INTEGER,                     -- number of the task that owns it
  data BLOB NOT NULL
) STRICT;

INSERT INTO message_2 (key, enqueued_at, placed, id, data) SELECT key, enqueued_at, placed, id, data FROM message ORDER BY key;
DROP TABLE message;
ALTER TABLE message_2 RENAME TO message;

CREATE TABLE place_2 (
  key INTEGER PRIMARY KEY,
  state INTEGER NOT NULL,           -- 1 processing, 2 ready (given back), 3 delayed
  due INTEGER,                      -- monotonic milliseconds of this boot: end of the lease, or not-before time; NULL when ready
  delivery_count INTEGER NOT NULL,
  token INTEGER,                    -- of the current delivery
  session INTEGER,                  -- who holds it; NULL: whoever knows the receipt
  due_at INTEGER,                   -- not-before time by the wall clock, milliseconds: for the next boot
  chosen INTEGER NOT NULL,          -- 1: the message's id is in `chosen_id`
  task INTEGER,                     -- as in `message`, so that an ack need not read that
  reason TEXT
) STRICT;

INSERT INTO place_2 (key, state, due, delivery_count, token, session, due_at, chosen, reason)
SELECT key, state, due, delivery_count, token, session, due_at, chosen, reason FROM place ORDER BY key;
DROP TABLE place;
ALTER TABLE place_2 RENAME TO place;
CREATE INDEX place_due ON place (key >> 46, due) WHERE due IS NOT NULL;
CREATE INDEX place_ready ON place (key) WHERE state = 2;

-- The number stays when the record of the task goes, and is no other task's ever.
ALTER TABLE dead_letter ADD COLUMN task INTEGER;
CREATE INDEX dead_letter_task ON dead_letter (task) WHERE task IS NOT NULL;

-- Dead letters of a task lie in many queues, which they name by their lives.
CREATE UNIQUE INDEX queue_life ON queue (life);

INSERT INTO store (name, value) VALUES ('task', 0), ('folded', 0);

-- One row per task. What dequeues ask comes first, what may be large last.
CREATE TABLE task (
  number INTEGER PRIMARY KEY,       -- counted in `store`, never used again
  id TEXT NOT NULL UNIQUE,
  status TEXT,                      -- completed, failed or cancelled; NULL while it goes on
  sealed INTEGER NOT NULL,          -- 1: its producer adds no more
  started INTEGER NOT NULL DEFAULT 0,     -- 1: one of its messages was handed out
  cancelling INTEGER NOT NULL DEFAULT 0,  -- 1: it was cancelled
  done INTEGER NOT NULL DEFAULT 0,        -- this and the next two: when it has ended; see `task_part`
  failed INTEGER NOT NULL DEFAULT 0,
  cancelled INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,      -- this and the next three: wall clock, milliseconds
  updated_at INTEGER NOT NULL,
  finished_at INTEGER,
  forget_at INTEGER,                -- when its record is to go
  keep_completed INTEGER NOT NULL,  -- how long it is kept after such an end, milliseconds
  keep_failed INTEGER NOT NULL,
  keep_cancelled INTEGER NOT NULL,
  producer TEXT,                    -- token of its producer
  producer_due INTEGER,             -- end of the producer's lease, monotonic milliseconds of this boot; NULL once sealed
  producer_session INTEGER,         -- the producer's process; NULL: whoever knows the token, or sealed
  search_slot INTEGER,              -- how far the search for its pending messages has come after a cancel; NULL: none are left
  search_sequence INTEGER,
  type TEXT NOT NULL,
  error_queue TEXT,                 -- of the first failure, if a message failed
  error_message TEXT,
  error_reason TEXT,                -- the first failure, or why it was cancelled, unless the producer's came first
  producer_error TEXT,              -- why its producer failed
  stage TEXT,
  retry_of TEXT,
  resource TEXT,
  result TEXT,                      -- this and the next: JSON
  meta TEXT
) STRICT;

CREATE INDEX task_producer_due ON task (producer_due) WHERE producer_due IS NOT NULL;
CREATE INDEX task_producer_session ON task (producer_session) WHERE producer_session IS NOT NULL;
CREATE INDEX task_search ON task (number) WHERE search_slot IS NOT NULL;
CREATE INDEX task_forget ON task (forget_at) WHERE forget_at IS NOT NULL;

-- The counters of a task that goes on, by the slot of the queue, so that a clear finds the tasks it concerns; to them is to be added what
-- `task_change` says.
CREATE TABLE task_part (
  task INTEGER NOT NULL,
  slot INTEGER NOT NULL,
  unacked INTEGER NOT NULL,
  done INTEGER NOT NULL,
  failed INTEGER NOT NULL,          -- below 0 where dead letters of another slot of the queue were redriven
  cancelled INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,      -- wall clock, milliseconds
  PRIMARY KEY (task, slot)
) STRICT, WITHOUT ROWID;

CREATE INDEX task_part_slot ON task_part (slot);

-- What was counted since the last fold into `task_part`, in the order of the commits; `folded` in `store` is the last number folded. Rows of
-- tasks that have ended since mean nothing.
CREATE TABLE task_change (
  number INTEGER PRIMARY KEY,
  task INTEGER NOT NULL,
  slot INTEGER NOT NULL,
  unacked INTEGER NOT NULL,         -- this and the next three: what is to be added
  done INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  cancelled INTEGER NOT NULL,
  changed_at INTEGER NOT NULL       -- wall clock, milliseconds
) STRICT;
