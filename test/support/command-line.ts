/** Runs the built program `queuefs` as people do: as a process, in a folder of its own, in a pipe or on a terminal. */

import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The program; the global set-up of the e2e project has built it. */
export const PROGRAM = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "dist", "cli", "main.js");

/** What a process left behind. */
export interface Ended {
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly bytes: Buffer;
  /** Standard output as text. */
  readonly output: string;
  /** Standard error as text. */
  readonly errors: string;
}

/** A process that is running. */
export interface Running {
  readonly process: ChildProcessWithoutNullStreams;
  /** What came on standard output so far. */
  output(): string;
  errors(): string;
  /** Resolves when the output so far matches; rejects, with what there was, when the process ends before. */
  seen(pattern: RegExp): Promise<void>;
  /** The same for standard error. */
  told(pattern: RegExp): Promise<void>;
  readonly ended: Promise<Ended>;
}

/** A folder with a store in it. */
export interface CommandLine {
  readonly folder: string;
  /** What `--store` would say: the SQLite file in the folder, unless another was asked for. */
  readonly store: string;
  /** Runs a command to its end. `input` is all of its standard input. */
  run(commandArguments: readonly string[], input?: string | Uint8Array): Promise<Ended>;
  /** Runs a command that must succeed and gives its standard output as text. */
  text(...commandArguments: string[]): Promise<string>;
  /** Runs a command with `--json` that must succeed and gives the values of its lines. */
  json(...commandArguments: string[]): Promise<Record<string, unknown>[]>;
  /** Starts a command. */
  start(...commandArguments: string[]): Running;
  /** Starts a command on a pseudo terminal, of which input and output are the pipes. */
  startOnTerminal(...commandArguments: string[]): Running;
  /** Runs lines of a POSIX shell in the folder, where `queuefs` is the program. */
  shell(lines: readonly string[]): Running;
  /** Ends what is still running and removes the folder. */
  dispose(): Promise<void>;
}

function quoteForShell(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Collects what a process writes. */
function attend(child: ChildProcessWithoutNullStreams): Running {
  const output: Buffer[] = [];
  const errors: Buffer[] = [];
  const text = (parts: readonly Buffer[]): string => Buffer.concat(parts).toString("utf8");
  const listeners = new Set<() => void>();
  const changed = (): void => {
    for (const listener of [...listeners]) listener();
  };
  child.stdout.on("data", (part: Buffer) => {
    output.push(part);
    changed();
  });
  child.stderr.on("data", (part: Buffer) => {
    errors.push(part);
    changed();
  });
  // Whether a process reads its input is its own affair.
  child.stdin.on("error", () => {});
  let isOver = false;
  const ended = new Promise<Ended>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (exitCode, signal) => {
      isOver = true;
      resolve({ exitCode, signal, bytes: Buffer.concat(output), output: text(output), errors: text(errors) });
      changed();
    });
  });
  const until = (parts: readonly Buffer[], pattern: RegExp): Promise<void> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        const found = pattern.test(text(parts));
        if (!found && !isOver) return;
        listeners.delete(look);
        if (found) resolve();
        else reject(new Error(`the process ended before ${pattern} was seen; output: ${text(output)}; errors: ${text(errors)}`));
      };
      listeners.add(look);
      look();
    });
  return {
    process: child,
    output: () => text(output),
    errors: () => text(errors),
    ended,
    seen: (pattern) => until(output, pattern),
    told: (pattern) => until(errors, pattern),
  };
}

/** Makes a folder for commands. `store`: `memory:` or a Redis address, in place of a SQLite file. The caller must `dispose` it. */
export function openCommandLine(options: { readonly store?: string; readonly environment?: NodeJS.ProcessEnv } = {}): CommandLine {
  const folder = mkdtempSync(join(tmpdir(), "queuefs-cli-"));
  const store = options.store ?? `sqlite:${join(folder, "store.db")}`;
  const running = new Set<Running>();
  const environment: NodeJS.ProcessEnv = {
    PATH: [dirname(process.execPath), process.env.PATH].join(delimiter),
    HOME: folder,
    XDG_DATA_HOME: join(folder, "data"),
    TERM: "xterm",
    QUEUEFS_STORE: store,
    ...options.environment,
  };
  const spawnIn = (program: string, programArguments: readonly string[]): Running => {
    const started = attend(spawn(program, [...programArguments], { cwd: folder, env: environment, stdio: "pipe" }));
    running.add(started);
    void started.ended.then(() => running.delete(started));
    return started;
  };
  const start = (...commandArguments: string[]): Running => spawnIn(process.execPath, [PROGRAM, ...commandArguments]);
  const run = (commandArguments: readonly string[], input: string | Uint8Array = ""): Promise<Ended> => {
    const started = start(...commandArguments);
    started.process.stdin.end(input);
    return started.ended;
  };
  const succeed = async (commandArguments: readonly string[]): Promise<Ended> => {
    const ended = await run(commandArguments);
    if (ended.exitCode !== 0) throw new Error(`queuefs ${commandArguments.join(" ")} ended with ${ended.exitCode}: ${ended.errors}`);
    return ended;
  };
  return {
    folder,
    store,
    run,
    start,
    text: async (...commandArguments) => (await succeed(commandArguments)).output,
    async json(...commandArguments) {
      const { output } = await succeed([...commandArguments, "--json"]);
      return output
        .split("\n")
        .filter(Boolean)
        .map((line) => JSON.parse(line) as Record<string, unknown>);
    },
    startOnTerminal: (...commandArguments) =>
      // The size is set, since a pseudo terminal without one has no columns.
      spawnIn("script", [
        "-qec",
        `stty cols 100 rows 30; exec ${[process.execPath, PROGRAM, ...commandArguments].map(quoteForShell).join(" ")}`,
        "/dev/null",
      ]),
    shell: (lines) =>
      spawnIn("sh", [
        "-e",
        "-c",
        [`queuefs() { ${quoteForShell(process.execPath)} ${quoteForShell(PROGRAM)} "$@"; }`, ...lines].join("\n"),
      ]),
    async dispose() {
      await Promise.all(
        [...running].map((started) => {
          started.process.kill("SIGKILL");
          return started.ended;
        }),
      );
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
