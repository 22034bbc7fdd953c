/** A file that an earlier version made is taken over as it is: schema 1 becomes schema 2 at the first open. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Backend } from "../../../src/backend/contract.ts";
import { openSqlite } from "../../../src/backend/sqlite/index.ts";
import { schema } from "../../../src/backend/sqlite/schema.generated.ts";
import { type MessageId, makeReceipt, parseQueueName, type TaskId } from "../../../src/core/names.ts";
import { ManualClock } from "../../../src/testing/index.ts";

const [JOBS, EMPTY] = [parseQueueName("jobs"), parseQueueName("empty")];
const BOOT = "same";
const NOW_MS = 1_000_000;
let folder: string;
let path: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "queuefs-migration-"));
  path = join(folder, "queue.db");
  writeFirstSchema();
});

afterEach(() => rm(folder, { recursive: true }));

/** One queue with a message in each state, as schema 1 has them: ready 1, in processing 2, acked 3, delayed 4, untouched 5 and 6; and a dead letter. */
function writeFirstSchema(): void {
  const database = new Database(path);
  database.pragma("page_size = 2048");
  database.pragma("auto_vacuum = INCREMENTAL");
  database.pragma("journal_mode = WAL");
  database.exec(schema["001"]);
  database.pragma(`application_id = ${0x51754653}`);
  database.pragma("user_version = 1");
  const setting = database.prepare("INSERT INTO store (name, value) VALUES (?, ?)");
  for (const [name, value] of [
    ["store", "s1"],
    ["boot", BOOT],
    ["life", 2],
  ])
    setting.run(name, value);
  database.exec(`
    INSERT INTO queue (slot, name, life, created_at, max_deliveries, head, tail, pending, processing, ready, delayed, dead, enqueued, delivered,
      acked, returned, dead_lettered)
    VALUES (1, 'jobs', 1, 5, 20, 3, 6, 4, 1, 1, 1, 1, 7, 4, 1, 1, 1), (2, 'empty', 2, 5, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    INSERT INTO place (key, state, due, delivery_count, token, session, due_at, chosen, reason) VALUES
      (1 << 46 | 1, 2, NULL, 1, NULL, NULL, NULL, 0, 'not now'),
      (1 << 46 | 2, 1, ${NOW_MS + 60_000}, 3, 77, NULL, NULL, 1, NULL),
      (1 << 46 | 4, 3, ${NOW_MS + 5_000}, 0, NULL, NULL, ${NOW_MS + 5_000}, 0, NULL);
    INSERT INTO dead_letter (life, id, sequence, enqueued_at, died_at, delivery_count, chosen, reason, data)
      VALUES (1, 'm-s1-1-0', 0, 6, 8, 1, 0, 'of no use', x'646561643030');
    INSERT INTO chosen_id (life, id, slot, sequence, fingerprint, forget_due, sweep_due)
      VALUES (1, 'mine', 1, 2, x'00112233445566778899aabbccddeeff', ${NOW_MS + 600_000}, ${NOW_MS + 600_000});
  `);
  const message = database.prepare("INSERT INTO message (key, enqueued_at, placed, id, data) VALUES (1 << 46 | ?, 7, ?, ?, ?)");
  for (const sequence of [1, 2, 4, 5, 6]) {
    message.run(sequence, sequence === 4 ? 1 : 0, sequence === 2 ? "mine" : null, payloadOf(sequence));
  }
  database.close();
}

function payloadOf(sequence: number): Buffer {
  return Buffer.alloc(sequence === 5 ? 300_000 : sequence, sequence);
}

function open(): Promise<Backend> {
  const clock = new ManualClock({ monotonicMs: NOW_MS, wallMs: NOW_MS });
  return openSqlite({ path, durability: "normal", sweepIntervalMs: 3_600_000, clock, bootId: BOOT });
}

async function look(backend: Backend): Promise<unknown[]> {
  const { items } = await backend.messages(JOBS);
  return items.map(({ id, state, deliveryCount, data, task }) => [id, state, deliveryCount, Buffer.from(data).toString("latin1"), task]);
}

describe("a file of schema 1", () => {
  it("keeps its messages, their places, deliveries and dead letters, and has schema 2 from then on", async () => {
    const backend = await open();
    expect(await backend.status(JOBS)).toEqual({ pending: 4, processing: 1 });
    expect(await look(backend)).toEqual([
      ["m-s1-1-1", "pending", 1, payloadOf(1).toString("latin1"), undefined],
      ["mine", "processing", 3, payloadOf(2).toString("latin1"), undefined],
      ["m-s1-1-4", "pending", 0, payloadOf(4).toString("latin1"), undefined],
      ["m-s1-1-5", "pending", 0, payloadOf(5).toString("latin1"), undefined],
      ["m-s1-1-6", "pending", 0, payloadOf(6).toString("latin1"), undefined],
    ]);
    expect((await backend.deadLetters(JOBS)).items).toMatchObject([{ id: "m-s1-1-0", reason: "of no use" }]);
    expect(await backend.inspect()).not.toContainEqual(expect.objectContaining({ severity: "error" }));
    expect(await backend.ack(JOBS, [{ receipt: makeReceipt(1, 2, 77) }]), "a delivery of the earlier version ends").toMatchObject([
      { outcome: "acked" },
    ]);
    expect(await backend.redrive(JOBS, ["m-s1-1-0" as MessageId])).toEqual(["redriven"]);
    const taken = await backend.dequeue(JOBS, { limit: 10 });
    expect(taken.map(({ id }) => id)).toEqual(["m-s1-1-0", "m-s1-1-1", "m-s1-1-5", "m-s1-1-6"]);
    await backend.close();
    const file = new Database(path, { readonly: true });
    expect(file.pragma("user_version", { simple: true })).toBe(2);
    expect(file.pragma("integrity_check", { simple: true })).toBe("ok");
    file.close();
  });

  it("keeps tasks from then on, of new messages", async () => {
    const backend = await open();
    const task = "import-1" as TaskId;
    await backend.createTask({ id: task, type: "import" }, [{ queue: EMPTY, messages: [{ data: new Uint8Array(1) }] }]);
    const [taken] = await backend.dequeue(EMPTY);
    expect(taken?.task).toBe(task);
    if (taken !== undefined) await backend.ack(EMPTY, [{ receipt: taken.receipt }]);
    expect(await backend.task(task)).toMatchObject({ status: "completed", progress: { total: 1, done: 1 } });
    expect(await backend.inspect()).not.toContainEqual(expect.objectContaining({ severity: "error" }));
    await backend.close();
  });

  it("is taken over once, however many open it at a time", async () => {
    const backends = await Promise.all([open(), open(), open()]);
    const looks = await Promise.all(backends.map(look));
    expect(looks[0]).toHaveLength(5);
    expect(looks[1]).toEqual(looks[0]);
    expect(looks[2]).toEqual(looks[0]);
    for (const backend of backends) await backend.close();
  });

  it("has the same tables as a new file", async () => {
    await (await open()).close();
    const other = join(folder, "new.db");
    await (await openSqlite({ path: other, sweepIntervalMs: 3_600_000 })).close();
    const [taken, made] = [path, other].map((one) => {
      const file = new Database(one, { readonly: true });
      const rows = file.prepare("SELECT name, sql FROM sqlite_schema ORDER BY name").all();
      file.close();
      return rows;
    });
    expect(taken).toEqual(made);
  });
});
