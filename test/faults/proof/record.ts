/** Writes down operations as they begin and end, so that a killed process leaves what it had begun on record. */

import { openSync, readFileSync, writeSync } from "node:fs";
import type { ErrorCode } from "../../../src/core/errors.ts";
import { isQueueFSError } from "../../../src/core/errors.ts";
import type { Call, Operation, Outcome } from "./operation.ts";

/** Takes the lines of a record, each an object. */
export type LineSink = (line: Readonly<Record<string, unknown>>) => void;

/** Nanoseconds of the host's monotonic clock since `originNs`, exact enough for a run of weeks. */
export function nanoseconds(originNs: bigint): number {
  return Number(process.hrtime.bigint() - originNs);
}

/** Codes that say that nothing has happened and nothing will. */
const NOTHING_HAPPENED: ReadonlySet<ErrorCode> = new Set([
  "invalid-argument",
  "invalid-name",
  "queue-not-found",
  "task-not-found",
  "task-ended",
  "id-conflict",
  "message-too-large",
  "not-empty",
  "store-full",
  "store-busy",
  "store-unreachable",
  "overloaded",
  "timed-out",
  "closed",
]);

/** What an error says of whether the operation happened. */
export function outcomeOf(error: unknown): Outcome {
  return isQueueFSError(error) && NOTHING_HAPPENED.has(error.code) ? "fail" : "info";
}

/** The answer of one recorded call, or its failure. */
export type Recorded<Answer> =
  | { readonly outcome: "ok"; readonly answer: Answer }
  | { readonly outcome: "fail" | "info"; readonly error: string };

/** Records the operations of the lanes of one process. */
export class Recorder {
  readonly #write: LineSink;
  readonly #now: () => number;
  #count = 0;

  constructor(write: LineSink, now: () => number) {
    this.#write = write;
    this.#now = now;
  }

  /** Runs one operation. `told` gives what of the answer is written down, as the rest of the call. */
  async run<Answer>(
    client: string,
    call: Call,
    step: () => Promise<Answer>,
    told: (answer: Answer) => Readonly<Record<string, unknown>>,
  ): Promise<Recorded<Answer>> {
    this.#count += 1;
    const number = this.#count;
    this.#write({ number, client, begin: this.#now(), ...call });
    try {
      const answer = await step();
      const end = this.#now();
      this.#write({ number, end, outcome: "ok", ...told(answer) });
      return { outcome: "ok", answer };
    } catch (error) {
      const end = this.#now();
      const outcome = outcomeOf(error) === "fail" ? "fail" : "info";
      const code = isQueueFSError(error) ? error.code : String(error);
      this.#write({ number, end, outcome, error: code, words: String(error) });
      return { outcome, error: code };
    }
  }
}

/** Writes lines to a file, each at once: what was written is on record even if the process is killed in the next instant. */
export function fileSink(path: string): LineSink {
  const file = openSync(path, "a");
  return (line) => void writeSync(file, `${JSON.stringify(line)}\n`);
}

/** Puts begins and ends together again. What never ended is `info`. */
export class RecordReader {
  readonly #open = new Map<number, Operation>();
  readonly operations: Operation[] = [];

  readonly add: LineSink = (line) => {
    const { number, ...rest } = line as { readonly number: number };
    const begun = this.#open.get(number);
    if (begun === undefined) {
      const operation = { end: Number.POSITIVE_INFINITY, outcome: "info", ...rest } as unknown as Operation;
      this.#open.set(number, operation);
      this.operations.push(operation);
      return;
    }
    Object.assign(begun, rest);
    this.#open.delete(number);
  };
}

/** Reads the record of one process, killed or not. */
export function readRecord(path: string): Operation[] {
  const reader = new RecordReader();
  const lines = readFileSync(path, "utf8").split("\n");
  // A killed process may have been writing its last line.
  lines.pop();
  for (const line of lines) reader.add(JSON.parse(line));
  return reader.operations;
}
