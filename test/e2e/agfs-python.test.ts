/** Clients in Python, as AGFS has them, on a real server: also one that is killed and started again while they work. */

import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type CommandLine, openCommandLine, type Running } from "../support/command-line.ts";

const CLIENT = join(dirname(fileURLToPath(import.meta.url)), "..", "support", "agfs_client.py");
/** Long beside what a handler takes here, short beside a test: what a killed server handed out comes back after it. */
const LEASE = "2s";

let cli: CommandLine;
beforeEach(() => {
  cli = openCommandLine();
});
afterEach(() => cli.dispose());

async function serve(port: number): Promise<{ readonly server: Running; readonly url: string; readonly port: number }> {
  const server = cli.start("serve", "--port", String(port), "--mount", "/queue", "--plain-lease", LEASE, "--json");
  await server.seen(/\n/);
  const { url } = JSON.parse(server.output()) as { url: string };
  return { server, url, port: Number(new URL(url).port) };
}

/** Runs a Python client to its end and gives the lines that it printed. */
function python(...given: string[]): { readonly lines: Promise<string[]>; readonly seen: (count: number) => Promise<void> } {
  const child = spawn("python3", [CLIENT, ...given], { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  let errors = "";
  const watchers = new Set<() => void>();
  child.stdout.on("data", (part: Buffer) => {
    output += part.toString();
    for (const look of watchers) look();
  });
  child.stderr.on("data", (part: Buffer) => {
    errors += part.toString();
  });
  const lines = new Promise<string[]>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => {
      if (code === 0) resolve(output.split("\n").filter(Boolean));
      else reject(new Error(`the client ended with ${code}: ${errors}`));
    });
  });
  const seen = (count: number): Promise<void> =>
    new Promise((resolve) => {
      const look = (): void => {
        if (output.split("\n").length <= count) return;
        watchers.delete(look);
        resolve();
      };
      watchers.add(look);
      look();
    });
  return { lines, seen };
}

test("producers and consumers lose nothing, though the server is killed twice under them", async () => {
  let { server, url, port } = await serve(0);
  const done = join(cli.folder, "all-produced");
  const each = 150;
  const producers = ["a", "b"].map((prefix) => python(url, "produce", "/queue/My Jobs", prefix, String(each)));
  const consumer = python(url, "consume", "/queue/My Jobs", done);
  for (const count of [30, 120]) {
    await consumer.seen(count);
    server.process.kill("SIGKILL");
    await server.ended;
    ({ server, url, port } = await serve(port));
  }
  const produced = (await Promise.all(producers.map(({ lines }) => lines))).flat();
  expect(produced).toHaveLength(2 * each);
  writeFileSync(done, "");
  const handled = (await consumer.lines).map((line) => line.split(" ")[0]);
  expect(new Set(handled)).toEqual(new Set(produced));
  server.process.kill("SIGTERM");
  const { exitCode, errors } = await server.ended;
  expect(exitCode).toBe(0);
  // Neither warnings of the runtime nor errors that no client was told of.
  expect(errors).not.toMatch(/warning|error/i);
  expect(await cli.json("status", "My Jobs")).toMatchObject([{ pending: 0, processing: 0 }]);
});
