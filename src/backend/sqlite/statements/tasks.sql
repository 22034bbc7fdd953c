-- name: nextTask
UPDATE store SET value = value + 1 WHERE name = 'task' RETURNING value

-- name: insertTask
INSERT INTO task (number, id, sealed, created_at, updated_at, keep_completed, keep_failed, keep_cancelled,
  producer, producer_due, producer_session, type, stage, retry_of, resource, meta)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: taskById
SELECT number, id, status, sealed, started, cancelling, producer_error IS NOT NULL FROM task WHERE id = ?

-- name: taskByNumber
SELECT number, id, status, sealed, started, cancelling, producer_error IS NOT NULL FROM task WHERE number = ?

-- name: taskIdByNumber
SELECT id FROM task WHERE number = ?

-- name: shownTask
SELECT number, id, status, sealed, started, cancelling, done, failed, cancelled, created_at, updated_at, finished_at, type,
  error_queue, error_message, error_reason, producer_error, stage, retry_of, resource, result, meta
FROM task WHERE number = ?

-- name: tasksBefore
-- Newest first, without what may be large.
SELECT number, status, started, cancelling, created_at, type, resource FROM task WHERE number < ? ORDER BY number DESC LIMIT 0 + ?

-- name: insertChange
-- Once per transaction, task and slot.
INSERT INTO task_change (number, task, slot, unacked, done, failed, cancelled, changed_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)

-- name: changesAfter
SELECT number, task, slot, unacked, done, failed, cancelled, changed_at FROM task_change WHERE number > ? ORDER BY number

-- name: deleteChanges
DELETE FROM task_change

-- name: unackedPart
SELECT unacked FROM task_part WHERE task = ? AND slot = ?

-- name: addToPart
-- The values are what is added, unless the task has ended.
INSERT INTO task_part (task, slot, unacked, done, failed, cancelled, updated_at)
SELECT number, ?, ?, ?, ?, ?, ? FROM task WHERE number = ? AND status IS NULL
ON CONFLICT (task, slot) DO UPDATE SET unacked = unacked + excluded.unacked, done = done + excluded.done,
  failed = failed + excluded.failed, cancelled = cancelled + excluded.cancelled, updated_at = max(updated_at, excluded.updated_at)

-- name: sumOfParts
SELECT coalesce(sum(unacked), 0), coalesce(sum(done), 0), coalesce(sum(failed), 0), coalesce(sum(cancelled), 0), coalesce(max(updated_at), 0)
FROM task_part WHERE task = ?

-- name: partsOfSlot
SELECT task, unacked FROM task_part WHERE slot = ? AND unacked > 0

-- name: nextUnackedPart
SELECT slot FROM task_part WHERE task = ? AND slot >= ? AND unacked > 0 ORDER BY slot LIMIT 1

-- name: deleteParts
DELETE FROM task_part WHERE task = ?

-- name: startTask
UPDATE task SET started = 1, updated_at = max(updated_at, ?) WHERE number = ?

-- name: updateTask
UPDATE task SET stage = coalesce(?, stage), meta = coalesce(?, meta), result = coalesce(?, result), updated_at = max(updated_at, ?) WHERE number = ?

-- name: sealTask
UPDATE task SET sealed = 1, producer_due = NULL, producer_session = NULL, producer_error = coalesce(producer_error, ?), updated_at = max(updated_at, ?)
WHERE number = ?

-- name: producerOf
SELECT producer FROM task WHERE number = ?

-- name: renewProducer
UPDATE task SET producer_due = ? WHERE id = ? AND producer = ? AND sealed = 0

-- name: keepError
-- The first failure stays.
UPDATE task SET error_reason = ?, error_queue = ?, error_message = ? WHERE number = ? AND error_reason IS NULL AND producer_error IS NULL

-- name: forgetError
UPDATE task SET error_reason = NULL, error_queue = NULL, error_message = NULL WHERE number = ?

-- name: beginCancel
UPDATE task SET sealed = 1, cancelling = 1, producer_due = NULL, producer_session = NULL, search_slot = 0, search_sequence = 0, updated_at = max(updated_at, ?)
WHERE number = ?

-- name: searchOf
SELECT search_slot, search_sequence FROM task WHERE number = ? AND search_slot IS NOT NULL

-- name: saveSearch
UPDATE task SET search_slot = ?, search_sequence = ? WHERE number = ?

-- name: searchedTasks
SELECT number FROM task WHERE search_slot IS NOT NULL ORDER BY number LIMIT 0 + ?

-- name: endOfMessages
-- Where the next so many messages of a slot end, and how many there are: a stretch that one step looks through.
SELECT max(key) & 70368744177663, count(*) FROM (SELECT key FROM message WHERE key > ? << 46 | ? AND key < (? + 1) << 46 ORDER BY key LIMIT 0 + ?)

-- name: pendingOfTask
-- Within a stretch. An index on the task would cost every enqueue and ack for the sake of a cancel.
SELECT message.key & 70368744177663, coalesce(state, 0), coalesce(chosen, id IS NOT NULL) FROM message LEFT JOIN place USING (key)
WHERE message.key > ? << 46 | ? AND message.key <= ? << 46 | ? AND message.task = ? AND coalesce(state, 0) <> 1
ORDER BY message.key LIMIT 0 + ?

-- name: endTask
-- The counters move from the parts into the row, and the time of removal is fixed.
UPDATE task SET status = ?, done = ?, failed = ?, cancelled = ?, search_slot = NULL, search_sequence = NULL, updated_at = max(updated_at, ?), finished_at = ?,
  forget_at = ? + CASE ? WHEN 'completed' THEN keep_completed WHEN 'failed' THEN keep_failed ELSE keep_cancelled END
WHERE number = ?

-- name: deleteTask
DELETE FROM task WHERE number = ?

-- name: dueProducers
SELECT number FROM task WHERE producer_due <= ? ORDER BY producer_due LIMIT 0 + ?

-- name: producersOfSession
SELECT number FROM task WHERE producer_session = ? LIMIT 0 + ?

-- name: dueToForget
SELECT number FROM task WHERE forget_at <= ? ORDER BY forget_at LIMIT 0 + ?

-- name: failuresOfTask
-- Those of queues that were removed are still being deleted and belong to none.
SELECT queue.name, dead_letter.id FROM dead_letter CROSS JOIN queue USING (life) WHERE task = ? ORDER BY number LIMIT 0 + ?

-- name: failuresPage
SELECT number, dead_letter.id, enqueued_at, died_at, delivery_count, reason, data, queue.name FROM dead_letter CROSS JOIN queue USING (life)
WHERE task = ? AND number > ? ORDER BY number LIMIT 0 + ?
