import { createHash, randomBytes } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Backend } from "../../../src/backend/contract.ts";
import { openSqlite } from "../../../src/backend/sqlite/index.ts";
import type { Page } from "../../../src/core/message.ts";
import { parseChosenMessageId, parseQueueName } from "../../../src/core/names.ts";
import { planTakeover } from "../../../src/migrate/plan.ts";
import { openReferenceFile } from "../../../src/migrate/reference-file.ts";
import { type TakeoverOptions, type TakeoverReport, takeOver } from "../../../src/migrate/takeover.ts";
import { type OldFile, type OldMessage, oldRecord, writeOldFile } from "../../support/reference-file.ts";

let folder: string;
let path: string;
let backend: Backend;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "queuefs-takeover-"));
  path = join(folder, "queue.db");
  backend = await openSqlite({ path: join(folder, "new.db"), durability: "normal" });
});
afterEach(async () => {
  await backend.close();
  rmSync(folder, { recursive: true, force: true });
});

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const text = (data: Uint8Array): string => Buffer.from(data).toString("utf8");

async function all<Item>(list: (after: string | undefined) => Promise<Page<Item>>): Promise<Item[]> {
  const items: Item[] = [];
  let after: string | undefined;
  do {
    const page = await list(after);
    items.push(...page.items);
    after = page.next;
  } while (after !== undefined);
  return items;
}

async function contents(queue: string): Promise<{ id: string; data: string; state: string }[]> {
  const messages = await all((after) => backend.messages(parseQueueName(queue), after === undefined ? {} : { after }));
  return messages.map((message) => ({ id: message.id, data: text(message.data), state: message.state }));
}

async function migrate(old: OldFile | undefined, options?: TakeoverOptions): Promise<TakeoverReport> {
  if (old !== undefined) writeOldFile(path, old);
  using file = openReferenceFile(path);
  // Awaited here, so that the file stays open for it.
  return await takeOver(file, backend, options);
}

const message = (queue: string, id: string, data: string | Uint8Array = id): OldMessage => ({ queue, id, record: oldRecord(id, data) });

describe("takeOver", () => {
  it("takes everything: both kinds of data, all states, in order, with the ids", async () => {
    const report = await migrate({
      queues: ["jobs", "other", "never/used"],
      messages: [
        { ...message("jobs", "9", "nine"), status: "processing" },
        message("other", "3", bytes("three")),
        message("jobs", "1", bytes("one")),
        message("only/in/rows", "5"),
        message("jobs", "2", ""),
      ],
    });
    expect(await contents("jobs")).toEqual([
      { id: "9", data: "nine", state: "pending" },
      { id: "1", data: "one", state: "pending" },
      { id: "2", data: "", state: "pending" },
    ]);
    expect(await contents("other")).toEqual([{ id: "3", data: "three", state: "pending" }]);
    expect(await contents("only/in/rows")).toHaveLength(1);
    expect((await backend.listQueues()).items).toEqual(["jobs", "never/used", "only/in/rows", "other"]);
    expect(report).toMatchObject({ messages: 5, unreadable: 0, processing: 1 });
    expect(report.queues.map((queue) => [queue.queue, queue.stored, queue.newIds])).toEqual([
      ["jobs", 3, 0],
      ["never/used", 0, 0],
      ["only/in/rows", 1, 0],
      ["other", 1, 0],
    ]);
  });

  it("takes older files, without status and without the table of queues", async () => {
    await migrate({ queues: null, statusColumns: false, messages: [message("a", "1"), message("a", "2")] });
    expect((await contents("a")).map((found) => found.id)).toEqual(["1", "2"]);
  });

  it("keeps bytes exactly, 8 MiB of them too", async () => {
    const all256 = Uint8Array.from({ length: 256 }, (_, value) => value);
    const big = randomBytes(8 * 1024 * 1024);
    await migrate({ messages: [message("a", "1", all256), message("a", "2", big), message("a", "3", "a\r\n\u0000ü")] });
    const found = await all((after) => backend.messages(parseQueueName("a"), after === undefined ? {} : { after }));
    expect(Buffer.from(found[0]?.data ?? "")).toEqual(Buffer.from(all256));
    expect(
      createHash("sha256")
        .update(found[1]?.data ?? "")
        .digest("hex"),
    ).toBe(createHash("sha256").update(big).digest("hex"));
    expect(text(found[2]?.data ?? bytes("none"))).toBe("a\r\n\u0000ü");
  });

  it("gives queues with names that are reserved now another, and tells which", async () => {
    const report = await migrate({
      queues: ["status", "jobs/messages"],
      messages: [message("status", "1"), message("jobs/status", "2"), message("migrated-status", "3")],
    });
    const renamed = Object.fromEntries(report.queues.map((queue) => [queue.oldName, queue.queue]));
    expect(renamed).toMatchObject({
      "jobs/messages": "jobs/migrated-messages",
      "jobs/status": "jobs/migrated-status",
      "migrated-status": "migrated-status",
    });
    expect(await contents(renamed.status as string)).toHaveLength(1);
    expect(await contents("migrated-status")).toEqual([{ id: "3", data: "3", state: "pending" }]);
    for (const queue of report.queues) expect(queue.reason === undefined).toBe(queue.oldName === queue.queue);
  });

  it("loses no message to an id that is shared, missing, malformed or kept for the store", async () => {
    const report = await migrate({
      messages: [
        message("a", "same", "first"),
        message("a", "same", "second"),
        message("a", "same", "first"),
        message("b", "same", "in b"),
        { queue: "a", id: null, record: oldRecord("x", "no id") },
        message("a", "m-1", "kept"),
        message("a", "with space", "malformed"),
        message("a", "migrated-1", "made"),
        message("a", "", "empty"),
      ],
    });
    expect(await contents("a")).toEqual(
      [
        ["same", "first"],
        ["migrated-2", "second"],
        ["migrated-3", "first"],
        ["migrated-5", "no id"],
        ["migrated-6", "kept"],
        ["migrated-7", "malformed"],
        ["migrated-8", "made"],
        ["migrated-9", "empty"],
      ].map(([id, data]) => ({ id, data, state: "pending" })),
    );
    expect(await contents("b")).toHaveLength(1);
    expect(report.queues[0]).toMatchObject({ newIds: 7, stored: 8 });
  });

  it("puts records that cannot be decoded aside as dead letters, raw, each with its reason", async () => {
    const raw = Uint8Array.of(0xff, 0xfe, 0);
    const report = await migrate({
      messages: [
        message("a", "1"),
        { queue: "a", id: "bad", record: "not json" },
        message("a", "2"),
        { queue: "a", id: null, record: raw },
        { queue: "a", id: "none", record: null },
        { queue: "b", id: "bad", record: '{"data":[256]}' },
      ],
    });
    expect((await contents("a")).map((found) => found.id)).toEqual(["1", "2"]);
    const letters = (await backend.deadLetters(parseQueueName("a"))).items;
    expect(letters.map((letter) => [letter.id, Buffer.from(letter.data)])).toEqual([
      ["bad", Buffer.from("not json")],
      ["migrated-4", Buffer.from(raw)],
      ["none", Buffer.alloc(0)],
    ]);
    expect(letters.map((letter) => letter.reason)).toEqual([
      expect.stringContaining("not JSON"),
      expect.stringContaining("UTF-8"),
      expect.stringContaining("NULL"),
    ]);
    expect(await contents("b")).toEqual([]);
    expect(report).toMatchObject({ messages: 2, unreadable: 4 });
    expect(report.queues.map((queue) => [queue.putAside, queue.leftRaw])).toEqual([
      [3, 0],
      [1, 0],
    ]);
  });
});

describe("takeOver into a store that is in use, and again", () => {
  it("goes behind what the target holds, and gives that back untouched", async () => {
    const queue = parseQueueName("a");
    await backend.createQueue(queue);
    await backend.enqueue(
      queue,
      Array.from({ length: 250 }, (_, index) => ({ data: bytes(`own ${index}`) })),
    );
    const report = await migrate({ messages: [message("a", "1"), { queue: "a", id: "bad", record: "?" }] });
    const found = await contents("a");
    expect(found.map((entry) => entry.data)).toEqual([...Array.from({ length: 250 }, (_, index) => `own ${index}`), "1"]);
    expect(found.every((entry) => entry.state === "pending")).toBe(true);
    expect((await backend.peek(queue))?.deliveryCount).toBe(0);
    expect((await backend.deadLetters(queue)).items.map((letter) => letter.id)).toEqual(["bad"]);
    expect(report.queues[0]).toMatchObject({ existed: true, putAside: 1, leftRaw: 0 });
  });

  it("stores a message under another id where the target uses its id for something else", async () => {
    const queue = parseQueueName("a");
    await backend.createQueue(queue);
    await backend.enqueue(queue, [{ id: parseChosenMessageId("1"), data: bytes("somebody else's") }]);
    const old = { messages: [message("a", "1"), message("a", "2")] };
    const report = await migrate(old);
    expect((await contents("a")).map((found) => found.id).sort()).toEqual(["1", "2", "migrated-1"]);
    expect(report.queues[0]).toMatchObject({ displaced: 1, stored: 2 });
    expect((await migrate(undefined)).queues[0]).toMatchObject({ stored: 0, repeated: 2 });
    expect(await contents("a")).toHaveLength(3);
  });

  it("can be run again, after an interruption at any step, and stores nothing twice", async () => {
    const messages = Array.from(
      { length: 2_500 },
      (_, index): OldMessage =>
        index % 500 === 7 ? { queue: "a", id: `${index}`, record: "?" } : message(index % 3 === 0 ? "b" : "a", `${index}`),
    );
    writeOldFile(path, { messages });
    for (const steps of [1, 2, 3]) {
      const controller = new AbortController();
      let seen = 0;
      const reason = new Error("interrupted");
      const onProgress = (): void => {
        seen += 1;
        if (seen === steps) controller.abort(reason);
      };
      await expect(migrate(undefined, { signal: controller.signal, onProgress })).rejects.toBe(reason);
    }
    await migrate(undefined);
    const report = await migrate(undefined);
    const expected = (queue: string): string[] =>
      messages.filter((old) => old.queue === queue && old.record !== "?").map((old) => old.id as string);
    expect((await contents("a")).map((found) => found.id)).toEqual(expected("a"));
    expect((await contents("b")).map((found) => found.id)).toEqual(expected("b"));
    expect((await backend.deadLetters(parseQueueName("a"))).items.map((letter) => letter.id)).toEqual(["7", "507", "1007", "1507", "2007"]);
    for (const queue of report.queues)
      expect(queue).toMatchObject({ stored: 0, repeated: queue.messages + queue.unreadable, putAside: queue.unreadable, leftRaw: 0 });
  });

  it("does not store again what was acked in between", async () => {
    await migrate({ messages: [message("a", "1"), message("a", "2")] });
    const [delivery] = await backend.dequeue(parseQueueName("a"));
    await backend.ack(parseQueueName("a"), [{ receipt: delivery?.receipt as NonNullable<typeof delivery>["receipt"] }]);
    await migrate(undefined);
    expect((await contents("a")).map((found) => found.id)).toEqual(["2"]);
  });

  it("leaves the old file as it was, byte for byte", async () => {
    writeOldFile(path, { messages: [message("a", "1"), { queue: "a", id: "bad", record: "?" }] });
    const before = readFileSync(path);
    await migrate(undefined);
    expect(readFileSync(path).equals(before)).toBe(true);
    expect(existsSync(`${path}-wal`) ? readFileSync(`${path}-wal`).length : 0).toBe(0);
  });

  it("writes nothing when a message does not fit the target", async () => {
    await backend.close();
    backend = await openSqlite({ path: join(folder, "small.db"), maxMessageBytes: 1_024 });
    const old = { queues: ["q"], messages: [message("a", "1"), message("a", "big", "x".repeat(1_025))] };
    await expect(migrate(old)).rejects.toMatchObject({ code: "message-too-large", message: expect.stringContaining('"big"') });
    expect((await backend.listQueues()).items).toEqual([]);
  });

  it("takes any file over without loss, and a second run changes nothing", async () => {
    const record = fc.oneof(
      fc.uint8Array({ maxLength: 20 }).map((data) => oldRecord("x", data)),
      fc.string({ unit: "grapheme", maxLength: 20 }).map((data) => oldRecord("x", data, "2024-05-01T10:00:00Z")),
      fc.constantFrom(null, "", "?", '{"data":7}'),
      fc.uint8Array({ maxLength: 8 }),
    );
    const old: fc.Arbitrary<OldMessage> = fc.record({
      queue: fc.constantFrom("a", "a/b", "status", "migrated-status", "", "/a", "x\u0001"),
      id: fc.constantFrom(null, "1", "2", "migrated-1", "m-1", "a b"),
      record,
      status: fc.constantFrom("pending" as const, "processing" as const),
    });
    let round = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(old, { maxLength: 30 }), fc.boolean(), async (messages, statusColumns) => {
        round += 1;
        const file = join(folder, `old-${round}.db`);
        writeOldFile(file, { messages, statusColumns, queues: ["a", "peek"] });
        await using store = await openSqlite({ path: join(folder, `new-${round}.db`), durability: "normal" });
        const look = async (): Promise<unknown[]> =>
          Promise.all(
            (await store.listQueues()).items.map(async (queue) => [
              queue,
              (await store.messages(queue)).items.map((item) => [item.id, Buffer.from(item.data).toString("hex"), item.state]),
              (await store.deadLetters(queue)).items.map((item) => [item.id, Buffer.from(item.data).toString("hex")]),
            ]),
          );
        using reference = openReferenceFile(file);
        const plan = planTakeover(reference, 1_000_000);
        await takeOver(reference, store);
        const first = await look();
        for (const queue of plan.queues) {
          const found = first.find((entry) => (entry as unknown[])[0] === queue.queue) as [string, unknown[], unknown[]];
          expect([found[1].length, found[2].length]).toEqual([queue.messages, queue.unreadable]);
        }
        expect(plan.messages + plan.unreadable).toBe(messages.length);
        await takeOver(reference, store);
        expect(await look()).toEqual(first);
      }),
      { numRuns: 30 },
    );
  });
});
