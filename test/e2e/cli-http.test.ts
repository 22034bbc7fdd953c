/** Every command works against a server as it does against a file: `--store http://…`. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Backend } from "../../src/backend/contract.ts";
import { openSqlite } from "../../src/backend/sqlite/index.ts";
import { parseQueueName } from "../../src/core/names.ts";
import { type HttpServer, listen } from "../../src/http/index.ts";
import { type CommandLine, openCommandLine } from "../support/command-line.ts";

const JOBS = parseQueueName("imports/jobs");
const SECRET = "e2e-secret-0123456789";

let folder: string;
let store: Backend;
let server: HttpServer;
let cli: CommandLine;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "queuefs-cli-http-"));
  store = await openSqlite({ path: join(folder, "queue.db") });
  server = await listen(store, { port: 0, tokens: [{ secret: SECRET }] });
  cli = openCommandLine({ store: server.url, environment: { QUEUEFS_TOKEN: SECRET } });
});

afterEach(async () => {
  await cli.dispose();
  await server.stop();
  await store.close();
  rmSync(folder, { recursive: true });
});

it("messages go in, are taken, given back and acknowledged", async () => {
  await cli.text("mkdir", JOBS);
  await cli.run(["enqueue", JOBS], Buffer.from([0xff, 0, 10]));
  await cli.text("enqueue", JOBS, "two");
  expect(await cli.json("status", JOBS)).toEqual([{ queue: JOBS, pending: 2, processing: 0 }]);
  const first = await cli.run(["dequeue", JOBS, "--json"]);
  const { receipt, data, encoding } = JSON.parse(first.output) as Record<string, string>;
  expect({ data, encoding }).toEqual({ data: Buffer.from([0xff, 0, 10]).toString("base64"), encoding: "base64" });
  await cli.text("nack", JOBS, receipt as string);
  expect(await store.status(JOBS)).toEqual({ pending: 2, processing: 0 });
  expect((await cli.run(["ack", JOBS, receipt as string])).exitCode).toBe(5);
  await cli.text("clear", JOBS);
  expect((await cli.run(["dequeue", JOBS])).exitCode).toBe(3);
  expect((await cli.run(["peek", "none"])).exitCode).toBe(4);
  expect(await cli.text("cat", `/${JOBS}/status`)).toContain('"pending":0');
  expect((await cli.run(["doctor"])).exitCode).toBe(0);
});

it("a worker works until all is done, its programs reach the server too, and a wait hears of the end at once", async () => {
  await cli.text("mkdir", JOBS, "next");
  const [created] = await cli.json("task", "create", "import", "--into", JOBS, "one", "two", "three");
  const task = String(created?.id);
  const waiting = cli.start("wait", JOBS, "next", "--timeout", "30s");
  const worker = cli.shell([`queuefs work ${JOBS} --until-complete -- sh -c 'cat; true'`]);
  const ended = await worker.ended;
  expect({ exitCode: ended.exitCode, errors: ended.errors }).toEqual({ exitCode: 0, errors: "queuefs: 3 acked\n" });
  expect((await waiting.ended).exitCode).toBe(0);
  expect((await cli.run(["task", "wait", task])).exitCode).toBe(0);
  expect((await store.tasks()).items).toMatchObject([{ id: task, status: "completed", progress: { total: 3, done: 3 } }]);
});

it("the token may stand in the location, and is told nobody", async () => {
  const withToken = server.url.replace("http://", `http://:${SECRET}@`);
  const other = openCommandLine({ store: withToken });
  try {
    expect((await other.run(["mkdir", JOBS])).exitCode).toBe(0);
    const { output, errors } = await other.run(["doctor", "--json"]);
    expect(output + errors).not.toContain(SECRET);
    const failed = await other.run(["status", "none"]);
    expect(failed.output + failed.errors).not.toContain(SECRET);
  } finally {
    await other.dispose();
  }
});

it.each([{}, { QUEUEFS_TOKEN: "another-secret-987654321" }])("without the right token (%j) nothing is let in", async (environment) => {
  const other = openCommandLine({ store: server.url, environment });
  try {
    const ended = await other.run(["mkdir", JOBS]);
    expect(ended.exitCode).toBe(24);
    expect(ended.errors).not.toContain("another-secret");
  } finally {
    await other.dispose();
  }
});

it("the token may come by flag, which outranks the environment", async () => {
  const other = openCommandLine({ store: server.url, environment: { QUEUEFS_TOKEN: "another-secret-987654321" } });
  try {
    expect((await other.run(["--token", SECRET, "ls"])).exitCode).toBe(0);
  } finally {
    await other.dispose();
  }
});

it("a server that is not there is an error of its own", async () => {
  const other = openCommandLine({ store: "http://127.0.0.1:9" });
  try {
    expect(await other.run(["ls"])).toMatchObject({ exitCode: 9, errors: expect.stringContaining("no answer from the server") });
  } finally {
    await other.dispose();
  }
});
