-- name: countRows
-- The counters of every queue beside the rows that they count. States: 1 processing, 2 ready, 3 delayed.
SELECT queue.name, pending, processing, ready, delayed, dead,
  (SELECT count(*) FROM message WHERE key >= slot << 46 AND key < (slot + 1) << 46) AS messages,
  (SELECT count(*) FROM place WHERE key >= slot << 46 AND key < (slot + 1) << 46 AND state = 1) AS processingRows,
  (SELECT count(*) FROM place WHERE key >= slot << 46 AND key < (slot + 1) << 46 AND state = 2) AS readyRows,
  (SELECT count(*) FROM place WHERE key >= slot << 46 AND key < (slot + 1) << 46 AND state = 3) AS delayedRows,
  (SELECT count(*) FROM dead_letter WHERE dead_letter.life = queue.life) AS deadRows
FROM queue

-- name: countOrphans
-- Rows that belong to no message or to no queue, those still being deleted left out.
SELECT
  (SELECT count(*) FROM place WHERE NOT EXISTS (SELECT 1 FROM message WHERE message.key = place.key)
    AND key >> 46 NOT IN (SELECT slot FROM spare_slot WHERE emptying = 1))
  + (SELECT count(*) FROM message WHERE key >> 46 NOT IN (SELECT slot FROM queue) AND key >> 46 NOT IN (SELECT slot FROM spare_slot WHERE emptying = 1))
  + (SELECT count(*) FROM dead_letter WHERE life NOT IN (SELECT life FROM queue)
    AND life NOT IN (SELECT life FROM spare_slot WHERE life IS NOT NULL))

-- name: wrongParts
-- Counters of tasks beside the messages that they count, those of slots that are being emptied left out.
SELECT task.id, queue.name, coalesce(unacked, 0), coalesce(messages, 0) FROM (
  SELECT task, key >> 46 AS slot, count(*) AS messages FROM message
  WHERE task IS NOT NULL AND key >> 46 IN (SELECT slot FROM queue) GROUP BY 1, 2
) FULL JOIN (
  SELECT task, slot, sum(unacked) AS unacked FROM (
    SELECT task, slot, unacked FROM task_part UNION ALL SELECT task, slot, unacked FROM task_change
  ) WHERE task IN (SELECT number FROM task WHERE status IS NULL) GROUP BY 1, 2
) USING (task, slot)
LEFT JOIN task ON task.number = task LEFT JOIN queue USING (slot)
WHERE coalesce(unacked, 0) <> coalesce(messages, 0) LIMIT 5

-- name: misplacedTasks
-- Counters of tasks that have ended or are not there, and places that name another task than their messages.
SELECT (SELECT count(*) FROM task_part WHERE NOT EXISTS (SELECT 1 FROM task WHERE number = task_part.task AND status IS NULL))
  + (SELECT count(*) FROM place JOIN message USING (key) WHERE place.task IS NOT message.task)

-- name: unendedTasks
-- Tasks whose last message is settled and that should have ended.
SELECT count(*) FROM task WHERE status IS NULL AND sealed = 1 AND number NOT IN (
  SELECT task FROM (SELECT task, unacked FROM task_part UNION ALL SELECT task, unacked FROM task_change) GROUP BY task HAVING sum(unacked) > 0
)

-- name: countTasks
SELECT count(*) FROM task

-- name: endAllProducers
-- Likewise the leases of producers.
UPDATE task SET producer_due = 0, producer_session = NULL WHERE producer_due IS NOT NULL

-- name: endAllLeases
-- Another boot: the monotonic clock began anew, so all leases have ended.
UPDATE place SET due = 0, session = NULL WHERE state = 1

-- name: rebaseDelays
-- A wall clock that stands before the enqueue has gone back: then the delay counts from the enqueue, instead of never ending.
UPDATE place SET due = ? + max(0, due_at - max(?, coalesce((SELECT enqueued_at FROM message WHERE message.key = place.key), 0))) WHERE state = 3

-- name: rebaseChosenIds
UPDATE chosen_id SET forget_due = ?, sweep_due = CASE WHEN sweep_due IS NULL THEN NULL ELSE ? END

-- name: rebaseRequests
UPDATE request SET forget_due = ?

-- name: deleteSessions
DELETE FROM session
