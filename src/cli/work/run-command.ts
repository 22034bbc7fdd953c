/** Runs a program on messages: payload on standard input, facts in the environment, verdict by exit code. */

import { type ChildProcess, spawn } from "node:child_process";
import { QueueFSError } from "../../core/errors.ts";

/** One message for a program. */
export interface WorkItem {
  readonly id: string;
  readonly data: Uint8Array;
  readonly deliveryCount: number;
  readonly enqueuedAtMs: number;
}

/** How programs are run. */
export interface CommandSettings {
  readonly command: string;
  readonly commandArguments: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Gets what a program writes, as it comes. */
  readonly onOutput: (stream: "stdout" | "stderr", chunk: Uint8Array) => void;
}

/** How a program ended. */
export interface CommandEnd {
  /** Its exit code; `undefined` when a signal ended it. */
  readonly code: number | undefined;
  readonly signal: NodeJS.Signals | undefined;
  /** The end of what it wrote to standard error, for the reason of a retry. */
  readonly errorTail: string;
}

/** Characters of standard error that are kept as the reason. */
const TAIL_CHARACTERS = 1_000;
/** How long a program that was told to end may take before it is killed, in milliseconds. */
const KILL_AFTER_MS = 5_000;

// Programs run in process groups of their own, so that Ctrl-C ends the worker gracefully and not them. If the worker is ended at once
// all the same, they must not stay behind.
const running = new Set<ChildProcess>();
let watchesExit = false;

function killAtExit(child: ChildProcess): void {
  running.add(child);
  if (watchesExit) return;
  watchesExit = true;
  process.on("exit", () => {
    for (const each of running) killGroup(each, "SIGKILL");
  });
}

function killGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, signal);
  } catch {
    // The group is gone already; on systems without groups the process itself is told.
    child.kill(signal);
  }
}

/**
 * Runs the program once.
 *
 * @param input what it reads on standard input; it need not read it
 * @param extra more of its environment
 * @param abort ends it: SIGTERM, and SIGKILL five seconds later
 * @throws QueueFSError `invalid-argument` when the program cannot be started
 */
export function runCommand(
  settings: CommandSettings,
  input: Uint8Array,
  extra: Readonly<Record<string, string>>,
  abort: AbortSignal,
): Promise<CommandEnd> {
  return new Promise((resolve, reject) => {
    const child = spawn(settings.command, settings.commandArguments, {
      env: { ...settings.environment, ...extra },
      stdio: ["pipe", "pipe", "pipe"],
      detached: process.platform !== "win32",
    });
    killAtExit(child);
    let tail = "";
    let killTimer: ReturnType<typeof setTimeout> | undefined;
    const end = (): void => {
      killGroup(child, "SIGTERM");
      killTimer = setTimeout(() => killGroup(child, "SIGKILL"), KILL_AFTER_MS);
    };
    const forget = (): void => {
      running.delete(child);
      clearTimeout(killTimer);
      abort.removeEventListener("abort", end);
    };
    child.on("error", (error) => {
      forget();
      reject(
        new QueueFSError(
          "invalid-argument",
          `the program ${settings.command} cannot be run (${error.message}); check its name and that it may be executed`,
          {
            cause: error,
          },
        ),
      );
    });
    // A program that does not read its input closes it, which is its right.
    child.stdin.on("error", () => child.stdin.destroy());
    child.stdin.end(input);
    child.stdout.on("data", (chunk: Uint8Array) => settings.onOutput("stdout", chunk));
    child.stderr.on("data", (chunk: Buffer) => {
      tail = (tail + chunk.toString("utf8")).slice(-TAIL_CHARACTERS);
      settings.onOutput("stderr", chunk);
    });
    child.on("close", (code, signal) => {
      forget();
      resolve({ code: code ?? undefined, signal: signal ?? undefined, errorTail: tail.trim() });
    });
    if (abort.aborted) end();
    else abort.addEventListener("abort", end, { once: true });
  });
}
