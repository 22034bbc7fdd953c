/**
 * The types of the built package say yes to right use and no to wrong use: each snippet is a program of its own, compiled as a user's strict
 * project would be.
 */

import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "..", "..");

/** Begins every snippet. */
const HEAD = `
import { type Backend, type MessageId, NamedQueue, openStore, parseQueueName, parseReceipt, QueueFSError, waitComplete, Worker } from "queuefs";
import { HTTP_OPTIONS, type HttpOptions } from "queuefs/http-client";
import { MEMORY_OPTIONS, type MemoryOptions } from "queuefs/memory";
import { REDIS_OPTIONS, type RedisOptions } from "queuefs/redis";
import { SQLITE_OPTIONS, type SqliteOptions } from "queuefs/sqlite";
const store: Backend = await openStore("memory:");
const queue = parseQueueName("jobs");
const data = new Uint8Array();
type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false;
`;

/** What must compile. */
const RIGHT: Readonly<Record<string, string>> = {
  "a store is closed by await using": `{ await using other = await openStore("memory:"); await other.status(queue); }`,
  "the options of memory are those of its table": "const same: Same<keyof MemoryOptions, keyof typeof MEMORY_OPTIONS> = true; void same;",
  "the options of SQLite are those of its table": "const same: Same<keyof SqliteOptions, keyof typeof SQLITE_OPTIONS> = true; void same;",
  "the options of the HTTP client are those of its table":
    "const same: Same<keyof HttpOptions, keyof typeof HTTP_OPTIONS> = true; void same;",
  "the options of Redis are those of its table": "const same: Same<keyof RedisOptions, keyof typeof REDIS_OPTIONS> = true; void same;",
  "ids come back from enqueue and go on to redrive": `
    const [answer] = await store.enqueue(queue, [{ data }]);
    if (answer) { const id: MessageId = answer.id; await store.redrive(queue, [id]); }`,
  "the answers of ack are told apart by their outcome": `
    for (const answer of await store.ack(queue, [])) if (answer.outcome === "acked") answer.forwarded.length;`,
  "values of a queue have its type": `
    const typed = new NamedQueue<{ page: number }>(store, "pages");
    new Worker(typed, ({ page }) => { page.toFixed(); });
    await waitComplete(store, { queues: [typed.name] }, { timeoutMs: 0 });`,
  "a handler answers nothing or a verdict, at once or later": `
    import { giveUp, type Handler, retryAfter } from "queuefs";
    const handlers: Handler<string>[] = [
      () => {}, async () => {}, () => giveUp("no"), async () => retryAfter(5),
      async (text) => { if (text === "") return giveUp("empty"); },
      async (_text, { forward }) => { await forward(new NamedQueue<number>(store, "numbers"), 1); },
      async (text, { forward }) => text === "" ? giveUp("empty") : forward(new NamedQueue<number>(store, "numbers"), 1),
    ];
    void handlers;`,
  "a delivery has the value of its queue": `
    const typed = new NamedQueue<{ page: number }>(store, "pages");
    (await typed.dequeue())?.value.page.toFixed();
    for await (const { value } of typed.consume()) value.page.toFixed();`,
  "a codec decides the type of a queue": `
    import { jsonCodec, textCodec } from "queuefs";
    const text: NamedQueue<string> = new NamedQueue(store, "text", { codec: textCodec });
    const json: NamedQueue<{ a: 1 }> = new NamedQueue(store, "json", { codec: jsonCodec<{ a: 1 }>() });
    void [text, json];`,
  "a wait tells what was cleared": `
    const [status] = await waitComplete(store, { under: "" }, { onStall: ({ queues }) => { const cause: string | undefined = queues[0]?.cause; void cause; } });
    const cleared: number | undefined = status?.cleared; void cleared;`,
};

/** What must not compile, with the compiler's code for why. */
const WRONG: Readonly<Record<string, readonly [code: string, snippet: string]>> = {
  "any text as the name of a queue": ["TS2345", 'await store.status("jobs");'],
  "a receipt where a message id belongs": ["TS2322", 'await store.redrive(queue, [parseReceipt("r-1-1-1")]);'],
  "text as the data of a message": ["TS2322", 'await store.enqueue(queue, [{ data: "text" }]);'],
  "an option that does not exist": ["TS2353", "await store.dequeue(queue, { leaseSeconds: 1 });"],
  "a choice that does not exist": ["TS2322", 'await store.dequeue(queue, { owner: "nobody" });'],
  "changing a status": ["TS2540", "(await store.status(queue)).pending = 0;"],
  "the first of a dequeue without asking whether there is one": ["TS2532", "(await store.dequeue(queue))[0].receipt;"],
  "an error code that is not in the table": ["TS2345", 'new QueueFSError("no-such-code", "");'],
  "an answer of a handler that is no verdict": ["TS2322", 'new Worker(new NamedQueue<string>(store, "text"), () => "done");'],
  "forwarding a value of another type": [
    "TS2345",
    'new Worker(new NamedQueue<string>(store, "text"), (_text, { forward }) => forward(new NamedQueue<number>(store, "numbers"), "1"));',
  ],
  "a value of another type": ["TS2322", 'await new NamedQueue<{ page: number }>(store, "pages").enqueue({ page: "1" });'],
};

let folder = "";
let messages: readonly string[] = [];

function fileOf(kind: "right" | "wrong", title: string): string {
  return `${kind}-${title.toLowerCase().replace(/[^a-z]+/g, "-")}.ts`;
}

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "queuefs-types-"));
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(root, join(folder, "node_modules", "queuefs"));
  symlinkSync(join(root, "node_modules", "@types"), join(folder, "node_modules", "@types"));
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }\n');
  const compilerOptions = {
    ...{ strict: true, noUncheckedIndexedAccess: true, exactOptionalPropertyTypes: true, noEmit: true, types: ["node"] },
    ...{ target: "es2022", lib: ["es2023", "esnext.disposable"], module: "nodenext" },
  };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts"] }));
  for (const [title, snippet] of Object.entries(RIGHT)) writeFileSync(join(folder, fileOf("right", title)), HEAD + snippet);
  for (const [title, [, snippet]] of Object.entries(WRONG)) writeFileSync(join(folder, fileOf("wrong", title)), HEAD + snippet);
  const compiler = join(root, "node_modules", "typescript", "bin", "tsc");
  const run = spawnSync(process.execPath, [compiler, "-p", folder, "--pretty", "false"], { cwd: folder, encoding: "utf8" });
  messages = run.stdout.split("\n").filter((line) => line !== "" && !line.startsWith(" "));
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("the types of the package", () => {
  it("say nothing about what is in no snippet, the package's own declarations included", () => {
    expect(messages.filter((line) => !/^(?:right|wrong)-/.test(line))).toEqual([]);
  });

  it.each(Object.keys(RIGHT))("allow: %s", (title) => {
    expect(messages.filter((line) => line.startsWith(`${fileOf("right", title)}(`))).toEqual([]);
  });

  it.each(Object.entries(WRONG))("refuse: %s", (title, [code]) => {
    const codes = messages.filter((line) => line.startsWith(`${fileOf("wrong", title)}(`)).map((line) => /error (TS\d+)/.exec(line)?.[1]);
    expect(codes).toEqual([code]);
  });
});
