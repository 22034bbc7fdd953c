import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openReferenceFile, type ReferenceRow } from "../../../src/migrate/reference-file.ts";
import { oldRecord, writeOldFile } from "../../support/reference-file.ts";

let folder: string;
let path: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "queuefs-reference-"));
  path = join(folder, "queue.db");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function rows(file: string): ReferenceRow[] {
  using open = openReferenceFile(file);
  const found: ReferenceRow[] = [];
  for (let row = open.nextRow(undefined); row !== undefined; row = open.nextRow(row.rowId)) found.push(row);
  return found;
}

function hash(file: string): string {
  return existsSync(file) ? createHash("sha256").update(readFileSync(file)).digest("hex") : "none";
}

describe("openReferenceFile", () => {
  it("reads every row in order, exactly", () => {
    writeOldFile(path, {
      queues: ["a", "empty"],
      messages: [
        { queue: "a", id: "1", record: oldRecord("1", "one") },
        { queue: Uint8Array.of(0x61, 0xff), id: null, record: Uint8Array.of(0xff, 0) },
        { queue: "a", id: "2", record: null, status: "processing" },
      ],
    });
    expect(rows(path)).toEqual([
      { rowId: 1n, queueKey: "a", messageId: "1", record: Buffer.from(oldRecord("1", "one")) },
      { rowId: 2n, queueKey: "a\u00ff", messageId: null, record: Buffer.of(0xff, 0) },
      { rowId: 3n, queueKey: "a", messageId: "2", record: null },
    ]);
    using file = openReferenceFile(path);
    expect(file.queueKeys().sort()).toEqual(["a", "empty"]);
    expect(file.processingCount()).toBe(1);
    expect(file.messageCount()).toBe(3);
  });

  it("reads files without status columns and without the table of queues", () => {
    writeOldFile(path, { queues: null, statusColumns: false, messages: [{ queue: "a", id: "1", record: oldRecord("1", "x") }] });
    expect(rows(path)).toHaveLength(1);
    using file = openReferenceFile(path);
    expect(file.queueKeys()).toEqual([]);
    expect(file.processingCount()).toBe(0);
  });

  it("reads rows at both ends of what a row number can be", () => {
    writeOldFile(path, { messages: [] });
    const database = new Database(path);
    for (const id of [-(2n ** 63n), 0n, 2n ** 63n - 1n]) {
      database.prepare("INSERT INTO queue_messages (id, queue_name, message_id, data, timestamp) VALUES (?, 'a', '1', '{}', 0)").run(id);
    }
    database.close();
    expect(rows(path).map((row) => row.rowId)).toEqual([-(2n ** 63n), 0n, 2n ** 63n - 1n]);
  });

  it("finds ids that messages of one queue share", () => {
    const message = (queue: string, id: string): { queue: string; id: string; record: string } => ({ queue, id, record: "{}" });
    writeOldFile(path, { messages: [message("a", "1"), message("a", "1"), message("b", "1"), message("b", "2")] });
    using file = openReferenceFile(path);
    expect([...file.sharedIds()]).toEqual(["a\u00001"]);
  });

  it("sees the moment it was opened in, whatever is written meanwhile", () => {
    writeOldFile(path, { messages: [{ queue: "a", id: "1", record: "{}" }] });
    using file = openReferenceFile(path);
    const writer = new Database(path);
    writer.exec(
      "INSERT INTO queue_messages (queue_name, message_id, data, timestamp) VALUES ('a', '2', '{}', 0); DELETE FROM queue_messages WHERE message_id = '1'",
    );
    writer.close();
    expect(file.nextRow(undefined)?.messageId).toBe("1");
    expect(file.nextRow(1n)).toBeUndefined();
  });

  it("reads what a killed service left in the write-ahead log, and changes neither file", () => {
    // The service dies with its last commits in the log only.
    const service = `
      const Database = require("better-sqlite3");
      const database = new Database(process.argv[1]);
      database.pragma("journal_mode = WAL");
      database.exec("CREATE TABLE queue_messages (id INTEGER PRIMARY KEY AUTOINCREMENT, queue_name TEXT, message_id TEXT, data TEXT, timestamp INTEGER)");
      database.exec("INSERT INTO queue_messages (queue_name, message_id, data, timestamp) VALUES ('a', 'in-log', '{}', 0)");
      process.kill(process.pid, "SIGKILL");`;
    spawnSync(process.execPath, ["--input-type=commonjs", "-e", service, path], { cwd: process.cwd() });
    expect(existsSync(`${path}-wal`)).toBe(true);
    const before = [hash(path), hash(`${path}-wal`)];
    expect(rows(path).map((row) => row.messageId)).toEqual(["in-log"]);
    expect([hash(path), hash(`${path}-wal`)]).toEqual(before);
  });

  it("reads a file whose folder cannot be written", () => {
    const closed = join(folder, "closed");
    mkdirSync(closed);
    writeOldFile(path, { messages: [{ queue: "a", id: "1", record: "{}" }] });
    copyFileSync(path, join(closed, "queue.db"));
    spawnSync("chmod", ["a+rx,a-w", closed]);
    spawnSync("chmod", ["a+rx", folder]);
    spawnSync("chmod", ["a+r", join(closed, "queue.db")]);
    // Nothing is closed to root, who reads it as somebody else.
    const root = process.geteuid?.() === 0;
    if (root) process.seteuid?.("nobody");
    try {
      expect(rows(join(closed, "queue.db"))).toHaveLength(1);
    } finally {
      if (root) process.seteuid?.(0);
    }
    expect(existsSync(join(closed, "queue.db-wal"))).toBe(false);
  });

  describe("refuses", () => {
    const refusal = (file: string): unknown => {
      try {
        openReferenceFile(file).close();
      } catch (error) {
        return error;
      }
      return undefined;
    };

    it("what is not there", () => {
      expect(refusal(join(folder, "no.db"))).toMatchObject({ code: "path-not-found" });
      expect(existsSync(join(folder, "no.db"))).toBe(false);
    });

    it("a directory", () => {
      expect(refusal(folder)).toMatchObject({ code: "invalid-argument", message: expect.stringContaining("not a file") });
    });

    it("text", () => {
      writeFileSync(path, "hello ".repeat(1_000));
      expect(refusal(path)).toMatchObject({ code: "invalid-argument", message: expect.stringContaining("not an SQLite file") });
      expect(readFileSync(path, "utf8")).toBe("hello ".repeat(1_000));
    });

    it("an empty file", () => {
      writeFileSync(path, "");
      expect(refusal(path)).toMatchObject({ code: "invalid-argument", message: expect.stringContaining("no table queue_messages") });
      expect(readFileSync(path)).toHaveLength(0);
    });

    it.each([
      ["another table", "CREATE TABLE t (x)", "no table queue_messages"],
      [
        "a table without what is needed",
        "CREATE TABLE queue_messages (id INTEGER PRIMARY KEY, queue_name TEXT)",
        "no column message_id, data",
      ],
      [
        "a table without the key that orders it",
        "CREATE TABLE queue_messages (id TEXT, queue_name TEXT, message_id TEXT, data TEXT)",
        "no integer key",
      ],
    ])("a file with %s", (_, sql, words) => {
      const database = new Database(path);
      database.exec(sql);
      database.close();
      expect(refusal(path)).toMatchObject({ code: "invalid-argument", message: expect.stringContaining(words) });
    });

    it("a damaged file, as damaged", () => {
      writeOldFile(path, {
        journal: "delete",
        messages: Array.from({ length: 500 }, (_, index) => ({
          queue: "a",
          id: `${index}`,
          record: oldRecord(`${index}`, "x".repeat(100)),
        })),
      });
      const bytes = readFileSync(path);
      bytes.fill(0x5a, 3 * 4_096, 12 * 4_096);
      writeFileSync(path, bytes);
      expect(() => rows(path)).toThrowError(expect.objectContaining({ code: "store-corrupt" }));
    });
  });
});
