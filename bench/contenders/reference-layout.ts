/**
 * The statement pattern of the reference layout (`queue_metadata`, `queue_messages`), with cached statements and a transaction for each
 * call: what SQLite gives when calls are not gathered.
 */

import { join } from "node:path";
import Database from "better-sqlite3";
import { type Contender, type Contest, drainWith, PAYLOAD_TEXT, runCallers } from "../contender.ts";

/** The reference layout with one of SQLite's two ways to commit. */
export function referenceLayout(durability: "full" | "normal"): Contender {
  return {
    name: `per call, ${durability}`,
    role: "per-call",
    durability,
    drainMessages: 2_000,
    open: async (folder) => openReference(join(folder, "queue.db"), durability),
  };
}

function openReference(path: string, durability: "full" | "normal"): Contest {
  const database = new Database(path);
  database.pragma("journal_mode = WAL");
  database.pragma(`synchronous = ${durability.toUpperCase()}`);
  database.exec(`
    CREATE TABLE queue_metadata (queue_name TEXT PRIMARY KEY, created_at INTEGER NOT NULL, last_updated INTEGER NOT NULL);
    CREATE TABLE queue_messages (
      id INTEGER PRIMARY KEY AUTOINCREMENT, queue_name TEXT NOT NULL, message_id TEXT NOT NULL, data TEXT NOT NULL, timestamp INTEGER NOT NULL,
      status TEXT NOT NULL DEFAULT 'pending', processing_started_at INTEGER, created_at INTEGER NOT NULL
    );
    CREATE INDEX queue_messages_order ON queue_messages (queue_name, status, id);
    CREATE INDEX queue_messages_id ON queue_messages (queue_name, message_id);
    INSERT INTO queue_metadata VALUES ('bench', 0, 0);
  `);
  const insert = database.prepare(
    "INSERT INTO queue_messages (queue_name, message_id, data, timestamp, created_at) VALUES ('bench', ?, ?, ?, ?)",
  );
  const touch = database.prepare("UPDATE queue_metadata SET last_updated = ? WHERE queue_name = 'bench'");
  const head = database.prepare(
    "SELECT id, message_id, data FROM queue_messages WHERE queue_name = 'bench' AND status = 'pending' ORDER BY id LIMIT 1",
  );
  const begin = database.prepare(
    "UPDATE queue_messages SET status = 'processing', processing_started_at = ? WHERE id = ? AND status = 'pending'",
  );
  const remove = database.prepare("DELETE FROM queue_messages WHERE queue_name = 'bench' AND message_id = ? AND status = 'processing'");
  const count = database.prepare("SELECT status, count(*) FROM queue_messages WHERE queue_name = 'bench' GROUP BY status");
  let sequence = 0;

  const store = (): void => {
    sequence += 1;
    const id = `message-${sequence.toString().padStart(28, "0")}`;
    const now = Math.floor(Date.now() / 1_000);
    insert.run(id, JSON.stringify({ id, data: PAYLOAD_TEXT, timestamp: now }), now, now);
    touch.run(now);
  };
  const enqueue = database.transaction(store).immediate;
  const dequeue = database.transaction(() => {
    const row = head.get() as { id: number; message_id: string; data: string } | undefined;
    if (row === undefined) return undefined;
    begin.run(Math.floor(Date.now() / 1_000), row.id);
    return { id: row.message_id, data: (JSON.parse(row.data) as { data: string }).data };
  }).immediate;
  const take = (): boolean => {
    const message = dequeue();
    return message !== undefined && remove.run(message.id).changes === 1;
  };
  return {
    enqueue: (load) => runCallers(load, enqueue),
    cycle: (load) =>
      runCallers(load, async () => {
        await enqueue();
        const message = await dequeue();
        if (message === undefined) throw new Error("a message that was enqueued could not be taken");
        await remove.run(message.id);
      }),
    fill: async (messages) => {
      database.transaction(() => {
        for (let left = messages; left > 0; left -= 1) store();
      })();
    },
    drain: (callers) => drainWith(callers, take),
    status: async () => count.all(),
    close: async () => {
      database.close();
    },
  };
}
