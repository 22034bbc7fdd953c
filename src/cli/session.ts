/** What a command works with: the store, standard input and output, and the signal that ends it. */

import type { Backend } from "../backend/contract.ts";
import type { TaskId } from "../core/names.ts";
import type { StoreOptions } from "../store/open.ts";
import type { Output } from "./output.ts";
import { isServerLocation, storeLocation, TOKEN_VARIABLE } from "./store-option.ts";
import { taskOf } from "./task-option.ts";
import { visibleJson, visibleLines } from "./visible.ts";

/** The parts of the process that a command may touch. */
export type ProcessParts = Pick<NodeJS.Process, "argv" | "env" | "stdin" | "stdout" | "stderr" | "on" | "off" | "exit">;

/** Options that every command has. */
export interface GlobalOptions {
  /** Where the store is; see {@link storeLocation}. */
  readonly store?: string;
  /** Token of a QueueFS server; else that of the environment. */
  readonly token?: string;
  /** Whether JSON lines are written instead of text for people. */
  readonly json?: boolean;
}

/** The signals that ask a command to end, with their numbers. */
export const INTERRUPTING_SIGNALS = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const;

/** One of {@link INTERRUPTING_SIGNALS}. */
export type InterruptingSignal = keyof typeof INTERRUPTING_SIGNALS;

/** Somebody has asked the command to end, by Ctrl-C, another signal, or by closing its terminal. */
export class InterruptedError extends Error {
  override readonly name = "InterruptedError";
  /** 128 and the signal's number, as shells have it. */
  readonly exitCode: number;

  constructor(signal: InterruptingSignal) {
    super(`ended by ${signal}`);
    this.exitCode = 128 + INTERRUPTING_SIGNALS[signal];
  }
}

/** One run of one command. */
export class Session {
  /** Whether JSON lines are asked for. */
  readonly json: boolean;
  readonly output: Output;
  readonly input: NodeJS.ReadStream;
  readonly errors: NodeJS.WriteStream;
  /** Aborts, with an {@link InterruptedError}, when the command is to end. */
  readonly signal: AbortSignal;
  readonly environment: NodeJS.ProcessEnv;
  readonly #store: string | undefined;
  readonly #token: string | undefined;
  readonly #onOwnTime: () => void;
  readonly #opened: Backend[] = [];
  #lastNote = "";

  /** @param onOwnTime called by {@link endInOwnTime} */
  constructor(parts: ProcessParts, output: Output, options: GlobalOptions, signal: AbortSignal, onOwnTime: () => void = () => {}) {
    this.#onOwnTime = onOwnTime;
    this.json = options.json === true;
    this.#token = options.token ?? parts.env[TOKEN_VARIABLE];
    this.output = output;
    this.input = parts.stdin;
    this.errors = parts.stderr;
    this.signal = signal;
    this.environment = parts.env;
    this.#store = options.store;
  }

  /** Says that the command comes to its end by itself, within a bounded time, once {@link signal} is aborted: a second signal changes nothing then. */
  endInOwnTime(): void {
    this.#onOwnTime();
  }

  /** Whether colours are wanted: on a terminal, unless `NO_COLOR` is set or the terminal is a dumb one. */
  get colours(): boolean {
    return this.output.isTerminal && !this.environment.NO_COLOR && this.environment.TERM !== "dumb";
  }

  /** Says something beside the output, on standard error, in the form that is asked for. */
  note(text: string): void {
    this.errors.write(this.json ? `${visibleJson(JSON.stringify({ note: text }))}\n` : `queuefs: ${visibleLines(text)}\n`);
  }

  /** The same for what the store tells of its work in the background, which may say one thing many times. */
  #noteOnce(text: string): void {
    if (text === this.#lastNote) return;
    this.#lastNote = text;
    this.note(text);
  }

  /** Writes one value as a line of JSON. */
  async jsonLine(value: unknown): Promise<void> {
    await this.output.json([new TextEncoder().encode(JSON.stringify(value))]);
  }

  /** Where the store of this command is. */
  async storeLocation(): Promise<string> {
    return storeLocation(this.#store, this.environment);
  }

  /**
   * The task on whose behalf this command enqueues; see {@link taskOf}.
   *
   * @param option the value of `--task`, or `false` for `--no-task`
   */
  taskOf(option: string | false | undefined): TaskId | undefined {
    return taskOf(option, this.#store, this.environment);
  }

  /**
   * Opens the store. It is closed when the command ends.
   *
   * @param location where, if not where the global option says
   * @param options of the store, as `openStore` has them
   * @throws what opening rejects with, or {@link InterruptedError}
   */
  async openStore(location?: string, options: Pick<StoreOptions, "maxMessageBytes"> = {}): Promise<Backend> {
    const where = location ?? (await this.storeLocation());
    const { openStore } = await import("../store/open.ts");
    this.signal.throwIfAborted();
    const token = this.#token;
    const opening = openStore(where, {
      ...options,
      ...(token && isServerLocation(where) ? { token } : {}),
      onError: (error) => this.#noteOnce(error instanceof Error ? error.message : String(error)),
    });
    let onAbort = (): void => {};
    const aborted = new Promise<never>((_, reject) => {
      onAbort = () => reject(this.signal.reason);
      this.signal.addEventListener("abort", onAbort, { once: true });
    });
    try {
      const backend = await Promise.race([opening, aborted]);
      this.#opened.push(backend);
      if (!backend.description.durable && backend.description.sharedBy === "process" && !this.json) {
        this.note("the memory store begins empty and ends with this command");
      }
      return backend;
    } finally {
      this.signal.removeEventListener("abort", onAbort);
    }
  }

  /** Closes what was opened. */
  async close(): Promise<void> {
    await Promise.all(this.#opened.map((backend) => backend.close()));
  }
}
