/** What `queuefs serve` writes about its work: enough to find a request again, and nothing of what it carried. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type CommandLine, openCommandLine, type Running } from "../support/command-line.ts";

const TOKEN = "a-token-of-this-test-0123456789";
const SECRETS = [TOKEN, "payload-of-this-test", "query-of-this-test", "name-of-this-test", "reason-of-this-test"];
let cli: CommandLine;
beforeEach(() => {
  cli = openCommandLine();
});
afterEach(() => cli.dispose());

/** Serves with a token, and has requests of all kinds made. Answers with what was written, line by line. */
async function serveAndAsk(...options: string[]): Promise<{ readonly lines: readonly string[]; readonly receipt: string }> {
  const file = join(cli.folder, "tokens");
  writeFileSync(file, `${TOKEN}\n`, { mode: 0o600 });
  const running: Running = cli.start("serve", "--port", "0", "--token-file", file, ...options);
  await running.seen(/http:\/\/[\d.:]+/);
  const url = /http:\/\/[\d.:]+/.exec(running.output())?.[0] ?? "";
  const ask = (method: string, path: string, body?: string, headers: Record<string, string> = {}): Promise<Response> =>
    fetch(`${url}/api/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${TOKEN}`, ...(body?.startsWith("{") ? { "content-type": "application/json" } : {}), ...headers },
      ...(body === undefined ? {} : { body }),
    });
  const queue = "/queues/name-of-this-test";
  await ask("PUT", queue);
  await ask("POST", `${queue}/messages`, "payload-of-this-test");
  await ask("POST", `${queue}/messages`, '{"messages":"payload-of-this-test"}', { "x-request-id": "mine-1" });
  await ask("POST", `${queue}/messages`, '{"payload-of-this-test', {});
  const taken = (await (await ask("POST", `${queue}/dequeue`, "{}")).json()) as { messages: [{ receipt: string }] };
  const { receipt } = taken.messages[0];
  await ask("POST", `${queue}/nack`, JSON.stringify({ items: [{ receipt, reason: "reason-of-this-test", giveUp: true }] }));
  await ask("POST", `${queue}/ack`, JSON.stringify({ items: [{ receipt: `${receipt}\n` }] }));
  await ask("GET", `${queue}/status?query-of-this-test=1`);
  await ask("GET", "/name-of-this-test?query-of-this-test=1");
  await fetch(`${url}/api/v1/store`, { headers: { authorization: `Bearer ${TOKEN}wrong` } });
  await ask("PUT", "/files?path=/queuefs/name-of-this-test/enqueue", "payload-of-this-test");
  running.process.kill("SIGTERM");
  const { exitCode, errors, output } = await running.ended;
  expect(exitCode).toBe(0);
  for (const secret of [...SECRETS, receipt])
    expect({ secret, told: `${output}${errors}`.includes(secret) }).toEqual({ secret, told: false });
  return { lines: errors.trim().split("\n"), receipt };
}

it("is a line of JSON for each request", async () => {
  const { lines } = await serveAndAsk("--log-level", "debug", "--log-format", "json");
  const logged = lines.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line) as Record<string, unknown>);
  const requests = logged.filter(({ msg }) => msg === "request");
  expect(requests.map(({ method, route, status }) => `${method} ${route} ${status}`)).toEqual([
    "PUT queue.make 201",
    "POST queue.enqueue 201",
    "POST queue.enqueue 400",
    "POST queue.enqueue 400",
    "POST queue.dequeue 200",
    "POST queue.nack 200",
    "POST queue.ack 200",
    "GET queue.status 200",
    "GET none 404",
    "GET none 401",
    "PUT agfs /files 200",
  ]);
  for (const { requestId, durationMs, level, time, status, route } of requests) {
    expect(requestId).toMatch(/^[\w-]+$/);
    expect(durationMs).toBeGreaterThan(0);
    expect(Date.parse(String(time))).toBeGreaterThan(0);
    expect(level).toBe(route === "queue.status" ? "debug" : "info");
    expect(status).toBeLessThan(500);
  }
  expect(requests[2]).toMatchObject({ requestId: "mine-1", code: "invalid-argument" });
  expect(logged.map(({ msg }) => msg)).toEqual(["listening", ...requests.map(() => "request"), "stopped"]);
});

it("is a line for people too", async () => {
  const { lines } = await serveAndAsk("--log-level", "info");
  expect(
    lines.filter((line) =>
      /^queuefs: \S+Z INFO request requestId=\S+ method=POST route=queue\.enqueue status=201 durationMs=[\d.]+$/.test(line),
    ),
  ).toHaveLength(1);
});

it("is nothing unless something fails, unless asked for", async () => {
  expect((await serveAndAsk()).lines).toEqual([expect.stringMatching(/^queuefs: stopped after/)]);
  for (const option of ["--log-level", "--log-format"]) {
    const { exitCode, errors } = await cli.run(["serve", "--port", "0", option, "loud"]);
    expect({ option, exitCode, errors }).toEqual({ option, exitCode: 2, errors: expect.stringContaining("Allowed choices are") });
  }
});
