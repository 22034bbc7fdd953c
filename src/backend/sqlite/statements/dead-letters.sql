-- name: insertDeadLetter
INSERT INTO dead_letter (life, id, sequence, enqueued_at, died_at, delivery_count, chosen, reason, data, task) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: deadLettersPage
SELECT dead_letter.number, dead_letter.id, enqueued_at, died_at, delivery_count, reason, data, task.id
FROM dead_letter LEFT JOIN task ON task.number = dead_letter.task
WHERE life = ? AND dead_letter.number > ? ORDER BY dead_letter.number LIMIT 0 + ?

-- name: deadLetterById
SELECT number, sequence, enqueued_at, chosen, data, task FROM dead_letter WHERE life = ? AND id = ?

-- name: isDead
SELECT 1 FROM dead_letter WHERE life = ? AND id = ?

-- name: deleteDeadLetter
DELETE FROM dead_letter WHERE number = ?

-- name: deleteSomeDeadLetters
-- Of queues that were removed: their lives belong to no queue.
DELETE FROM dead_letter WHERE number IN (SELECT number FROM dead_letter WHERE life = ? LIMIT 0 + ?)

-- name: chosenId
SELECT slot, sequence, fingerprint, forget_due FROM chosen_id WHERE life = ? AND id = ?

-- name: rememberChosenId
INSERT INTO chosen_id (life, id, slot, sequence, fingerprint, forget_due, sweep_due) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (life, id) DO UPDATE SET slot = excluded.slot, sequence = excluded.sequence, fingerprint = excluded.fingerprint,
  forget_due = excluded.forget_due, sweep_due = excluded.sweep_due

-- name: moveChosenId
UPDATE chosen_id SET slot = ?, sequence = ? WHERE life = ? AND id = ?

-- name: forgetChosenIdIfDue
DELETE FROM chosen_id WHERE life = ? AND id = ? AND forget_due <= ?

-- name: dueChosenIds
SELECT life, id, slot, sequence FROM chosen_id WHERE sweep_due <= ? ORDER BY sweep_due LIMIT 0 + ?

-- name: deleteChosenId
DELETE FROM chosen_id WHERE life = ? AND id = ?

-- name: keepChosenId
UPDATE chosen_id SET sweep_due = NULL WHERE life = ? AND id = ?

-- name: deleteSomeChosenIds
DELETE FROM chosen_id WHERE life = ? AND id IN (SELECT id FROM chosen_id WHERE life = ? LIMIT 0 + ?)

-- name: deleteSomeRequests
DELETE FROM request WHERE life = ? AND id IN (SELECT id FROM request WHERE life = ? LIMIT 0 + ?)

-- name: request
SELECT forget_due, arguments, answer FROM request WHERE life = ? AND id = ?

-- name: rememberRequest
INSERT OR REPLACE INTO request (life, id, forget_due, arguments, answer) VALUES (?, ?, ?, ?, ?)

-- name: dueRequest
SELECT 1 FROM request WHERE forget_due <= ? LIMIT 1

-- name: forgetRequests
DELETE FROM request WHERE (life, id) IN (SELECT life, id FROM request WHERE forget_due <= ? ORDER BY forget_due LIMIT 0 + ?)

-- name: insertSession
INSERT INTO session (process_id, started, namespace) VALUES (?, ?, ?)

-- name: sessions
SELECT number, process_id, started, namespace FROM session

-- name: deleteSession
DELETE FROM session WHERE number = ?

-- name: sessionExists
SELECT 1 FROM session WHERE number = ?
