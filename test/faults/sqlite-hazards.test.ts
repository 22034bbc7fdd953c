/** What can happen to a SQLite file and its host: another boot, damage, other owners, no right to write. */

import { chmod, mkdtemp, open, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { identifyThisProcess, isProvablyGone } from "../../src/backend/sqlite/host.ts";
import { openSqlite, type SqliteOptions } from "../../src/backend/sqlite/index.ts";
import { parseQueueName } from "../../src/core/names.ts";
import { ManualClock } from "../../src/testing/index.ts";
import { childProcesses } from "../support/child-process.ts";
import { oldRecord, writeOldFile } from "../support/reference-file.ts";
import type { FaultPrograms } from "./programs/main.ts";
import { openRemote } from "./remote-store.ts";

const children = childProcesses<FaultPrograms>("test/faults/programs/main.ts");
const QUEUE = parseQueueName("jobs");
let folder: string;
let path: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "queuefs-hazards-"));
  path = join(folder, "queue.db");
});

afterEach(async () => {
  await children.end();
  await chmod(folder, 0o700);
  await rm(folder, { recursive: true });
});

function open_(options?: Partial<SqliteOptions>): ReturnType<typeof openSqlite> {
  return openSqlite({ path, durability: "normal", sweepIntervalMs: 3_600_000, onError: () => {}, ...options });
}

function payload(bytes: number, fill: number): { data: Uint8Array } {
  return { data: new Uint8Array(bytes).fill(fill) };
}

describe("another boot of the host", () => {
  const HOUR_MS = 3_600_000;

  it("ends all leases, and lets delays end by the wall clock, though the monotonic clock began anew", async () => {
    const before = new ManualClock({ monotonicMs: 900 * HOUR_MS, wallMs: 1_000_000 * HOUR_MS });
    const first = await open_({ clock: before, bootId: "before" });
    await first.createQueue(QUEUE);
    await first.enqueue(QUEUE, [payload(1, 1), { ...payload(1, 2), delayMs: 3 * HOUR_MS }]);
    const [taken] = await first.dequeue(QUEUE, { leaseMs: 100 * HOUR_MS, owner: "receipt" });
    await first.close();
    // An hour later, of which the new monotonic clock knows nothing.
    const after = new ManualClock({ monotonicMs: 1_000, wallMs: 1_000_001 * HOUR_MS });
    const second = await open_({ clock: after, bootId: "after" });
    expect(await second.status(QUEUE)).toEqual({ pending: 2, processing: 0 });
    const [again] = await second.dequeue(QUEUE, { leaseMs: 100 * HOUR_MS });
    expect(again).toMatchObject({ id: taken?.id, deliveryCount: 2 });
    expect(await second.nextDue(QUEUE)).toBe(2 * HOUR_MS);
    after.advance(2 * HOUR_MS - 1);
    expect(await second.dequeue(QUEUE)).toEqual([]);
    after.advance(1);
    expect(await second.dequeue(QUEUE)).toMatchObject([{ data: Buffer.from([2]) }]);
    await second.close();
  });

  it("that finds the wall clock set back by years keeps a delay no longer than it was", async () => {
    const first = await open_({ clock: new ManualClock({ wallMs: 1_000_000 * HOUR_MS }), bootId: "before" });
    await first.createQueue(QUEUE);
    await first.enqueue(QUEUE, [{ ...payload(1, 1), delayMs: 3 * HOUR_MS }]);
    await first.close();
    const second = await open_({ clock: new ManualClock({ wallMs: 0 }), bootId: "after" });
    expect(await second.nextDue(QUEUE)).toBe(3 * HOUR_MS);
    await second.close();
  });

  it("does not forget which ids were used, nor the first answers to requests", async () => {
    const id = "chosen" as never;
    const first = await open_({ clock: new ManualClock(), bootId: "before" });
    await first.createQueue(QUEUE);
    await first.enqueue(QUEUE, [{ ...payload(1, 1), id }]);
    const answer = await first.dequeue(QUEUE, { requestId: "request" });
    await first.close();
    const second = await open_({ clock: new ManualClock({ monotonicMs: 0 }), bootId: "after" });
    expect(await second.enqueue(QUEUE, [{ ...payload(1, 1), id }])).toEqual([{ outcome: "repeated", id }]);
    expect(await second.dequeue(QUEUE, { requestId: "request" })).toEqual(answer);
    await second.close();
  });
});

describe("a damaged file", () => {
  /** Fills a store of so many messages of 4 KiB, the first few in processing, and closes it. */
  async function fill(messages: number): Promise<void> {
    const backend = await open_();
    await backend.createQueue(QUEUE);
    for (let stored = 0; stored < messages; stored += 500)
      await backend.enqueue(
        QUEUE,
        Array.from({ length: 500 }, () => payload(4_000, 7)),
      );
    await backend.close();
  }

  /** Overwrites pages of a table with nonsense: the first leaf, or all. */
  async function damage(table: string, which: "first leaf" | "root"): Promise<void> {
    const database = new Database(path);
    database.pragma("journal_mode = DELETE");
    const pageBytes = database.pragma("page_size", { simple: true }) as number;
    const page =
      which === "root"
        ? database.prepare("SELECT rootpage FROM sqlite_schema WHERE name = ?").pluck().get(table)
        : database.prepare("SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY path LIMIT 1").pluck().get(table);
    database.pragma("journal_mode = WAL");
    database.close();
    const file = await open(path, "r+");
    await file.write(Buffer.alloc(pageBytes, 0xfe), 0, pageBytes, ((page as number) - 1) * pageBytes);
    await file.close();
  }

  it("is refused at open while it is small enough to be checked", async () => {
    await fill(1_000);
    await damage("message", "first leaf");
    await expect(open_()).rejects.toMatchObject({ code: "store-corrupt" });
  });

  it("says so from dequeue on, in every answer, and never that it is empty", async () => {
    await fill(3_000);
    await damage("message", "first leaf");
    const backend = await open_();
    // The counters lie in another page, which is sound.
    expect(await backend.status(QUEUE)).toEqual({ pending: 3_000, processing: 0 });
    await expect(backend.dequeue(QUEUE)).rejects.toMatchObject({ code: "store-corrupt" });
    await expect(backend.status(QUEUE)).rejects.toMatchObject({ code: "store-corrupt" });
    await expect(backend.statuses({ under: "" })).rejects.toMatchObject({ code: "store-corrupt" });
    await expect(backend.enqueue(QUEUE, [payload(1, 1)])).rejects.toMatchObject({ code: "store-corrupt" });
    await expect(backend.dequeue(QUEUE)).rejects.toMatchObject({ code: "store-corrupt" });
    const errors = (await backend.inspect()).filter(({ severity }) => severity === "error");
    expect(errors.map(({ check }) => check)).toContain("integrity");
    await backend.close();
  });

  it("says so after a listing has met the damage, too", async () => {
    await fill(3_000);
    await damage("message", "first leaf");
    const backend = await open_();
    await expect(backend.messages(QUEUE)).rejects.toMatchObject({ code: "store-corrupt" });
    await expect(backend.status(QUEUE)).rejects.toMatchObject({ code: "store-corrupt" });
    await backend.close();
  });

  it("cannot be opened when the counters themselves are gone", async () => {
    await fill(3_000);
    await damage("queue", "root");
    await expect(open_()).rejects.toMatchObject({ code: "store-corrupt" });
  });

  it("in which messages are missing is not empty: dequeue says that it is damaged", async () => {
    await fill(500);
    const database = new Database(path);
    database.exec("DELETE FROM message");
    database.close();
    const backend = await open_();
    expect(await backend.status(QUEUE)).toEqual({ pending: 500, processing: 0 });
    await expect(backend.dequeue(QUEUE)).rejects.toMatchObject({ code: "store-corrupt" });
    expect((await backend.inspect()).filter(({ severity }) => severity === "error").map(({ check }) => check)).toEqual(["counters"]);
    await backend.close();
  });
});

describe("a file of somebody else", () => {
  it("is refused when its schema is newer, and left as it is", async () => {
    await (await open_()).close();
    const database = new Database(path);
    database.pragma("user_version = 99");
    database.close();
    await expect(open_()).rejects.toMatchObject({ code: "store-unsuitable", message: expect.stringContaining("schema 99 is newer") });
    const again = new Database(path, { readonly: true });
    expect(again.pragma("user_version", { simple: true })).toBe(99);
    again.close();
  });

  it("is refused when another program made it", async () => {
    const database = new Database(path);
    database.exec("CREATE TABLE bookmarks (url TEXT); INSERT INTO bookmarks VALUES ('https://example.org')");
    database.close();
    await expect(open_()).rejects.toMatchObject({ code: "store-unsuitable", message: expect.stringContaining("bookmarks") });
    const again = new Database(path, { readonly: true });
    expect(again.pragma("journal_mode", { simple: true })).toBe("delete");
    expect(again.prepare("SELECT name FROM sqlite_schema").pluck().all()).toEqual(["bookmarks"]);
    again.close();
  });

  it("of the reference layout is refused with the command that takes it over", async () => {
    writeOldFile(path, { messages: [{ queue: "jobs", id: "1", record: oldRecord("1", "text") }] });
    await expect(open_()).rejects.toMatchObject({ code: "store-unsuitable", message: expect.stringContaining("queuefs migrate") });
  });

  it("that is no database at all is refused", async () => {
    await writeFile(path, "These are the accounts of the year, and nobody may touch them.\n".repeat(100));
    await expect(open_()).rejects.toMatchObject({ code: "store-corrupt" });
  });

  it("with nothing in it becomes a store", async () => {
    await writeFile(path, "");
    const backend = await open_();
    expect(await backend.createQueue(QUEUE)).toBe("created");
    await backend.close();
  });

  it.each([
    ["a folder", () => folder, "store-unreachable"],
    ["a file in a folder that does not exist", () => join(folder, "missing", "queue.db"), "store-unreachable"],
    ["memory", () => ":memory:", "invalid-argument"],
    ["no name", () => "", "invalid-argument"],
    ["a name with NUL", () => join(folder, "a\0b"), "invalid-argument"],
  ])("cannot be %s", async (_what, where, code) => {
    await expect(open_({ path: where() })).rejects.toMatchObject({ code });
  });
});

describe("one file by several names", () => {
  it("is one store, whose listeners are woken", async () => {
    const first = await open_();
    await first.createQueue(QUEUE);
    await symlink(path, join(folder, "link.db"));
    const errors: unknown[] = [];
    const second = await open_({ path: join(folder, "link.db"), onError: (error) => void errors.push(error) });
    const woken = new Promise<void>((resolve) => second.subscribe(() => resolve()));
    await first.enqueue(QUEUE, [payload(1, 1)]);
    await woken;
    expect(await second.status(QUEUE)).toEqual({ pending: 1, processing: 0 });
    expect(errors).toEqual([]);
    await second.close();
    await first.close();
  });
});

describe("a file that may not be written", () => {
  it("can be read while another process has it open, and says why it cannot be written", async () => {
    const backend = await open_();
    await backend.createQueue(QUEUE);
    await backend.enqueue(QUEUE, [payload(1, 1), payload(1, 2)]);
    // A lease that has ended is nothing a reader could recover.
    await backend.dequeue(QUEUE, { leaseMs: 10 });
    await chmod(path, 0o444);
    await chmod(`${path}-wal`, 0o444);
    await chmod(`${path}-shm`, 0o444);
    await chmod(folder, 0o555);
    // Root may write everything; another user stands in for it.
    const reader = await children.start(process.getuid?.() === 0 ? { userId: 65_534 } : {});
    const store = await openRemote(reader, { kind: "sqlite", path, sweepIntervalMs: 10 });
    expect((await store.statuses({ queues: [QUEUE] })).map(({ pending, processing }) => pending + processing)).toEqual([2]);
    expect((await store.messages(QUEUE)).items.length).toBe(2);
    await expect(store.enqueue(QUEUE, [payload(1, 3)])).rejects.toMatchObject({ code: "store-read-only" });
    await expect(store.dequeue(QUEUE)).rejects.toMatchObject({ code: "store-read-only" });
    expect((await store.messages(QUEUE)).items.length).toBe(2);
    await store.close();
    await chmod(folder, 0o755);
    await backend.close();
  });
});

describe("who is gone", () => {
  const self = identifyThisProcess();

  it.each([
    ["this process", self, false],
    ["a process that started at another time under this id", { ...self, started: "1" }, true],
    ["a process of another namespace, of which nothing is known", { ...self, started: "1", namespace: "pid:[1]" }, false],
  ])("%s: %s", (_what, identity, isGone) => {
    expect(isProvablyGone(identity)).toBe(isGone);
  });

  it("a process that is dead but not yet buried by its parent counts as gone", async () => {
    const { spawn } = await import("node:child_process");
    // The shell becomes a program that does not ask after children; the one it started ends at once.
    const parent = spawn("sh", ["-c", "true & echo $!; exec cat"], { stdio: ["pipe", "pipe", "inherit"] });
    const processId = await new Promise<number>((resolve) =>
      parent.stdout.once("data", (line: Buffer) => resolve(Number(line.toString()))),
    );
    // It ends by itself in an instant, which nothing tells of.
    while (!isProvablyGone({ processId, started: "", namespace: self.namespace })) await new Promise((resolve) => setImmediate(resolve));
    parent.stdin.end();
    await new Promise((resolve) => parent.once("close", resolve));
  });
});
