-- name: queueByName
SELECT slot, name, life, created_at, max_deliveries, head, tail, pending, processing, ready, delayed, dead,
  enqueued, delivered, acked, returned, dead_lettered, cleared
FROM queue WHERE name = ?

-- name: queueBySlot
SELECT slot, name, life, created_at, max_deliveries, head, tail, pending, processing, ready, delayed, dead,
  enqueued, delivered, acked, returned, dead_lettered, cleared
FROM queue WHERE slot = ?

-- name: saveQueue
-- Written once per transaction and queue, whatever number of calls changed it.
UPDATE queue SET head = ?, tail = ?, pending = ?, processing = ?, ready = ?, delayed = ?, dead = ?,
  enqueued = ?, delivered = ?, acked = ?, returned = ?, dead_lettered = ?, cleared = ?
WHERE slot = ?

-- name: insertQueue
INSERT INTO queue (slot, name, life, created_at, max_deliveries, head, tail) VALUES (?, ?, ?, ?, ?, ?, ?)

-- name: moveQueue
-- Clearing gives the queue a new slot at once; the rows of the old one are deleted in steps.
UPDATE queue SET slot = ?, head = ?, tail = ?, cleared = cleared + pending + processing, pending = 0, processing = 0, ready = 0, delayed = 0 WHERE slot = ?

-- name: configureQueue
UPDATE queue SET max_deliveries = ? WHERE slot = ?

-- name: deleteQueue
DELETE FROM queue WHERE slot = ?

-- name: queuesWithin
-- The queue of that name and all under it; "0" is the character after "/".
SELECT slot, name, pending, processing FROM queue WHERE name = ? OR (name > ? || '/' AND name < ? || '0') ORDER BY name

-- name: allQueues
SELECT slot, name, pending, processing FROM queue ORDER BY name

-- name: namesWithin
-- The two parts are merged in the order of their index, so that a page costs no more than its names.
SELECT name FROM queue WHERE name = ? AND name > ?
UNION ALL
SELECT name FROM queue WHERE name > max(? || '/', ?) AND name < ? || '0'
ORDER BY name LIMIT 0 + ?

-- name: names
SELECT name FROM queue WHERE name > ? ORDER BY name LIMIT 0 + ?

-- name: statusByName
-- Both numbers from one row: one snapshot.
SELECT pending, processing FROM queue WHERE name = ?

-- name: takeSpareSlot
DELETE FROM spare_slot WHERE slot = (SELECT slot FROM spare_slot WHERE emptying = 0 LIMIT 1) RETURNING slot, tail

-- name: nextSlot
SELECT max(coalesce((SELECT max(slot) FROM queue), 0), coalesce((SELECT max(slot) FROM spare_slot), 0)) + 1

-- name: addSpareSlot
INSERT INTO spare_slot (slot, tail, emptying, life) VALUES (?, ?, 1, ?)

-- name: emptyingSlot
SELECT slot, life FROM spare_slot WHERE emptying = 1 LIMIT 1

-- name: endEmptying
UPDATE spare_slot SET emptying = 0, life = NULL WHERE slot = ?

-- name: deleteSomeMessages
DELETE FROM message WHERE key IN (SELECT key FROM message WHERE key >= ? << 46 AND key < (? + 1) << 46 LIMIT 0 + ?)

-- name: deleteSomePlaces
DELETE FROM place WHERE key IN (SELECT key FROM place WHERE key >= ? << 46 AND key < (? + 1) << 46 LIMIT 0 + ?)

-- name: nextLife
UPDATE store SET value = value + 1 WHERE name = 'life' RETURNING value

-- name: setting
SELECT value FROM store WHERE name = ?

-- name: saveSetting
INSERT INTO store (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value
