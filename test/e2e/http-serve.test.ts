/** `queuefs serve` as a process: tokens, TLS, an end that loses nothing, and an end by SIGKILL that loses nothing either. */

import { spawnSync } from "node:child_process";
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:https";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type CommandLine, openCommandLine, type Running } from "../support/command-line.ts";
import { connectRaw } from "../support/raw-http.ts";

const TOKEN = "a-token-of-this-test-0123456789";
let cli: CommandLine;
beforeEach(() => {
  cli = openCommandLine();
});
afterEach(() => cli.dispose());

interface Served {
  readonly running: Running;
  readonly url: string;
  readonly port: number;
}

/** Starts a server and waits until it listens. */
async function serve(...options: string[]): Promise<Served> {
  const running = cli.start("serve", "--json", "--port", "0", ...options);
  await running.seen(/"url"/);
  const { url } = JSON.parse(running.output().split("\n")[0] ?? "") as { readonly url: string };
  return { running, url, port: Number(new URL(url).port) };
}

const post = (url: string, path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(`${url}/api/v1${path}`, {
    method: "POST",
    body: JSON.stringify(body),
    headers: { "content-type": "application/json", ...headers },
  });

describe("queuefs serve", () => {
  it("says where it is, for people and for programs", async () => {
    const people = cli.start("serve", "--port", "0");
    await people.seen(/^serving .*store\.db on http:\/\/127\.0\.0\.1:\d+; the API is described at http:\S+\/docs\n$/);
    people.process.kill("SIGTERM");
    expect(await people.ended).toMatchObject({
      exitCode: 0,
      signal: null,
      errors: expect.stringMatching(/^queuefs: stopped after .*: 0 requests finished\n$/),
    });
    const { running, url } = await serve();
    expect(JSON.parse(running.output())).toEqual({ url, store: expect.stringContaining("store.db"), pid: running.process.pid });
    running.process.kill("SIGINT");
    expect(await running.ended).toMatchObject({ exitCode: 0, signal: null });
  });

  it("is wrong with exit code 2 and words that say what to do", async () => {
    const file = join(cli.folder, "tokens");
    const wrong: [string[], RegExp][] = [
      [["--host", "0.0.0.0"], /give the server a token/],
      [["--token-file", "missing"], /the token file "missing" cannot be read \(ENOENT\)/],
      [["--token-file", file], /has no token; write one a line/],
      [["--tls-cert", file], /--tls-cert and --tls-key need each other/],
      [["--tls-cert", file, "--tls-key", file], /certificate|PEM|key/i],
      [["--port", "70000"], /port must be a whole number from 0 to 65535/],
      [["--allow-host", "http://x"], /an allowed host must be a host name/],
      [["--allow-origin", "x"], /an allowed origin must be/],
    ];
    writeFileSync(file, "# none\n", { mode: 0o600 });
    for (const [options, words] of wrong) {
      const { exitCode, errors } = await cli.run(["serve", "--port", "0", ...options]);
      expect({ options, exitCode, errors }).toEqual({ options, exitCode: 2, errors: expect.stringMatching(words) });
    }
  });

  it("lets in who has a token of the file or the environment, and says when others can read the file", async () => {
    const file = join(cli.folder, "tokens");
    writeFileSync(file, `${TOKEN} read-only\n`);
    chmodSync(file, 0o644);
    const other = openCommandLine({ store: cli.store, environment: { QUEUEFS_TOKEN: "of-the-environment-0123" } });
    const running = other.start("serve", "--json", "--port", "0", "--token-file", file);
    await running.seen(/"url"/);
    const { url } = JSON.parse(running.output()) as { readonly url: string };
    await running.told(/others on this host can read the token file/);
    const status = async (method: string, token?: string): Promise<number> =>
      (await fetch(`${url}/api/v1/queues/q`, { method, headers: token === undefined ? {} : { authorization: `Bearer ${token}` } })).status;
    expect(await status("PUT")).toBe(401);
    expect(await status("PUT", TOKEN)).toBe(403);
    expect(await status("PUT", "of-the-environment-0123")).toBe(201);
    expect(running.errors()).not.toContain(TOKEN);
    await other.dispose();
  });

  it("speaks TLS by files", async () => {
    const [cert, key] = ["cert.pem", "key.pem"].map((name) => join(cli.folder, name)) as [string, string];
    const made = spawnSync(
      "openssl",
      [
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-keyout",
        key,
        "-out",
        cert,
        "-days",
        "1",
        "-subj",
        "/CN=localhost",
        "-addext",
        "subjectAltName=IP:127.0.0.1",
      ],
      { encoding: "utf8" },
    );
    expect({ status: made.status, error: made.error }).toEqual({ status: 0, error: undefined });
    const { running, url, port } = await serve("--tls-cert", cert, "--tls-key", key);
    expect(url).toMatch(/^https:/);
    const agent = new Agent({ ca: readFileSync(cert) });
    const answer = await new Promise<number>((resolve, reject) => {
      request({ port, host: "127.0.0.1", path: "/api/v1/store", agent }, (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      })
        .on("error", reject)
        .end();
    });
    expect(answer).toBe(200);
    agent.destroy();
    running.process.kill("SIGTERM");
    expect(await running.ended).toMatchObject({ exitCode: 0 });
  });
});

describe("an end by signal", () => {
  it("answers those who wait at once, finishes what runs, and is not hurried by more signals", async () => {
    const { running, url, port } = await serve();
    await fetch(`${url}/api/v1/queues/q`, { method: "PUT" });
    const taken = post(url, "/queues/q/dequeue", { waitMs: 60_000 });
    await post(url, "/queues/q/messages", { messages: [{ data: "held" }] });
    expect(await (await taken).json()).toMatchObject({ messages: [{ data: "held" }] });
    const wait = post(url, "/wait", { selection: { queues: ["q"] }, timeoutMs: 60_000 });
    const idleWait = post(url, "/queues/q/dequeue", { waitMs: 60_000 });
    // A request whose body comes slowly runs when the signal comes.
    const slow = await connectRaw(port);
    await slow.send("POST /api/v1/queues/q/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n12345");
    await sleep(200);
    running.process.kill("SIGTERM");
    expect(await (await idleWait).json()).toEqual({ messages: [] });
    expect(await (await wait).json()).toEqual({ complete: false, statuses: [{ queue: "q", pending: 0, processing: 1 }] });
    running.process.kill("SIGTERM");
    running.process.kill("SIGINT");
    await expect(fetch(`${url}/api/v1/store`)).rejects.toThrow();
    await slow.send("67890");
    expect(await slow.answer()).toMatchObject({ status: 201, headers: { connection: "close" } });
    expect(await running.ended).toMatchObject({ exitCode: 0, signal: null });
    expect((await cli.json("status"))[0]).toMatchObject({ pending: 1, processing: 1 });
  });

  it("cuts what does not finish in its time", async () => {
    const { running, port } = await serve("--drain", "300ms");
    const stuck = await connectRaw(port);
    await stuck.send("POST /api/v1/queues/q/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n12345");
    await sleep(200);
    running.process.kill("SIGTERM");
    expect(await running.ended).toMatchObject({ exitCode: 0, errors: expect.stringContaining("1 connections cut") });
  });

  it("under load loses no enqueue that was answered, and leaves no message stuck", { timeout: 60_000 }, async () => {
    const { running, url } = await serve();
    await fetch(`${url}/api/v1/queues/q`, { method: "PUT" });
    const ledger = new Ledger();
    await ledger.load(url, async () => {
      await sleep(1_000);
      running.process.kill("SIGTERM");
      expect(await running.ended).toMatchObject({ exitCode: 0, signal: null });
    });
    expect(ledger.accepted.size).toBeGreaterThan(20);
    await ledger.expectAllThere();
  });
});

describe("an end by SIGKILL", () => {
  it("under load loses nothing that was answered, several times over", { timeout: 120_000 }, async () => {
    const ledger = new Ledger();
    await cli.text("mkdir", "q");
    for (let round = 0; round < 3; round += 1) {
      const { running, url } = await serve();
      await ledger.load(url, async () => {
        await sleep(700 + 200 * round);
        running.process.kill("SIGKILL");
        await running.ended;
      });
    }
    expect(ledger.accepted.size).toBeGreaterThan(60);
    await ledger.expectAllThere();
  });
});

/** What clients know of messages by their ids. */
class Ledger {
  /** The enqueue was answered. */
  readonly accepted = new Set<string>();
  /** The ack was answered. */
  readonly acked = new Set<string>();
  /** An ack was sent and not answered: it may have been done. */
  readonly unsure = new Set<string>();
  #next = 0;

  /** Clients that enqueue, and that take and ack, until `end` has come about. */
  async load(url: string, end: () => Promise<void>): Promise<void> {
    let isOver = false;
    const producer = async (): Promise<void> => {
      while (!isOver) {
        this.#next += 1;
        const id = String(this.#next);
        const answer = await this.#ask(url, "/queues/q/messages", { messages: [{ data: id, id }] });
        if (answer !== undefined) this.accepted.add(id);
      }
    };
    const consumer = async (): Promise<void> => {
      while (!isOver) {
        const answer = await this.#ask(url, "/queues/q/dequeue", { limit: 2, waitMs: 1_000, leaseMs: 600_000 });
        for (const { id, receipt } of (answer?.messages ?? []) as { readonly id: string; readonly receipt: string }[]) {
          const ack = await this.#ask(url, "/queues/q/ack", { items: [{ receipt }] });
          if (ack === undefined) this.unsure.add(id);
          else if ((ack.answers as { readonly outcome: string }[])[0]?.outcome === "acked") this.acked.add(id);
        }
      }
    };
    const clients = [producer(), producer(), producer(), consumer(), consumer()];
    await end();
    isOver = true;
    await Promise.all(clients);
  }

  /** The body of a good answer, when there was one. */
  async #ask(url: string, path: string, body: unknown): Promise<Record<string, unknown> | undefined> {
    try {
      const response = await post(url, path, body);
      return response.ok ? ((await response.json()) as Record<string, unknown>) : undefined;
    } catch {
      return undefined;
    }
  }

  /** Every accepted message was acked or is still there, and none that was acked is there. */
  async expectAllThere(): Promise<void> {
    const left = new Set<string>();
    for (const { id } of await cli.json("messages", "q")) left.add(String(id));
    expect([...this.accepted].filter((id) => !this.acked.has(id) && !this.unsure.has(id) && !left.has(id))).toEqual([]);
    expect([...this.acked].filter((id) => left.has(id))).toEqual([]);
  }
}
