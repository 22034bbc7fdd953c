/**
 * The limit: the statements that a queue with exact counters and leases cannot do without, in batches as large as the callers are many,
 * one transaction each, and nothing around them: no checks, no copies, no promises, no answers for single callers. With one caller it is
 * what such a queue does with a transaction per call.
 */

import { join } from "node:path";
import Database from "better-sqlite3";
import { type Contender, type Contest, type Load, PAYLOAD } from "../contender.ts";

/** Raw statements with one of SQLite's two ways to commit. */
export function rawStatements(durability: "full" | "normal"): Contender {
  return {
    name: `raw batches, ${durability}`,
    role: "limit",
    durability,
    drainMessages: 20_000,
    open: async (folder) => openRaw(join(folder, "raw.db"), durability),
  };
}

const FILL_BATCH = 1_000;
const LEASE_MS = 30_000;

interface Held {
  readonly key: number;
  readonly token: number;
}

function openRaw(path: string, durability: "full" | "normal"): Contest {
  const database = new Database(path);
  database.pragma("page_size = 2048");
  database.pragma("auto_vacuum = INCREMENTAL");
  database.pragma("journal_mode = WAL");
  database.pragma(`synchronous = ${durability.toUpperCase()}`);
  database.exec(`
    CREATE TABLE queue (slot INTEGER PRIMARY KEY, head INTEGER, tail INTEGER, pending INTEGER, processing INTEGER) STRICT;
    CREATE TABLE message (key INTEGER PRIMARY KEY, enqueued_at INTEGER NOT NULL, data BLOB NOT NULL) STRICT;
    CREATE TABLE place (key INTEGER PRIMARY KEY, due INTEGER NOT NULL, token INTEGER NOT NULL, delivery_count INTEGER NOT NULL) STRICT;
    CREATE INDEX place_due ON place (due);
    INSERT INTO queue VALUES (1, 0, 0, 0, 0);
  `);
  const begin = database.prepare("BEGIN IMMEDIATE");
  const commit = database.prepare("COMMIT");
  const readQueue = database.prepare("SELECT head, tail, pending, processing FROM queue WHERE slot = 1").raw();
  const saveQueue = database.prepare("UPDATE queue SET head = ?, tail = ?, pending = ?, processing = ? WHERE slot = 1");
  const insert = database.prepare("INSERT INTO message VALUES (?, ?, ?)");
  const next = database.prepare("SELECT key, enqueued_at, data FROM message WHERE key > ? ORDER BY key LIMIT 0 + ?").raw();
  const hold = database.prepare("INSERT INTO place VALUES (?, ?, ?, 1)");
  const end = database.prepare("DELETE FROM place WHERE key = ? AND token = ?");
  const remove = database.prepare("DELETE FROM message WHERE key = ?");
  let token = 0;

  const enqueue = (count: number): void => {
    begin.run();
    const [head, tail, pending, processing] = readQueue.get() as [number, number, number, number];
    const now = Date.now();
    for (let index = 1; index <= count; index += 1) insert.run(tail + index, now, PAYLOAD);
    saveQueue.run(head, tail + count, pending + count, processing);
    commit.run();
  };
  const dequeue = (count: number): Held[] => {
    begin.run();
    const [head, tail, pending, processing] = readQueue.get() as [number, number, number, number];
    const due = Math.floor(performance.now()) + LEASE_MS;
    const held = (next.all(head, count) as [number, number, Buffer][]).map(([key]) => {
      token += 1;
      hold.run(key, due, token);
      return { key, token };
    });
    saveQueue.run(held.at(-1)?.key ?? head, tail, pending - held.length, processing + held.length);
    commit.run();
    return held;
  };
  const ack = (held: readonly Held[]): void => {
    begin.run();
    const [head, tail, pending, processing] = readQueue.get() as [number, number, number, number];
    for (const one of held) {
      if (end.run(one.key, one.token).changes === 1) remove.run(one.key);
    }
    saveQueue.run(head, tail, pending, processing - held.length);
    commit.run();
  };
  const runBatches = async (load: Load, batch: (count: number) => void): Promise<void> => {
    load.begin();
    for (; !load.isOver(); load.done += load.callers) batch(load.callers);
    load.end();
  };
  return {
    enqueue: (load) => runBatches(load, enqueue),
    cycle: (load) =>
      runBatches(load, (count) => {
        enqueue(count);
        ack(dequeue(count));
      }),
    fill: async (count) => {
      for (let left = count; left > 0; left -= FILL_BATCH) enqueue(Math.min(left, FILL_BATCH));
    },
    drain: async (callers) => {
      let taken = 0;
      for (let held = dequeue(callers); held.length > 0; held = dequeue(callers)) {
        ack(held);
        taken += held.length;
      }
      return taken;
    },
    status: async () => readQueue.get(),
    close: async () => {
      database.close();
    },
  };
}
