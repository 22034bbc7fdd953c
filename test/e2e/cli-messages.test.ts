/** Messages through the command line: in by arguments, standard input, lines and files; out byte for byte; and what a consumer says of them. */

import { createHash, randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type CommandLine, openCommandLine } from "../support/command-line.ts";

let cli: CommandLine;
beforeEach(async () => {
  cli = openCommandLine();
  await cli.text("mkdir", "q");
});
afterEach(() => cli.dispose());

const hash = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");
const receiptOf = (message: Record<string, unknown> | undefined): string => String(message?.receipt);

describe("bytes", () => {
  const payloads: Record<string, Uint8Array> = {
    "an empty message": Buffer.alloc(0),
    NUL: Buffer.of(0),
    "FF FE": Buffer.of(0xff, 0xfe),
    "C3 28": Buffer.of(0xc3, 0x28),
    "half a character": Buffer.of(0xed, 0xa0, 0x80),
    "all 256 values": Buffer.from(Array.from({ length: 256 }, (_, value) => value)),
    CRLF: Buffer.from("a\r\nb\r\n"),
    "a trailing newline": Buffer.from("a\n"),
    "the text {}": Buffer.from("{}"),
    "the text null": Buffer.from("null"),
    "a message in JSON": Buffer.from('{"id":"x"}'),
    "a byte order mark": Buffer.from("\ufeffa"),
    "8 MiB": randomBytes(8 * 1024 * 1024),
    "8 MiB of text": Buffer.from("grün\n".repeat(1_398_101)),
  };

  const dataOf = (message: Record<string, unknown>): Buffer =>
    Buffer.from(String(message.data), message.encoding === "base64" ? "base64" : "utf8");

  it("come out as they went in, on every way in and out", async () => {
    const names = Object.keys(payloads);
    const hashes = Object.values(payloads).map(hash);
    for (const data of Object.values(payloads)) expect((await cli.run(["enqueue", "q"], data)).exitCode).toBe(0);
    expect((await cli.json("messages", "q")).map((message) => hash(dataOf(message)))).toEqual(hashes);
    const taken = await cli.json("dequeue", "q", "-n", "100");
    expect(taken.map((message) => hash(dataOf(message)))).toEqual(hashes);
    await cli.text("release", "q", ...taken.map(receiptOf));
    for (const [index, name] of names.entries()) {
      const delivery = await cli.run(["dequeue", "q", "--raw", "--receipt-file", "receipt"]);
      expect({ name, hash: hash(delivery.bytes), errors: delivery.errors }).toEqual({ name, hash: hashes[index], errors: "" });
      expect(readFileSync(join(cli.folder, "receipt"), "utf8")).toMatch(/^r-\S+\n$/);
    }
  });

  it("come out of peek and of files as they went in", async () => {
    writeFileSync(join(cli.folder, "payload"), payloads["8 MiB"] as Uint8Array);
    await cli.text("enqueue", "q", "--file", "payload");
    expect(hash((await cli.run(["peek", "q", "--raw"])).bytes)).toBe(hash(payloads["8 MiB"] as Uint8Array));
    expect((await cli.json("peek", "q")).map((message) => hash(dataOf(message)))).toEqual([hash(payloads["8 MiB"] as Uint8Array)]);
  });

  it("tells an empty message, the message {} and an empty queue apart", async () => {
    const empty = await cli.run(["dequeue", "q", "--raw"]);
    expect(empty).toMatchObject({ exitCode: 3, output: "", errors: 'queuefs: queue "q" has nothing to take now\n' });
    expect(await cli.run(["dequeue", "q", "--json"])).toMatchObject({ exitCode: 3, output: "{}\n" });
    expect(await cli.run(["peek", "q"])).toMatchObject({ exitCode: 3, output: "" });
    await cli.text("enqueue", "q", "", "{}");
    expect(await cli.run(["dequeue", "q", "--raw"])).toMatchObject({
      exitCode: 0,
      output: "",
      errors: expect.stringMatching(/^queuefs: receipt r-/),
    });
    expect(await cli.run(["dequeue", "q", "--raw"])).toMatchObject({ exitCode: 0, output: "{}" });
    expect(await cli.run(["dequeue", "q", "--raw"])).toMatchObject({ exitCode: 3, output: "" });
  });
});

describe("enqueue", () => {
  const data = async (): Promise<unknown[]> => (await cli.json("messages", "q")).map((message) => message.data);

  it("takes arguments as they are, in order, and prints an id for each", async () => {
    const ids = (await cli.text("enqueue", "q", "a b", "", "--", "--lines", "-x")).trim().split("\n");
    const messages = await cli.json("messages", "q");
    expect(messages.map((message) => message.data)).toEqual(["a b", "", "--lines", "-x"]);
    expect(messages.map((message) => message.id)).toEqual(ids);
  });

  it("takes lines, keeps a carriage return and an empty line, and needs no last line feed", async () => {
    const { output } = await cli.run(["enqueue", "q", "--lines"], "one\r\n\ntwo");
    expect(output.trim().split("\n")).toHaveLength(3);
    expect(await data()).toEqual(["one\r", "", "two"]);
  });

  it("sends a line as soon as it is there, while the input goes on", async () => {
    const started = cli.start("enqueue", "q", "--lines");
    started.process.stdin.write("first\nunfinished");
    await started.seen(/^m-.*\n/);
    expect(await data()).toEqual(["first"]);
    started.process.stdin.end();
    expect((await started.ended).exitCode).toBe(0);
    expect(await data()).toEqual(["first", "unfinished"]);
  });

  it("sends a hundred thousand lines in order", async () => {
    const lines = Array.from({ length: 100_000 }, (_, index) => `line ${index}`);
    const { exitCode, output } = await cli.run(["enqueue", "q", "--lines"], lines.join("\n"));
    expect(exitCode).toBe(0);
    const ids = output.trim().split("\n");
    expect(new Set(ids).size).toBe(100_000);
    expect(await cli.text("size", "q")).toBe("100000\n");
    const first = await cli.json("messages", "q", "-n", "1001");
    expect(first.map((message) => message.data)).toEqual(lines.slice(0, 1_001));
    expect(first.map((message) => message.id)).toEqual(ids.slice(0, 1_001));
  });

  it("takes files byte for byte", async () => {
    writeFileSync(join(cli.folder, "a"), Buffer.of(0xff, 10));
    writeFileSync(join(cli.folder, "b"), "text\n");
    await cli.text("enqueue", "q", "--file", "a", "b");
    expect((await cli.run(["dequeue", "q", "--raw"])).bytes).toEqual(Buffer.of(0xff, 10));
    expect((await cli.run(["dequeue", "q", "--raw"])).output).toBe("text\n");
    expect(await cli.run(["enqueue", "q", "--file", "none"])).toMatchObject({ exitCode: 4, errors: expect.stringContaining('"none"') });
    expect(await cli.run(["enqueue", "q", "--file", "."])).toMatchObject({ exitCode: 14 });
  });

  it("stores a chosen id once, and refuses it for other bytes", async () => {
    expect(await cli.text("enqueue", "q", "a", "--id", "x")).toBe("x\n");
    expect(await cli.json("enqueue", "q", "a", "--id", "x")).toEqual([{ id: "x", outcome: "repeated" }]);
    expect(await cli.run(["enqueue", "q", "b", "--id", "x"])).toMatchObject({
      exitCode: 6,
      output: "",
      errors: expect.stringContaining('"x"'),
    });
    expect(await data()).toEqual(["a"]);
  });

  it("keeps a message back for the delay", async () => {
    await cli.text("enqueue", "q", "later", "--delay", "1h");
    expect((await cli.run(["dequeue", "q"])).exitCode).toBe(3);
    expect(await cli.text("size", "q")).toBe("1\n");
  });

  it("tells how many were stored before a failure", async () => {
    const line = "x".repeat(70 * 1024 * 1024);
    const { exitCode, errors, output } = await cli.run(["enqueue", "q", "--lines"], `a\nb\n${line}`);
    expect({ exitCode, errors }).toEqual({
      exitCode: 7,
      errors: expect.stringMatching(/^queuefs: not finished: 2 messages were stored\nqueuefs: line 3 has more than/),
    });
    expect(output.trim().split("\n")).toHaveLength(2);
    expect(await data()).toEqual(["a", "b"]);
  });

  it("refuses a missing queue before it reads its input", async () => {
    const started = cli.start("enqueue", "nope");
    expect(await started.ended).toMatchObject({ exitCode: 4, output: "" });
  });

  it("refuses what cannot be meant, and stores nothing then", async () => {
    const refusals: [string[], string][] = [
      [["a", "--lines"], "one of the three"],
      [["a", "--file", "f"], "one of the three"],
      [["a", "b", "--id", "x"], "--id names one message"],
      [["--lines", "--id", "x"], "--id names one message"],
      [["a", "--id", "m-1"], "marks what the store makes itself"],
      [["a", "--delay", "5"], "a number and a unit"],
      [["a", "--delay", "900d"], "delayMs must be a whole number"],
      [["a", "--bogus"], "unknown option"],
    ];
    for (const [more, words] of refusals) {
      expect(await cli.run(["enqueue", "q", ...more])).toMatchObject({ exitCode: 2, output: "", errors: expect.stringContaining(words) });
    }
    expect(await cli.text("size", "q")).toBe("0\n");
  });
});

describe("deliveries", () => {
  it("shows a message to people with its receipt, and to programs as JSON", async () => {
    await cli.text("enqueue", "q", "hello\nworld", "second");
    const people = await cli.text("dequeue", "q", "--lease", "1h30m");
    expect(people).toMatch(/^id +m-.*\nreceipt +r-.*\nlease +1h30m\nenqueued +20.*Z\ndeliveries +1\nbytes +11\ndata +hello\\nworld\n$/);
    const [message] = await cli.json("dequeue", "q");
    expect(message).toEqual({
      id: expect.any(String),
      data: "second",
      receipt: expect.stringMatching(/^r-/),
      timestamp: expect.stringMatching(/Z$/),
      deliveries: 1,
    });
  });

  it("survives the end of the process that took it, until its lease ends", async () => {
    await cli.text("enqueue", "q", "a");
    await cli.text("dequeue", "q");
    expect(await cli.json("status", "q")).toEqual([{ queue: "q", pending: 0, processing: 1 }]);
    expect((await cli.run(["dequeue", "q"])).exitCode).toBe(3);
  });

  it("comes back by itself when its lease has ended", async () => {
    await cli.text("enqueue", "q", "a");
    await cli.text("dequeue", "q", "--lease", "10ms");
    expect(await cli.json("dequeue", "q")).toMatchObject([{ data: "a", deliveries: 2 }]);
  });

  it("gives the same messages to the same request id", async () => {
    await cli.text("enqueue", "q", "a", "b", "c");
    const first = await cli.json("dequeue", "q", "-n", "2", "--request-id", "once");
    expect(first.map((message) => message.data)).toEqual(["a", "b"]);
    expect(await cli.json("dequeue", "q", "-n", "2", "--request-id", "once")).toEqual(first);
    expect(await cli.json("dequeue", "q")).toMatchObject([{ data: "c" }]);
  });

  it("acks by receipt and by id, each once, and never what is pending", async () => {
    await cli.text("enqueue", "q", "a", "--id", "one");
    await cli.text("enqueue", "q", "b", "--id", "two");
    expect(await cli.run(["ack", "q", "one"])).toMatchObject({
      exitCode: 5,
      output: "not-in-processing one\n",
      errors: expect.stringContaining("changed nothing"),
    });
    const [first] = await cli.json("dequeue", "q");
    const receipt = receiptOf(first);
    await cli.text("dequeue", "q");
    expect(await cli.json("ack", "q", receipt, "two")).toEqual([
      { receipt, outcome: "acked" },
      { id: "two", outcome: "acked" },
    ]);
    const again = await cli.run(["ack", "q", receipt, "two", "--json"]);
    expect(again.exitCode).toBe(5);
    expect(again.output).toBe(`{"receipt":"${receipt}","outcome":"stale"}\n{"id":"two","outcome":"not-in-processing"}\n`);
    expect(JSON.parse(again.errors)).toMatchObject({ error: { code: "not-in-processing", exitCode: 5 } });
  });

  it("nacks with a delay, releases without counting, extends", async () => {
    await cli.text("enqueue", "q", "a");
    const take = async (): Promise<string> => receiptOf((await cli.json("dequeue", "q"))[0]);
    expect(await cli.text("release", "q", await take())).toMatch(/^released r-/);
    const receipt = await take();
    expect(await cli.json("extend", "q", receipt, "--lease", "1h")).toEqual([{ receipt, outcome: "extended" }]);
    expect(await cli.text("nack", "q", receipt)).toBe(`pending ${receipt}\n`);
    expect(await cli.json("peek", "q")).toMatchObject([{ deliveries: 1 }]);
    await cli.text("nack", "q", await take(), "--delay", "1h");
    expect((await cli.run(["dequeue", "q"])).exitCode).toBe(3);
    for (const command of ["nack", "release", "extend"]) {
      expect(await cli.run([command, "q", receipt])).toMatchObject({ exitCode: 5, output: `stale ${receipt}\n` });
    }
  });

  it("lists dead letters, tries them again, drops them", async () => {
    await cli.text("enqueue", "q", "a", "b", "c");
    const taken = await cli.json("dequeue", "q", "-n", "3");
    await cli.text("nack", "q", ...taken.map(receiptOf), "--give-up", "--reason", "no such file\u001b[2J");
    const letters = await cli.json("dead", "q");
    expect(letters.map((letter) => letter.data)).toEqual(["a", "b", "c"]);
    expect(letters[0]).toMatchObject({ reason: "no such file\u001b[2J", deliveries: 1, diedAt: expect.stringMatching(/Z$/) });
    expect(await cli.text("dead", "q")).toMatch(/^ID +DELIVERIES +DIED +REASON +DATA\nm-.* no such file\\x1b\[2J +a\n/);
    const [first, second] = letters.map((letter) => String(letter.id)) as [string, string];
    expect(await cli.text("dead", "q", "--redrive", first)).toBe(`redriven ${first}\n`);
    expect(await cli.run(["dead", "q", "--drop", first, second])).toMatchObject({
      exitCode: 4,
      output: `not-found ${first}\ndropped ${second}\n`,
    });
    expect(await cli.json("dead", "q", "--redrive", "all")).toMatchObject([{ outcome: "redriven" }]);
    expect(await cli.json("dead", "q")).toEqual([]);
    expect((await cli.json("messages", "q")).map((message) => message.data)).toEqual(["a", "c"]);
    expect((await cli.run(["dead", "q", "--redrive", "x", "--drop", "y"])).exitCode).toBe(2);
  });

  it("clears both kinds at once, and tells how many", async () => {
    await cli.text("enqueue", "q", "a", "b", "c");
    const [taken] = await cli.json("dequeue", "q");
    expect(await cli.json("clear", "q")).toEqual([{ queue: "q", pending: 2, processing: 1 }]);
    expect((await cli.run(["ack", "q", receiptOf(taken)])).exitCode).toBe(5);
  });

  it("refuses what cannot be told apart", async () => {
    expect((await cli.run(["dequeue", "q", "--raw", "-n", "2"])).exitCode).toBe(2);
    expect((await cli.run(["dequeue", "q", "--raw", "--json"])).exitCode).toBe(2);
    expect((await cli.run(["dequeue", "q", "-n", "0"])).exitCode).toBe(2);
    expect((await cli.run(["dequeue", "q", "-n", "x"])).exitCode).toBe(2);
    expect((await cli.run(["dequeue", "q", "--lease", "1ms"])).exitCode).toBe(2);
  });
});

it("releases messages whose reader has gone", async () => {
  await cli.run(["enqueue", "q"], "x".repeat(8 * 1024 * 1024));
  // The reader ends after one byte; eight mebibytes do not fit into the pipe.
  const shell = cli.shell(["set +e", "{ queuefs dequeue q --raw 2> errors; echo $? > code; } | head -c 1 > /dev/null"]);
  expect((await shell.ended).exitCode).toBe(0);
  expect(readFileSync(join(cli.folder, "code"), "utf8")).toBe("0\n");
  expect(readFileSync(join(cli.folder, "errors"), "utf8")).toMatch(/^queuefs: receipt r-.*\n$/);
  expect(await cli.json("status", "q")).toEqual([{ queue: "q", pending: 1, processing: 0 }]);
  expect(await cli.json("dequeue", "q")).toMatchObject([{ deliveries: 1 }]);
});
