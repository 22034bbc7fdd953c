/** Starts a real Redis or Valkey server for one test file, on a free port of this host, and leaves nothing behind. */

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** What a test may ask of its server. */
export interface RedisServerOptions {
  /** Whether the append-only file is kept, fsynced always, so that a killed server comes back with everything. Default false. */
  readonly appendonly?: boolean;
  /** More arguments of the server, such as `["--maxmemory", "4mb"]`. */
  readonly args?: readonly string[];
  /** Where the server keeps its files; a temporary folder, removed by `stop`, if absent. */
  readonly directory?: string;
  /** The port on 127.0.0.1; a free one if absent. */
  readonly port?: number;
}

/** One running server. */
export interface RedisServer {
  /** `redis://127.0.0.1:PORT`. */
  readonly url: string;
  readonly port: number;
  /** The id of the server's process now; another one after `restart`. */
  readonly processId: number;
  /** Ends the server in good order and removes its temporary folder. Calling it twice is harmless. */
  stop(): Promise<void>;
  /** Kills the server (SIGKILL) and keeps its files, for `restart` or `stop` to follow. */
  kill(): Promise<void>;
  /** Starts the server again, on the same port and files; kills it first if it runs. Resolves when it answers. */
  restart(): Promise<void>;
  /** Freezes the server (SIGSTOP): its sockets stay open and nothing answers. */
  stopProcess(): void;
  /** Lets a frozen server go on (SIGCONT). */
  continueProcess(): void;
}

const READY_TIMEOUT_MS = 20_000;

let program: string | undefined;

/** The server's program on PATH. */
function findProgram(): string {
  program ??= ["redis-server", "valkey-server"].find((name) => spawnSync(name, ["--version"], { stdio: "ignore" }).status === 0);
  if (program === undefined) {
    throw new Error(
      "neither redis-server nor valkey-server is on PATH; install one (Debian, Ubuntu: apt-get install redis-server; macOS: brew install redis)",
    );
  }
  return program;
}

async function freePort(): Promise<number> {
  const listener = createServer();
  await new Promise<void>((resolve, reject) => {
    listener.once("error", reject);
    listener.listen(0, "127.0.0.1", resolve);
  });
  const address = listener.address();
  await new Promise((resolve) => listener.close(resolve));
  if (address === null || typeof address === "string") throw new Error("the system gave no port");
  return address.port;
}

/** Whether the server answers PING now. */
function answersPing(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    const end = (answer: boolean): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.setTimeout(1_000, () => end(false));
    socket.once("error", () => end(false));
    socket.once("data", (data) => end(data.toString("latin1").startsWith("+PONG")));
    socket.write("*1\r\n$4\r\nPING\r\n");
  });
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

async function ended(child: ChildProcess): Promise<void> {
  if (!hasEnded(child)) await new Promise((resolve) => child.once("exit", resolve));
}

/** Runs the server until it answers; the text says why it did not start, else. */
async function launch(port: number, directory: string, options: RedisServerOptions): Promise<ChildProcess | string> {
  const persistence = options.appendonly ? ["--appendonly", "yes", "--appendfsync", "always"] : ["--appendonly", "no"];
  const child = spawn(
    findProgram(),
    [
      "--port",
      String(port),
      "--bind",
      "127.0.0.1",
      "--dir",
      directory,
      "--save",
      "",
      "--daemonize",
      "no",
      ...persistence,
      ...(options.args ?? []),
    ],
    { stdio: ["ignore", "pipe", "pipe"] },
  );
  let output = "";
  const keep = (chunk: Buffer): void => {
    output = (output + chunk.toString()).slice(-4_000);
  };
  child.stdout?.on("data", keep);
  child.stderr?.on("data", keep);
  child.on("error", (error) => keep(Buffer.from(String(error))));
  const deadline = performance.now() + READY_TIMEOUT_MS;
  while (!hasEnded(child) && child.pid !== undefined && performance.now() < deadline) {
    if (await answersPing(port)) {
      // Another program may hold the port, and answer; ours has then ended.
      if (!hasEnded(child)) return child;
    } else {
      await sleep(10);
    }
  }
  child.kill("SIGKILL");
  return output;
}

/** Starts a server and waits until it answers. The caller must `stop` it. */
export async function startRedisServer(options: RedisServerOptions = {}): Promise<RedisServer> {
  const directory = options.directory ?? (await mkdtemp(join(tmpdir(), "queuefs-redis-")));
  let child: ChildProcess | undefined;
  let port = 0;
  // A port that was free may be taken by another program before the server binds it: try others.
  for (let attempt = 1; child === undefined; attempt += 1) {
    port = options.port ?? (await freePort());
    const started = await launch(port, directory, options);
    if (typeof started !== "string") child = started;
    else if (attempt >= 3) {
      if (options.directory === undefined) await rm(directory, { recursive: true, force: true });
      throw new Error(`the Redis server did not start on port ${port}: ${started}`);
    }
  }
  const killAtExit = (): void => {
    child?.kill("SIGKILL");
  };
  process.on("exit", killAtExit);
  const current = (): ChildProcess => child as ChildProcess;
  const kill = async (): Promise<void> => {
    current().kill("SIGKILL");
    await ended(current());
  };
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    get processId(): number {
      return current().pid as number;
    },
    async stop() {
      process.off("exit", killAtExit);
      if (!hasEnded(current())) {
        current().kill("SIGCONT");
        current().kill("SIGTERM");
        const timer = setTimeout(() => current().kill("SIGKILL"), 5_000);
        await ended(current());
        clearTimeout(timer);
      }
      if (options.directory === undefined) await rm(directory, { recursive: true, force: true });
    },
    kill,
    async restart() {
      await kill();
      const started = await launch(port, directory, options);
      if (typeof started === "string") throw new Error(`the Redis server did not start again on port ${port}: ${started}`);
      child = started;
    },
    stopProcess() {
      current().kill("SIGSTOP");
    },
    continueProcess() {
      current().kill("SIGCONT");
    },
  };
}
