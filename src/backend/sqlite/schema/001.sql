-- Schema 1 of a QueueFS store. Run once, in one transaction that holds the write lock.
--
-- A message's key is slot << 46 | sequence: the slot is a number of its queue (at most 131,071 at once), the sequence its place in the
-- queue. So one small integer key gives queue order without a second index. 2^46 places per slot are ten million messages a second for
-- 81 days, or ten thousand for 223 years, and a slot that is used again goes on counting where it stopped: no key is ever used twice.
--
-- A message that nobody has touched has a row in `message` only, behind its queue's `head`. A message that was handed out, given back or
-- delayed also has a row in `place`; so a dequeue and a nack move no payload.

CREATE TABLE store (
  name TEXT PRIMARY KEY,
  value ANY NOT NULL
) STRICT, WITHOUT ROWID;

-- One row per queue, with its counters: the status of a queue is one row, whatever its depth.
-- pending = untouched + ready + delayed; untouched is derived.
CREATE TABLE queue (
  slot INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  life INTEGER NOT NULL,            -- differs between queues that had the same name one after the other
  created_at INTEGER NOT NULL,      -- wall clock, milliseconds
  max_deliveries INTEGER NOT NULL,
  head INTEGER NOT NULL,            -- sequence of the last untouched message that was handed out
  tail INTEGER NOT NULL,            -- sequence of the last message enqueued
  pending INTEGER NOT NULL DEFAULT 0,
  processing INTEGER NOT NULL DEFAULT 0,
  ready INTEGER NOT NULL DEFAULT 0,
  delayed INTEGER NOT NULL DEFAULT 0,
  dead INTEGER NOT NULL DEFAULT 0,
  enqueued INTEGER NOT NULL DEFAULT 0,
  delivered INTEGER NOT NULL DEFAULT 0,
  acked INTEGER NOT NULL DEFAULT 0,
  returned INTEGER NOT NULL DEFAULT 0,
  dead_lettered INTEGER NOT NULL DEFAULT 0,
  cleared INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Slots that no queue has now. `emptying`: rows of an earlier life are still being deleted, step by step.
CREATE TABLE spare_slot (
  slot INTEGER PRIMARY KEY,
  tail INTEGER NOT NULL,
  emptying INTEGER NOT NULL,
  life INTEGER                      -- of a removed queue: what is remembered of it goes too
) STRICT;

CREATE INDEX spare_slot_emptying ON spare_slot (slot) WHERE emptying = 1;

-- All unacked messages.
CREATE TABLE message (
  key INTEGER PRIMARY KEY,
  enqueued_at INTEGER NOT NULL,     -- wall clock, milliseconds
  placed INTEGER NOT NULL,          -- 1: was delayed at enqueue, or redriven, so that its row in `place` tells its state, not the head
  id TEXT,                          -- NULL: the id is made from slot and sequence
  data BLOB NOT NULL
) STRICT;

-- State of the messages that were touched.
CREATE TABLE place (
  key INTEGER PRIMARY KEY,
  state INTEGER NOT NULL,           -- 1 processing, 2 ready (given back), 3 delayed
  due INTEGER,                      -- monotonic milliseconds of this boot: end of the lease, or not-before time; NULL when ready
  delivery_count INTEGER NOT NULL,
  token INTEGER,                    -- of the current delivery
  session INTEGER,                  -- who holds it; NULL: whoever knows the receipt
  due_at INTEGER,                   -- not-before time by the wall clock, milliseconds: for the next boot
  chosen INTEGER NOT NULL,          -- 1: the message's id is in `chosen_id`
  reason TEXT
) STRICT;

CREATE INDEX place_due ON place (key >> 46, due) WHERE due IS NOT NULL;
CREATE INDEX place_ready ON place (key) WHERE state = 2;

CREATE TABLE dead_letter (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  life INTEGER NOT NULL,
  id TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  enqueued_at INTEGER NOT NULL,
  died_at INTEGER NOT NULL,
  delivery_count INTEGER NOT NULL,
  chosen INTEGER NOT NULL,
  reason TEXT NOT NULL,
  data BLOB NOT NULL
) STRICT;

CREATE INDEX dead_letter_life ON dead_letter (life, number);
CREATE UNIQUE INDEX dead_letter_id ON dead_letter (life, id);

-- Ids that callers chose, kept until `forget_due` has passed and the message is gone.
CREATE TABLE chosen_id (
  life INTEGER NOT NULL,
  id TEXT NOT NULL,
  slot INTEGER NOT NULL,
  sequence INTEGER NOT NULL,
  fingerprint BLOB NOT NULL,        -- first 16 bytes of SHA-256 of the payload
  forget_due INTEGER NOT NULL,      -- monotonic milliseconds of this boot
  sweep_due INTEGER,                -- when to look next whether it can go; NULL: its message was there then, whose removal sees to it
  PRIMARY KEY (life, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX chosen_id_sweep ON chosen_id (sweep_due) WHERE sweep_due IS NOT NULL;

-- First answers to dequeues with a request id.
CREATE TABLE request (
  life INTEGER NOT NULL,
  id TEXT NOT NULL,
  forget_due INTEGER NOT NULL,
  arguments TEXT NOT NULL,
  answer BLOB NOT NULL,
  PRIMARY KEY (life, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX request_forget ON request (forget_due);

-- Processes that hold deliveries. A process is the same when its id, start time and process-id namespace are.
CREATE TABLE session (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  process_id INTEGER NOT NULL,
  started TEXT NOT NULL,
  namespace TEXT NOT NULL
) STRICT;
