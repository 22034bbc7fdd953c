/** Runs functions in processes of their own, real ones that a test can kill, stop and continue. */

import { type ChildProcess, fork } from "node:child_process";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { build } from "vite";
import { afterAll } from "vitest";
import { type ErrorCode, QueueFSError } from "../../src/core/errors.ts";

/** The functions that a child offers. Arguments and results are copied between processes: plain data, bytes, arrays. */
export type Programs = Readonly<Record<string, (...values: never[]) => unknown>>;

/** A call, on its way to a child. */
export interface ToChild {
  readonly number: number;
  readonly program: string;
  readonly values: readonly unknown[];
}

/** What a child sends. */
export type FromChild =
  | { readonly kind: "ready" }
  | { readonly kind: "told"; readonly value: unknown }
  | { readonly kind: "fault"; readonly text: string }
  | { readonly kind: "answer"; readonly number: number; readonly value: unknown }
  | { readonly kind: "failure"; readonly number: number; readonly text: string; readonly code?: ErrorCode; readonly message?: string };

/** One child process. */
export interface Child<Table extends Programs> {
  readonly processId: number;
  /** Runs a program of the child. Rejects with its error, or when the process ends before it has answered. */
  call<Name extends keyof Table & string>(program: Name, ...values: Parameters<Table[Name]>): Promise<Awaited<ReturnType<Table[Name]>>>;
  /** What the child told so far, in order. */
  readonly told: readonly unknown[];
  /** Resolves when the child has told so many values; rejects when it ends before. */
  whenTold(count: number): Promise<void>;
  /** Sends a signal. */
  signal(name: NodeJS.Signals): void;
  /** Kills the process (SIGKILL), also a stopped one, and resolves when it is gone and all it told has arrived. */
  kill(): Promise<void>;
  /** Resolves with the signal that ended the process, or its exit code. */
  readonly ended: Promise<NodeJS.Signals | number | null>;
}

/** How a child is started. */
export interface ChildOptions {
  readonly userId?: number;
  /** Variables that it has beside those of this process. */
  readonly environment?: Readonly<Record<string, string>>;
}

/** The children of one test file. */
export interface Children<Table extends Programs> {
  /** @param options `userId`: whom the process belongs to, for a test that runs as root */
  start(options?: ChildOptions): Promise<Child<Table>>;
  /** Kills those that live. @throws when one reported an error that no call could answer with */
  end(): Promise<void>;
}

const root = join(import.meta.dirname, "..", "..");
const CACHE = join(root, "node_modules", ".cache");
let builds = 0;

/**
 * Compiles the programs into one file. A process that runs it starts in a third of the time that one needs which compiles as it loads.
 * It lies in node_modules so that it finds the packages, and goes with the tests of its file.
 */
async function compile(entry: string, folder: string): Promise<string> {
  removeForgotten();
  await build({
    configFile: false,
    logLevel: "error",
    root,
    build: {
      ssr: entry,
      outDir: folder,
      target: "node20",
      minify: false,
      rollupOptions: { output: { entryFileNames: "main.mjs", chunkFileNames: "[name].mjs" } },
    },
    ssr: { external: true },
  });
  return join(folder, "main.mjs");
}

/** Removes what test processes left that were killed before their end. */
function removeForgotten(): void {
  for (const name of existsSync(CACHE) ? readdirSync(CACHE) : []) {
    const processId = /^queuefs-programs-(\d+)-/.exec(name)?.[1];
    if (processId === undefined) continue;
    try {
      process.kill(Number(processId), 0);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ESRCH") rmSync(join(CACHE, name), { recursive: true, force: true });
    }
  }
}

/**
 * @param entry the module that serves the programs, relative to the repository; `Table` is their type
 * @param atEnd calls what removes the compiled programs, when no more are started; at the end of the test file unless given
 */
export function childProcesses<Table extends Programs>(entry: string, atEnd: (remove: () => void) => void = afterAll): Children<Table> {
  const living = new Set<Child<Table>>();
  const faults: string[] = [];
  let compiled: Promise<string> | undefined;
  builds += 1;
  const folder = join(CACHE, `queuefs-programs-${process.pid}-${builds}`);
  atEnd(() => rmSync(folder, { recursive: true, force: true }));
  return {
    async start(options) {
      compiled ??= compile(entry, folder);
      const child = await startChild<Table>(await compiled, options, (text) => void faults.push(text));
      living.add(child);
      void child.ended.then(() => living.delete(child));
      return child;
    },
    async end() {
      await Promise.all([...living].map((child) => child.kill()));
      const reported = faults.splice(0);
      if (reported.length > 0) throw new Error(`children reported errors:\n${reported.join("\n")}`);
    },
  };
}

interface Waiting {
  readonly resolve: (value: never) => void;
  readonly reject: (error: Error) => void;
}

/** A function, since the child of that name hides the process. */
function environmentOfThisProcess(): NodeJS.ProcessEnv {
  return process.env;
}

async function startChild<Table extends Programs>(
  file: string,
  options: ChildOptions | undefined,
  onFault: (text: string) => void,
): Promise<Child<Table>> {
  const process = fork(file, {
    execArgv: [],
    serialization: "advanced",
    stdio: ["ignore", "pipe", "pipe", "ipc"],
    ...(options?.environment === undefined ? {} : { env: { ...environmentOfThisProcess(), ...options.environment } }),
    ...(options?.userId === undefined ? {} : { uid: options.userId, gid: options.userId }),
  });
  const output: Buffer[] = [];
  process.stdout?.on("data", (part: Buffer) => void output.push(part));
  process.stderr?.on("data", (part: Buffer) => void output.push(part));
  const calls = new Map<number, Waiting>();
  const told: unknown[] = [];
  const watchers = new Set<() => void>();
  let isOver = false;
  let setReady: () => void = () => {};
  const ready = new Promise<void>((resolve) => (setReady = resolve));
  const changed = (): void => {
    for (const look of [...watchers]) look();
  };
  process.on("message", (message: FromChild) => {
    if (message.kind === "ready") setReady();
    else if (message.kind === "fault") onFault(message.text);
    else if (message.kind === "told") {
      told.push(message.value);
      changed();
    } else settle(calls, message);
  });
  const ending = new Promise<NodeJS.Signals | number | null>((resolve) => process.once("exit", (code, signal) => resolve(signal ?? code)));
  // What was sent before the end arrives before the channel is closed.
  const closed = new Promise<void>((resolve) => process.once("disconnect", () => resolve()));
  const ended = Promise.all([ending, closed]).then(([how]) => {
    isOver = true;
    const error = new Error(`the child ended (${how}); it wrote: ${Buffer.concat(output).toString()}`);
    for (const { reject } of calls.values()) reject(error);
    calls.clear();
    changed();
    return how;
  });
  await Promise.race([
    ready,
    ended.then((how) => Promise.reject(new Error(`the child did not start (${how}): ${Buffer.concat(output).toString()}`))),
  ]);
  return {
    processId: process.pid as number,
    told,
    ended,
    call: (program, ...values) =>
      process.connected
        ? callChild(process, calls, program, values)
        : ended.then((how) => {
            throw new Error(`the child has ended (${how}), so it cannot run ${program}; it wrote: ${Buffer.concat(output).toString()}`);
          }),
    whenTold: (count) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          if (told.length < count && !isOver) return;
          watchers.delete(look);
          if (told.length >= count) resolve();
          else reject(new Error(`the child ended after telling ${told.length} of ${count} values: ${Buffer.concat(output).toString()}`));
        };
        watchers.add(look);
        look();
      }),
    signal: (name) => void process.kill(name),
    async kill() {
      process.kill("SIGKILL");
      await ended;
    },
  };
}

let calls = 0;

function callChild<Result>(
  process: ChildProcess,
  waiting: Map<number, Waiting>,
  program: string,
  values: readonly unknown[],
): Promise<Result> {
  calls += 1;
  const number = calls;
  return new Promise<Result>((resolve, reject) => {
    waiting.set(number, { resolve, reject });
    process.send({ number, program, values } satisfies ToChild, (error) => {
      // A child that was just killed: its end rejects the call as well, whichever comes first.
      if (error !== null && waiting.delete(number)) reject(error);
    });
  });
}

function settle(calls: Map<number, Waiting>, message: Extract<FromChild, { readonly number: number }>): void {
  const call = calls.get(message.number);
  calls.delete(message.number);
  if (message.kind === "answer") call?.resolve(message.value as never);
  else if (message.code === undefined) call?.reject(new Error(`in the child: ${message.text}`));
  else call?.reject(new QueueFSError(message.code, message.message ?? message.text));
}
