/** Each page of a small store damaged in turn, before it is opened and while it is open, and files and folders that may not be written. */

import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Backend } from "../../src/backend/contract.ts";
import { openSqlite } from "../../src/backend/sqlite/index.ts";
import { isQueueFSError } from "../../src/core/errors.ts";
import { parseQueueName, parseTaskId } from "../../src/core/names.ts";
import { SeededRandom } from "../../src/testing/index.ts";
import { childProcesses } from "../support/child-process.ts";
import type { FaultPrograms } from "./programs/main.ts";
import { openRemote } from "./remote-store.ts";
import { report } from "./report.ts";
import { fastFolder } from "./sqlite-io/fast-folder.ts";
import { givenSeed } from "./sqlite-io/seed.ts";

const children = childProcesses<FaultPrograms>("test/faults/programs/main.ts");
const QUEUE = parseQueueName("jobs");
const TASK = parseTaskId("import-1");
const RESOURCE = "r".repeat(500);
const [PENDING, PROCESSING] = [35, 5];
const PAGE_BYTES = 2_048;
/** What damage may be answered with. */
const CODES = ["store-corrupt", "store-failed", "store-unsuitable"];
let folder: string;
let whole: string;
let pages: number;

function openAt(path: string): Promise<Backend> {
  return openSqlite({ path, bootId: "same", sweepIntervalMs: 3_600_000, minFreeBytes: 0, busyTimeoutMs: 100, onError: () => {} });
}

beforeAll(async () => {
  folder = mkdtempSync(join(fastFolder() ?? tmpdir(), "queuefs-damage-"));
  chmodSync(folder, 0o755);
  whole = join(folder, "whole.db");
  const backend = await openAt(whole);
  await backend.createQueue(QUEUE, { maxDeliveries: 0 });
  // Payloads that fit into a page of the tree: bytes of others are not covered by any structure of SQLite.
  await backend.enqueue(
    QUEUE,
    Array.from({ length: PENDING + PROCESSING }, (_none, index) => ({ data: new Uint8Array(300).fill(index) })),
  );
  await backend.createTask({ id: TASK, type: "import", resource: RESOURCE });
  await backend.dequeue(QUEUE, { limit: PROCESSING, leaseMs: 600_000, owner: "receipt" });
  await backend.close();
  pages = statSync(whole).size / PAGE_BYTES;
});

afterEach(() => children.end());
afterAll(() => rmSync(folder, { recursive: true }));

/** Asks for everything. @returns what was answered wrongly; an error of damage is a right answer */
async function ask(backend: Backend): Promise<{ wrong: string[]; refused: number }> {
  const wrong: string[] = [];
  let refused = 0;
  const attempt = async (what: string, call: () => Promise<string | undefined>): Promise<void> => {
    try {
      const answer = await call();
      if (answer !== undefined) wrong.push(`${what}: ${answer}`);
    } catch (error) {
      refused += 1;
      if (!isQueueFSError(error) || !CODES.includes(error.code)) wrong.push(`${what}: ${error instanceof Error ? error.stack : error}`);
    }
  };
  const isRight = (pending: number, processing: number) => pending === PENDING && processing === PROCESSING;
  await attempt("status", async () => {
    const { pending, processing } = await backend.status(QUEUE);
    return isRight(pending, processing) ? undefined : `${pending}, ${processing}`;
  });
  await attempt("statuses", async () => {
    const [first] = await backend.statuses({ under: "" });
    return first !== undefined && isRight(first.pending, first.processing) ? undefined : JSON.stringify(first);
  });
  await attempt("messages", async () => {
    const { items } = await backend.messages(QUEUE, { limit: 1_000 });
    const fills = items.map(({ data }) => data[0]);
    return fills.join() === Array.from({ length: PENDING + PROCESSING }, (_none, index) => index).join() ? undefined : `${fills}`;
  });
  await attempt("peek", async () => {
    const message = await backend.peek(QUEUE);
    return message?.data[0] === PROCESSING ? undefined : `${message?.data[0]}`;
  });
  await attempt("task", async () => {
    const { type, resource } = await backend.task(TASK);
    return type === "import" && resource === RESOURCE ? undefined : `${type} ${resource}`;
  });
  await attempt("enqueue", async () =>
    (await backend.enqueue(QUEUE, [{ data: new Uint8Array(1) }])).length === 1 ? undefined : "nothing",
  );
  await attempt("dequeue", async () => {
    const [message] = await backend.dequeue(QUEUE);
    if (message === undefined) return "empty";
    if (message.data[0] !== PROCESSING || message.data.some((byte) => byte !== PROCESSING)) return `message ${message.data[0]}`;
    const [answer] = await backend.ack(QUEUE, [{ receipt: message.receipt }]);
    return answer?.outcome === "acked" ? undefined : "stale";
  });
  return { wrong, refused };
}

const DAMAGES: readonly (readonly [string, (random: SeededRandom) => Buffer])[] = [
  ["random bytes", (random) => Buffer.from(Array.from({ length: PAGE_BYTES }, () => Math.floor(random.fraction() * 256)))],
  ["zeros", () => Buffer.alloc(PAGE_BYTES)],
  ["ones", () => Buffer.alloc(PAGE_BYTES, 0xff)],
];

describe("a damaged page", () => {
  it("apart, everything is answered and right", async () => {
    const path = join(folder, "sound.db");
    copyFileSync(whole, path);
    const backend = await openAt(path);
    expect(await ask(backend)).toEqual({ wrong: [], refused: 0 });
    await backend.close();
  });

  it.each(DAMAGES)("of %s, whichever it is, makes no store answer wrongly, neither at open nor later", async (_what, damage) => {
    const random = new SeededRandom(givenSeed());
    const wrong: string[] = [];
    const counts = { refusedAtOpen: 0, refusedLater: 0, harmless: 0 };
    for (let page = 0; page < pages; page += 1) {
      const path = join(folder, `page-${page}.db`);
      const content = readFileSync(whole);
      damage(random).copy(content, page * PAGE_BYTES);
      writeFileSync(path, content);
      const backend = await openAt(path).catch((error: unknown) => {
        counts.refusedAtOpen += 1;
        if (!isQueueFSError(error) || !CODES.includes(error.code)) wrong.push(`open with page ${page + 1}: ${error}`);
        return undefined;
      });
      if (backend === undefined) continue;
      const asked = await ask(backend);
      await backend.close();
      if (asked.refused > 0) counts.refusedLater += 1;
      else counts.harmless += 1;
      wrong.push(...asked.wrong.map((text) => `page ${page + 1}, at open: ${text}`));
    }
    report(`${pages} pages damaged before the open: ${JSON.stringify(counts)}`);
    expect(wrong).toEqual([]);
    expect(counts.refusedAtOpen).toBeGreaterThan(pages / 2);
  });

  it.each(DAMAGES)("of %s that comes while the store is open makes no answer wrong", async (_what, damage) => {
    const random = new SeededRandom(givenSeed());
    const wrong: string[] = [];
    const counts = { refused: 0, harmless: 0 };
    for (let page = 0; page < pages; page += 1) {
      const path = join(folder, `open-${page}.db`);
      copyFileSync(whole, path);
      const backend = await openAt(path);
      // Another's commit, so that pages are read anew from the file; all of it is in the file, none in the log.
      const other = new Database(path);
      other.exec("INSERT OR REPLACE INTO store (name, value) VALUES ('other', 1)");
      other.pragma("wal_checkpoint(TRUNCATE)");
      const bytes = join(folder, "bytes");
      writeFileSync(bytes, damage(random));
      // By another process: closing a file would let go of the locks that this process has on it.
      execFileSync("dd", [`if=${bytes}`, `of=${path}`, "conv=notrunc", `bs=${PAGE_BYTES}`, `seek=${page}`], { stdio: "ignore" });
      const asked = await ask(backend);
      if (asked.refused > 0) counts.refused += 1;
      else counts.harmless += 1;
      wrong.push(...asked.wrong.map((text) => `page ${page + 1}, while open: ${text}`));
      other.close();
      await backend.close();
    }
    report(`${pages} pages damaged while open: ${JSON.stringify(counts)}`);
    expect(wrong).toEqual([]);
    expect(counts.refused).toBeGreaterThan(0);
  });

  it("a file cut off after any page, or inside one, is refused", async () => {
    const wrong: string[] = [];
    // Nothing at all is a new store, and says so: its queues are not found.
    for (let sizeBytes = PAGE_BYTES / 2; sizeBytes < pages * PAGE_BYTES; sizeBytes += PAGE_BYTES / 2) {
      const path = join(folder, `cut-${sizeBytes}.db`);
      copyFileSync(whole, path);
      truncateSync(path, sizeBytes);
      const answer = await openAt(path).then(
        async (backend) => {
          const { wrong: found } = await ask(backend);
          await backend.close();
          return found.length === 0 ? "all right" : found.join("; ");
        },
        (error: unknown) => (isQueueFSError(error, "store-corrupt") ? "refused" : String(error)),
      );
      if (answer !== "refused") wrong.push(`${sizeBytes} bytes: ${answer}`);
    }
    report(`cut off at ${pages * 2 - 1} places`);
    expect(wrong).toEqual([]);
  });
});

describe("a file that may not be written, while nobody else has it open", () => {
  /** Root may write everything; another user stands in for it. */
  const user = process.getuid?.() === 0 ? { userId: 65_534 } : {};

  it.each([
    ["the file", 0o444, 0o777],
    ["the folder", 0o666, 0o555],
    ["both", 0o444, 0o555],
    ["both, not even read", 0o000, 0o555],
  ])("%s: each call is refused with a code, or right", async (_what, fileMode, folderMode) => {
    const place = mkdtempSync(join(folder, "denied-"));
    const inner = join(place, "inner");
    mkdirSync(inner);
    chmodSync(place, 0o755);
    const path = join(inner, "queue.db");
    copyFileSync(whole, path);
    chmodSync(path, fileMode);
    chmodSync(inner, folderMode);
    const child = await children.start(user);
    const allowed = ["store-read-only", "store-unreachable"];
    const store = await openRemote(child, { kind: "sqlite", path, bootId: "same", sweepIntervalMs: 3_600_000 }).catch((error: unknown) => {
      expect(allowed).toContain((error as { code?: unknown }).code);
      return undefined;
    });
    if (store !== undefined) {
      expect(await store.status(QUEUE)).toEqual({ pending: PENDING, processing: PROCESSING });
      for (const call of [() => store.enqueue(QUEUE, [{ data: new Uint8Array(1) }]), () => store.dequeue(QUEUE), () => store.clear(QUEUE)])
        expect(allowed).toContain(
          await call().then(
            () => "it was done",
            (error: unknown) => (error as { code?: unknown }).code,
          ),
        );
      await store.close();
    }
    chmodSync(inner, 0o755);
    chmodSync(path, 0o644);
    const backend = await openAt(path);
    expect(await backend.status(QUEUE)).toEqual({ pending: PENDING, processing: PROCESSING });
    expect((await backend.inspect()).filter(({ severity }) => severity === "error")).toEqual([]);
    await backend.close();
  });
});
