-- A limit is written "0 + ?": SQLite prepares a statement again whenever the value of a bare "LIMIT ?" is bound anew, which costs
-- ten times what running it does.

-- name: insertMessage
INSERT INTO message (key, enqueued_at, placed, id, task, data) VALUES (? << 46 | ?, ?, ?, ?, ?, ?)

-- name: insertPlainMessage
-- One without a chosen id.
INSERT INTO message (key, enqueued_at, placed, id, task, data) VALUES (? << 46 | ?, ?, ?, NULL, ?, ?)

-- name: untouchedMessages
-- Without the payloads above 64 KiB, whose length costs no reading: many of those might not fit into memory.
SELECT key & 70368744177663 AS sequence, enqueued_at, id, task, CASE WHEN length(data) <= 65536 THEN data END FROM message
WHERE key > ? << 46 | ? AND key < (? + 1) << 46 AND placed = 0
ORDER BY key LIMIT 0 + ?

-- name: readyPlaces
SELECT key & 70368744177663 AS sequence, delivery_count, task FROM place
WHERE state = 2 AND key >= ? << 46 AND key < (? + 1) << 46
ORDER BY key LIMIT 0 + ?

-- name: messageAt
SELECT enqueued_at, id, data, task FROM message WHERE key = ? << 46 | ?

-- name: idAt
SELECT id FROM message WHERE key = ? << 46 | ?

-- name: deleteMessage
DELETE FROM message WHERE key = ? << 46 | ?

-- name: insertPlace
INSERT INTO place (key, state, due, delivery_count, token, session, due_at, chosen, task) VALUES (? << 46 | ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: insertNewPlace
INSERT INTO place (key, state, due, delivery_count, token, session, chosen, task) VALUES (? << 46 | ?, 1, ?, 1, ?, ?, ?, ?)

-- name: handOutAgain
UPDATE place SET state = 1, due = ?, delivery_count = delivery_count + 1, token = ?, session = ?, due_at = NULL
WHERE key = ? << 46 | ?

-- name: delivery
-- The current delivery of a message, if the token is its.
SELECT delivery_count, chosen, task, reason FROM place WHERE key = ? << 46 | ? AND state = 1 AND token = ?

-- name: endDelivery
DELETE FROM place WHERE key = ? << 46 | ? AND state = 1 AND token = ? RETURNING chosen, task

-- name: deliveriesBetween
-- Current deliveries of some consecutive places.
SELECT key & 70368744177663 AS sequence, token, chosen, task FROM place
WHERE key >= ? << 46 | ? AND key <= ? << 46 | ? AND state = 1 ORDER BY key

-- name: deliveriesTogether
-- The same as one row: how many there are, how many have a chosen id, how many belong to tasks and to which, and all tokens.
SELECT count(*), total(chosen), count(task), min(task), max(task), group_concat(token) FROM (
  SELECT token, chosen, task FROM place
  WHERE key >= ? << 46 | ? AND key <= ? << 46 | ? AND state = 1 ORDER BY key
)

-- name: deletePlacesBetween
DELETE FROM place WHERE key >= ? << 46 | ? AND key < ? << 46 | ?

-- name: deleteMessagesBetween
DELETE FROM message WHERE key >= ? << 46 | ? AND key < ? << 46 | ?

-- name: endAnyDelivery
DELETE FROM place WHERE key = ? << 46 | ? AND state = 1 RETURNING chosen, task

-- name: deletePlace
DELETE FROM place WHERE key = ? << 46 | ?

-- name: giveBack
UPDATE place SET state = ?, due = ?, due_at = ?, delivery_count = ?, token = NULL, session = NULL, reason = ?
WHERE key = ? << 46 | ?

-- name: extendDelivery
UPDATE place SET due = ? WHERE key = ? << 46 | ? AND state = 1 AND token = ?

-- name: duePlaces
-- Leases that have ended and delays that are over, of one queue.
SELECT key & 70368744177663 AS sequence, state, delivery_count, chosen, task, reason FROM place
WHERE key >> 46 = ? AND due <= ? ORDER BY due LIMIT 0 + ?

-- name: peekDue
-- The oldest message that a recovery would make available, without recovering it.
SELECT min(key) & 70368744177663 AS sequence FROM place WHERE key >> 46 = ? AND due <= ? AND (? = 0 OR state = 3 OR delivery_count < ?)
  AND (place.task IS NULL OR NOT EXISTS (SELECT 1 FROM task WHERE number = place.task AND cancelling = 1))

-- name: peekReady
-- The oldest message given back that a dequeue would hand out: one of a cancelled task it would remove.
SELECT key & 70368744177663 AS sequence FROM place
WHERE state = 2 AND key >= ? << 46 AND key < (? + 1) << 46
  AND (place.task IS NULL OR NOT EXISTS (SELECT 1 FROM task WHERE number = place.task AND cancelling = 1))
ORDER BY key LIMIT 1

-- name: peekUntouched
SELECT key & 70368744177663 AS sequence FROM message
WHERE key > ? << 46 | ? AND key < (? + 1) << 46 AND placed = 0
  AND (message.task IS NULL OR NOT EXISTS (SELECT 1 FROM task WHERE number = message.task AND cancelling = 1))
ORDER BY key LIMIT 1

-- name: deliveryCountAt
SELECT delivery_count FROM place WHERE key = ? << 46 | ?

-- name: firstDue
SELECT due FROM place WHERE key >> 46 = ? AND due IS NOT NULL ORDER BY due LIMIT 1

-- name: isDue
SELECT 1 FROM place WHERE key >> 46 = ? AND due <= ? LIMIT 1

-- name: activeSlots
-- Queues in which something can be due.
SELECT slot FROM queue WHERE (processing > 0 OR delayed > 0) AND slot > ? ORDER BY slot LIMIT 0 + ?

-- name: endOfPlaces
-- Where the next so many places end, and how many there are: a stretch that one step looks through.
SELECT max(key) >> 46 AS slot, max(key) & 70368744177663 AS sequence, count(*) AS places
FROM (SELECT key FROM place WHERE key > ? << 46 | ? ORDER BY key LIMIT 0 + ?)

-- name: placesOfSession
-- Deliveries of a process that is gone, within a stretch. An index on the session would cost every dequeue and ack for the sake of the dead.
SELECT key >> 46 AS slot, key & 70368744177663 AS sequence, state, delivery_count, chosen, task, reason FROM place
WHERE key > ? << 46 | ? AND key <= ? << 46 | ? AND session = ? ORDER BY key LIMIT 0 + ?

-- name: messagesPage
SELECT message.key & 70368744177663 AS sequence, enqueued_at, message.id, data, coalesce(state, 0) AS state,
  coalesce(delivery_count, 0) AS delivery_count, task.id
FROM message LEFT JOIN place USING (key) LEFT JOIN task ON task.number = message.task
WHERE message.key > ? << 46 | ? AND message.key < (? + 1) << 46
ORDER BY message.key LIMIT 0 + ?

-- name: firstSequence
SELECT min(key) & 70368744177663 FROM message WHERE key >= ? << 46 AND key < (? + 1) << 46

-- name: oldestPending
SELECT enqueued_at FROM message LEFT JOIN place USING (key)
WHERE message.key >= ? << 46 AND message.key < (? + 1) << 46 AND coalesce(state, 0) <> 1
ORDER BY message.key LIMIT 1

-- name: oldestProcessing
SELECT enqueued_at FROM place JOIN message USING (key)
WHERE place.key >= ? << 46 AND place.key < (? + 1) << 46 AND state = 1
ORDER BY place.key LIMIT 1

-- name: waitingDelays
SELECT count(*) FROM place WHERE key >> 46 = ? AND due > ? AND state = 3
