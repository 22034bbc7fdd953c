/** Where a run takes place: the store's file or server, and what can be done to it. */

import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startRedisServer } from "../../support/redis-server.ts";
import { startTcpProxy, type TcpProxy } from "../../support/tcp-proxy.ts";
import type { Promises } from "./check/promises.ts";
import { BUSY_MS, type ClientStore, OUTAGE_MS, SILENCE_MS } from "./client-store.ts";

/** The backends that processes can share. */
export type ProofBackend = "sqlite" | "redis" | "http";

/** A server that can be killed, stopped and started again. */
export interface FaultyServer {
  kill(): Promise<void>;
  start(): Promise<void>;
  pause(): void;
  proceed(): void;
}

/** One place. */
export interface Place {
  readonly promises: Promises;
  /** Absent where there is no server. */
  readonly server?: FaultyServer;
  /** Makes the way of one client to the store. */
  connect(): Promise<{ readonly store: ClientStore; readonly proxy?: TcpProxy }>;
  /** The store without anything between. */
  readonly direct: ClientStore;
  end(): Promise<void>;
}

const PROMISES = { toleranceMs: 5, recoveryMs: 500, wakeUpMs: 5_000, errorRate: 0.001, faultTailMs: 4_000 };
const SERVER_PROMISES: Promises = {
  ...PROMISES,
  deathRecovery: false,
  resends: true,
  forgetsAnswers: false,
  lateEffectMs: Number.POSITIVE_INFINITY,
  callMs: OUTAGE_MS + 2 * SILENCE_MS + 4_000,
};

const HTTP_PROMISES: Promises = { ...SERVER_PROMISES, forgetsAnswers: true };

const SQLITE_PROMISES: Promises = {
  ...PROMISES,
  deathRecovery: true,
  resends: false,
  forgetsAnswers: false,
  lateEffectMs: 0,
  callMs: BUSY_MS + 5_000,
};

/** What is promised of a backend beside the contract, with the clients of this runner. */
export function promisesOf(backend: ProofBackend): Promises {
  if (backend === "http") return HTTP_PROMISES;
  return backend === "sqlite" ? SQLITE_PROMISES : SERVER_PROMISES;
}

function sqlitePlace(folder: string): Place {
  const direct = { kind: "sqlite", path: join(folder, "queue.db") } as const;
  return {
    promises: SQLITE_PROMISES,
    direct,
    connect: async () => ({ store: direct }),
    end: async () => {},
  };
}

async function redisPlace(forgets: boolean): Promise<Place> {
  const server = await startRedisServer({ appendonly: !forgets });
  const proxies: TcpProxy[] = [];
  return {
    promises: SERVER_PROMISES,
    direct: { kind: "redis", url: server.url },
    server: {
      kill: () => server.kill(),
      start: () => server.restart(),
      pause: () => server.stopProcess(),
      proceed: () => server.continueProcess(),
    },
    async connect() {
      const proxy = await startTcpProxy(server.port);
      proxies.push(proxy);
      return { store: { kind: "redis", url: `redis://127.0.0.1:${proxy.port}` }, proxy };
    },
    async end() {
      await Promise.all(proxies.map((proxy) => proxy.stop()));
      await server.stop();
    },
  };
}

const root = join(import.meta.dirname, "..", "..", "..");

/** Runs `queuefs serve` from the sources, and resolves with its process and port when it listens. */
async function startServe(path: string, port: number): Promise<{ readonly child: ChildProcess; readonly port: number }> {
  const program = join(root, "src", "cli", "main.ts");
  const commandArguments = ["--import", "tsx", program, "serve", "--json", "--port", String(port), "--store", `sqlite:${path}`];
  const child = spawn(process.execPath, commandArguments, { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  let errors = "";
  child.stdout.on("data", (data) => (output = `${output}${data}`.slice(-4_000)));
  child.stderr.on("data", (data) => (errors = `${errors}${data}`.slice(-4_000)));
  const deadlineMs = performance.now() + 30_000;
  for (;;) {
    const listening = /"url":"http:\/\/[^"]*:(\d+)/.exec(output)?.[1];
    if (listening !== undefined) return { child, port: Number(listening) };
    if (child.exitCode !== null || performance.now() > deadlineMs) throw new Error(`queuefs serve did not start: ${output}${errors}`);
    await sleep(10);
  }
}

async function httpPlace(folder: string): Promise<Place> {
  const path = join(folder, "served.db");
  let { child, port } = await startServe(path, 0);
  const killAtExit = (): void => void child.kill("SIGKILL");
  process.on("exit", killAtExit);
  const proxies: TcpProxy[] = [];
  const kill = async (): Promise<void> => {
    const gone =
      child.exitCode !== null || child.signalCode !== null ? Promise.resolve() : new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await gone;
  };
  return {
    promises: HTTP_PROMISES,
    direct: { kind: "http", url: `http://127.0.0.1:${port}` },
    server: {
      kill,
      async start() {
        ({ child, port } = await startServe(path, port));
      },
      pause: () => void child.kill("SIGSTOP"),
      proceed: () => void child.kill("SIGCONT"),
    },
    async connect() {
      const proxy = await startTcpProxy(port);
      proxies.push(proxy);
      return { store: { kind: "http", url: `http://127.0.0.1:${proxy.port}` }, proxy };
    },
    async end() {
      process.off("exit", killAtExit);
      await Promise.all(proxies.map((proxy) => proxy.stop()));
      await kill();
    },
  };
}

/** Makes a place. The caller must `end` it, and remove the folder. @param forgets whether a Redis server keeps nothing on disk */
export function openPlace(backend: ProofBackend, folder: string, forgets = false): Promise<Place> {
  if (backend === "sqlite") return Promise.resolve(sqlitePlace(folder));
  return backend === "redis" ? redisPlace(forgets) : httpPlace(folder);
}
