/** Control files: whatever is written, in whatever pieces, does what its file says or is refused; and the counts say what was done. */

import fc from "fast-check";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Backend } from "../../src/backend/contract.ts";
import { openMemory } from "../../src/backend/memory/index.ts";
import { CONTROL_FILES } from "../../src/core/control-files.ts";
import { parseQueueName } from "../../src/core/names.ts";
import { QueueFS } from "../../src/fs/index.ts";
import { readInParts, type Taken } from "../support/file-face.ts";
import { endingAsync, holdAsync } from "./fuzzing.ts";
import { anyBytes, anyJson, anyNumber, anyText } from "./values.ts";

const Q = parseQueueName("q");
let backend: Backend;
let files: QueueFS;
beforeEach(async () => {
  backend = await openMemory();
  files = new QueueFS(backend);
  await files.mkdir("/q");
});
afterEach(async () => {
  await files.close();
  await backend.close();
});

/** Bytes cut into pieces, some of them empty. */
function pieces(bytes: Uint8Array, cuts: readonly number[]): Uint8Array[] {
  const places = [0, ...cuts.map((cut) => cut % (bytes.byteLength + 1)).sort((left, right) => left - right), bytes.byteLength];
  return places.slice(1).map((end, index) => bytes.subarray(places[index], end));
}

/** One thing that somebody does to the queue. `which` chooses among what there is. */
interface Action {
  readonly kind: "enqueue" | "dequeue" | "write" | "look";
  readonly file: string;
  readonly bytes: Uint8Array;
  readonly cuts: readonly number[];
  readonly which: number;
  readonly eager: boolean;
  readonly around: string;
  readonly form: "bytes" | "receipt" | "id" | "object" | "ids";
  readonly json: unknown;
}

const action: fc.Arbitrary<Action> = fc.record({
  kind: fc.constantFrom("enqueue", "enqueue", "dequeue", "dequeue", "write", "write", "look"),
  file: fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom("ack", ".nack", ".extend", ".dead") },
    { weight: 1, arbitrary: fc.constantFrom(...Object.keys(CONTROL_FILES)) },
  ),
  bytes: anyBytes,
  cuts: fc.array(fc.nat(), { maxLength: 4 }),
  which: fc.nat(),
  eager: fc.boolean(),
  around: fc.constantFrom("", " ", "\n", "\r\n", "\t \n", "\ufeff", "\0", "x"),
  form: fc.constantFrom("bytes", "receipt", "receipt", "id", "object", "ids"),
  json: anyJson,
});

/** What is held against the store: the messages that must be in it, and the deliveries that are current. */
interface Known {
  readonly messages: Map<string, Uint8Array>;
  readonly receipts: Map<string, string>;
  readonly stale: string[];
}

function textOf({ form, around, json, which }: Action, known: Known): string {
  const pick = <Item>(items: readonly Item[]): Item | undefined => items[which % Math.max(1, items.length)];
  const receipt = pick([...known.receipts.keys(), ...known.stale]) ?? "r-1-1-1";
  const id = pick([...known.messages.keys()]) ?? "none";
  if (form === "object")
    return (
      JSON.stringify(
        typeof json === "object" && json !== null ? { receipt, ...json } : { receipt, delayMs: json, leaseMs: json, giveUp: json },
      ) + around
    );
  if (form === "ids") return JSON.stringify({ [which % 2 === 0 ? "redrive" : "drop"]: which % 3 === 0 ? "all" : [id, json] }) + around;
  return around + (form === "receipt" ? receipt : id) + around;
}

async function write(path: string, data: Uint8Array, { cuts, eager }: Action): Promise<void> {
  const handle = await files.open(path, { mode: "write", eager });
  let failure: unknown;
  try {
    for (const piece of pieces(data, cuts)) await handle.write(piece);
  } catch (error) {
    failure = error;
  }
  // A close after a failed write may fail in the same way; the first failure tells.
  await handle.close().catch((error: unknown) => {
    failure ??= error;
  });
  if (failure !== undefined) throw failure;
}

/** What the store holds, by the library, which is none of what is tried here. */
async function unacked(): Promise<Map<string, { data: Uint8Array; state: string }>> {
  const { items } = await backend.messages(Q, { limit: 1_000 });
  return new Map(items.map(({ id, data, state }) => [id as string, { data, state }]));
}

async function enqueueOne(one: Action, known: Known): Promise<void> {
  const before = new Set((await unacked()).keys());
  const { error } = await endingAsync(() => write("/q/enqueue", one.bytes, one));
  expect(error).toBeUndefined();
  const added = [...(await unacked())].filter(([id]) => !before.has(id));
  expect(added.map(([, { data }]) => Buffer.from(data))).toEqual([Buffer.from(one.bytes)]);
  for (const [id] of added) known.messages.set(id, one.bytes);
}

async function dequeueOne(one: Action, known: Known): Promise<void> {
  const handle = await files.open("/q/dequeue", { mode: "read" });
  const taken = JSON.parse((await readInParts(handle, 1 + (one.which % 40))).toString("utf8")) as Taken & { readonly encoding?: "base64" };
  await handle.close();
  if (taken.id === undefined) {
    expect((await backend.status(Q)).pending).toBe(0);
    return;
  }
  expect(Buffer.from(taken.data, taken.encoding ?? "utf8")).toEqual(Buffer.from(known.messages.get(taken.id) as Uint8Array));
  known.receipts.set(taken.receipt, taken.id);
}

async function lookOnce({ file, which, cuts }: Action): Promise<void> {
  const opened = await endingAsync(() => files.open(`/q/${file}`, { mode: "read" }));
  if (opened.error !== undefined) {
    expect(opened.error.code).toBe("wrong-mode");
    return;
  }
  // These two act, or wait.
  if (file !== "dequeue" && file !== ".wait") await opened.result.read({ length: which % 100, offset: cuts[0] ?? 0 });
  await opened.result.close();
}

async function writeOne(one: Action, known: Known): Promise<void> {
  const before = await unacked();
  const data = one.form === "bytes" ? one.bytes : Buffer.from(textOf(one, known));
  const { error } = await endingAsync(() => write(`/q/${one.file}`, data, one));
  const after = await unacked();
  const gone = [...before].filter(([id]) => !after.has(id));
  if (one.file === "clear") expect(after.size).toBe(0);
  if (one.file === "enqueue") for (const [id] of after) if (!before.has(id)) known.messages.set(id, data);
  if (one.file === "ack") {
    expect(gone.length).toBe(error === undefined ? 1 : 0);
    for (const [, { state }] of gone) expect(state).toBe("processing");
  }
  // What was refused changed nothing; only of several dead letters those that are there are moved.
  if (error !== undefined && one.file !== ".dead") expect([...after]).toEqual([...before]);
}

/** Holds what is unacked against what is known of it. */
async function compare(known: Known): Promise<void> {
  const now = await unacked();
  for (const [receipt, id] of [...known.receipts]) {
    if (now.get(id)?.state === "processing") continue;
    known.receipts.delete(receipt);
    known.stale.push(receipt);
  }
  for (const [id, { data }] of now) expect(Buffer.from(data)).toEqual(Buffer.from(known.messages.get(id) as Uint8Array));
}

async function doOne(one: Action, known: Known): Promise<void> {
  if (one.kind === "enqueue") await enqueueOne(one, known);
  else if (one.kind === "dequeue") await dequeueOne(one, known);
  else if (one.kind === "look") await lookOnce(one);
  else await writeOne(one, known);
  await compare(known);
}

test("any history of writes is answered by the table, keeps the bytes, and adds up", async () => {
  await holdAsync<[Action[]]>([fc.array(action, { minLength: 1, maxLength: 25 })], 0.4, async (actions) => {
    await files.rm("/q", { recursive: true });
    await files.mkdir("/q");
    const known: Known = { messages: new Map(), receipts: new Map(), stale: [] };
    for (const one of actions) await doOne(one, known);
    const { pending, processing, dead, enqueued, acked, cleared } = await backend.statistics(Q);
    const states = [...(await unacked()).values()].map(({ state }) => state);
    expect({ pending, processing }).toEqual({
      pending: states.filter((state) => state === "pending").length,
      processing: states.filter((state) => state === "processing").length,
    });
    // Dead letters that were dropped are counted nowhere else.
    expect(enqueued).toBeGreaterThanOrEqual(pending + processing + dead + acked + cleared);
    expect((await backend.inspect()).filter(({ severity }) => severity === "error")).toEqual([]);
  });
});

test("any place of any file is read, or refused", async () => {
  await files.write("/q/enqueue", new Uint8Array(100).fill(120));
  const offset = fc.oneof(fc.nat({ max: 200 }), anyNumber, anyText);
  await holdAsync<[string, [unknown, unknown][]]>(
    [
      fc.constantFrom("peek", "messages", ".dead", "size", "status", ".stats"),
      fc.array(fc.tuple(offset, fc.oneof(fc.nat({ max: 300 }), anyNumber, anyText)), { maxLength: 5 }),
    ],
    3,
    async (file, reads) => {
      const handle = await files.open(`/q/${file}`, { mode: "read" });
      const whole = await handle.read({ length: 10_000, offset: 0 });
      for (const [at, length] of reads) {
        const { error, result } = await endingAsync(() => handle.read({ length: length as number, offset: at as number }));
        if (error !== undefined) expect(error.code).toBe("invalid-argument");
        else expect(Buffer.from(result)).toEqual(Buffer.from(whole.subarray(at as number, (at as number) + (length as number))));
      }
      await handle.close();
    },
  );
});
