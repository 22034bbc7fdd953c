/** Runs a program on messages: payload on standard input, facts in the environment, verdict by exit code. */

import { type ChildProcess, type ChildProcessByStdio, spawn } from "node:child_process";
import { accessSync, constants, statSync } from "node:fs";
import { delimiter, join } from "node:path";
import { pipeline, Readable, type Writable } from "node:stream";
import { stripVTControlCharacters } from "node:util";

/** How programs are run. */
export interface CommandSettings {
  readonly command: string;
  readonly commandArguments: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The time of each, in milliseconds; then it is told to end. None if absent. */
  readonly timeoutMs?: number;
  /** How long a program that was told to end (SIGTERM) may take before it and what it started are killed (SIGKILL), in milliseconds. */
  readonly killAfterMs: number;
}

/** One run of the program. */
export interface CommandRun {
  /** What it reads on standard input; it need not read it. */
  readonly input: Iterable<Uint8Array>;
  /** More of its environment. */
  readonly environment: Readonly<Record<string, string>>;
  /** Ends it early. */
  readonly abort: AbortSignal;
  /** Hands over what it writes. The program waits meanwhile; when this rejects, its stream is closed. */
  readonly write: (stream: "stdout" | "stderr", chunk: Uint8Array) => Promise<void>;
}

/** How a program ended. */
export interface CommandEnd {
  /** Its exit code; `undefined` when a signal ended it. */
  readonly code: number | undefined;
  readonly signal: NodeJS.Signals | undefined;
  /** Why it was told to end, if it was: its time was over, or it was aborted. */
  readonly cutShort: "timeout" | "abort" | undefined;
  /** Why some of what it wrote could not be handed over, if so. */
  readonly outputError: unknown;
  /** The end of what it wrote to standard error, without what steers a terminal. */
  readonly errorTail: string;
}

/** The program could not be started, so that nothing of it has run. */
export interface NotStarted {
  readonly notStarted: Error;
  /** Whether it may work a little later: the system is out of processes, memory or files. */
  readonly isTransient: boolean;
}

/** Bytes of standard error that are kept for the reason of a nack; a reason has room for 4,096 characters. */
const TAIL_BYTES = 3_000;
/**
 * What a program has started in the background and left running may hold its output open. Once the program has ended and nothing came
 * for so many milliseconds, nobody listens any more.
 */
const QUIET_MS = 200;
/** The same when something does come again and again, in milliseconds after the end. */
const LISTEN_MS = 5_000;
/** How often to look whether all that a program had started has ended, in milliseconds. */
const GROUP_LOOK_MS = 20;
const TRANSIENT = new Set(["EAGAIN", "EMFILE", "ENFILE", "ENOMEM", "ETXTBSY"]);

// Programs run in sessions of their own, so that Ctrl-C ends the worker gracefully and not them. If the worker is ended at once all the
// same, they must not stay behind.
const running = new Set<ChildProcess>();
let watchesExit = false;

function killAtExit(child: ChildProcess): void {
  running.add(child);
  if (watchesExit) return;
  watchesExit = true;
  process.on("exit", () => {
    for (const each of running) signalGroup(each, "SIGKILL");
  });
}

/** Sends a signal (0: none, only looks) to a program and all it has started. @returns whether there was anything left to get it */
function signalGroup(child: ChildProcess, signal: NodeJS.Signals | 0): boolean {
  if (child.pid === undefined) return false;
  try {
    return process.kill(-child.pid, signal);
  } catch {
    // The group is gone. On systems without groups there is only the process itself.
    return child.exitCode === null && child.signalCode === null && child.kill(signal);
  }
}

/** Whether a program of that name is there to be run, as far as that can be told without running it. */
export function canBeFound(command: string, searchPath: string | undefined): boolean {
  if (searchPath === undefined || process.platform === "win32") return true;
  const places = command.includes("/") ? [command] : searchPath.split(delimiter).map((folder) => join(folder, command));
  return places.some((place) => {
    try {
      accessSync(place, constants.X_OK);
      return statSync(place).isFile();
    } catch {
      return false;
    }
  });
}

/** Runs the program once, to its end and the end of what it writes. Never rejects. */
export async function runCommand(settings: CommandSettings, run: CommandRun): Promise<CommandEnd | NotStarted> {
  let child: ReturnType<typeof start>;
  try {
    child = start(settings, run);
    // Where the system is out of files there are no streams either.
    await new Promise<void>((resolve, reject) => child.once("spawn", resolve).on("error", reject));
  } catch (error) {
    return { notStarted: error as Error, isTransient: TRANSIENT.has((error as NodeJS.ErrnoException).code ?? "") };
  }
  return new Attendance(child, settings, run).end();
}

function start(
  { command, commandArguments, environment }: CommandSettings,
  run: CommandRun,
): ChildProcessByStdio<Writable, Readable, Readable> {
  return spawn(command, commandArguments, {
    env: { ...environment, ...run.environment },
    stdio: ["pipe", "pipe", "pipe"],
    detached: process.platform !== "win32",
  });
}

/** Looks after one running program. */
class Attendance {
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #settings: CommandSettings;
  readonly #run: CommandRun;
  #cutShort: CommandEnd["cutShort"];
  #killTimer: ReturnType<typeof setTimeout> | undefined;
  #quietTimer: ReturnType<typeof setTimeout> | undefined;
  #isKilled = false;
  #hasExited = false;
  #beingWritten = 0;
  #chunks = 0;
  #outputError: unknown;
  #tail: Uint8Array = new Uint8Array(0);

  constructor(child: ChildProcessByStdio<Writable, Readable, Readable>, settings: CommandSettings, run: CommandRun) {
    this.#child = child;
    this.#settings = settings;
    this.#run = run;
  }

  async end(): Promise<CommandEnd> {
    const child = this.#child;
    const { input, abort } = this.#run;
    killAtExit(child);
    const onAbort = (): void => this.#tellToEnd("abort");
    abort.addEventListener("abort", onAbort, { once: true });
    if (abort.aborted) onAbort();
    const { timeoutMs } = this.#settings;
    const timer = timeoutMs === undefined ? undefined : setTimeout(() => this.#tellToEnd("timeout"), timeoutMs);
    const exited = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) =>
      child.once("exit", (code, signal) => resolve({ code, signal })),
    );
    // A program that does not read its input closes it, which is its right.
    pipeline(Readable.from(input), child.stdin, () => {});
    const written = Promise.all([this.#pass("stdout"), this.#pass("stderr")]);
    const { code, signal } = await exited;
    clearTimeout(timer);
    abort.removeEventListener("abort", onAbort);
    if (this.#cutShort !== undefined) await this.#groupGone();
    clearTimeout(this.#killTimer);
    running.delete(child);
    this.#hasExited = true;
    this.#listenOn();
    const lastTimer = setTimeout(() => setImmediate(() => this.#stopListening()), LISTEN_MS);
    await written;
    clearTimeout(this.#quietTimer);
    clearTimeout(lastTimer);
    return {
      code: code ?? undefined,
      signal: signal ?? undefined,
      cutShort: this.#cutShort,
      outputError: this.#outputError,
      errorTail: tailText(this.#tail),
    };
  }

  #tellToEnd(why: "timeout" | "abort"): void {
    if (this.#cutShort !== undefined) return;
    this.#cutShort = why;
    signalGroup(this.#child, "SIGTERM");
    // One that was stopped hears it only when it goes on.
    signalGroup(this.#child, "SIGCONT");
    this.#killTimer = setTimeout(() => {
      this.#isKilled = true;
      signalGroup(this.#child, "SIGKILL");
    }, this.#settings.killAfterMs);
  }

  /** Resolves when nothing is left of a program that was told to end: its own end need not be that of what it had started. */
  #groupGone(): Promise<void> {
    return new Promise((resolve) => {
      const look = (): void => {
        if (!this.#isKilled && signalGroup(this.#child, 0)) setTimeout(look, GROUP_LOOK_MS);
        else resolve();
      };
      look();
    });
  }

  async #pass(name: "stdout" | "stderr"): Promise<void> {
    try {
      for await (const chunk of this.#child[name] as AsyncIterable<Uint8Array>) {
        if (name === "stderr") this.#tail = Buffer.concat([this.#tail, chunk]).subarray(-TAIL_BYTES);
        this.#beingWritten += 1;
        this.#chunks += 1;
        clearTimeout(this.#quietTimer);
        try {
          await this.#run.write(name, chunk);
        } catch (error) {
          this.#outputError ??= error;
          return;
        } finally {
          this.#beingWritten -= 1;
          this.#listenOn();
        }
      }
    } catch {
      // Its streams were closed by us: nobody listens any more.
    }
  }

  #listenOn(): void {
    clearTimeout(this.#quietTimer);
    if (!this.#hasExited || this.#beingWritten > 0) return;
    const chunks = this.#chunks;
    // An event loop that was kept busy meanwhile fires its timers first: what came in that time is read in the turn after.
    this.#quietTimer = setTimeout(() => setImmediate(() => this.#stopIfQuiet(chunks)), QUIET_MS);
  }

  #stopIfQuiet(chunks: number): void {
    if (this.#chunks === chunks) this.#stopListening();
  }

  #stopListening(): void {
    // What is being handed over is handed over still.
    this.#child.stdout.destroy();
    this.#child.stderr.destroy();
  }
}

/** Text of the last bytes of a stream, which may begin within a character. */
function tailText(bytes: Uint8Array): string {
  let start = 0;
  while (bytes.byteLength === TAIL_BYTES && start < 3 && ((bytes[start] as number) & 0xc0) === 0x80) start += 1;
  return stripVTControlCharacters(new TextDecoder().decode(bytes.subarray(start))).trim();
}
