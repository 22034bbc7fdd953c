/**
 * What people see: lines that stay, and below them, on a terminal, the counts of the queues and the progress of the task refreshed in place; in a
 * pipe a line now and then.
 */

import type { QueueStatus, Task } from "../../src/index.ts";

/** How often the counts are drawn on a terminal at most, and how often they are printed elsewhere, in milliseconds. */
const DRAW_MS = 60;
const PRINT_MS = 1_000;
const BAR_CELLS = 30;

/** The output of the import. */
export class Screen {
  readonly #stream: NodeJS.WriteStream;
  readonly #begunMs = performance.now();
  #drawn: readonly string[] = [];
  #shownAtMs = Number.NEGATIVE_INFINITY;

  constructor(stream: NodeJS.WriteStream) {
    this.#stream = stream;
  }

  /** Seconds since the begin, as text. */
  get seconds(): string {
    return `${((performance.now() - this.#begunMs) / 1_000).toFixed(1)} s`;
  }

  /** Writes a line that stays. */
  line(text = ""): void {
    const drawn = this.#drawn;
    this.clear();
    this.#stream.write(`${text}\n`);
    this.#draw(drawn);
  }

  /** Writes an event of the import, with its time. */
  event(text: string): void {
    this.line(`${this.seconds.padStart(7)}  ${text}`);
  }

  /** Shows one snapshot of the queues and the task as it is. One that comes too soon after the last is left out, unless it is the final one. */
  show(statuses: readonly QueueStatus[], { status, progress }: Task, isFinal = false): void {
    const nowMs = performance.now();
    if (!isFinal && nowMs - this.#shownAtMs < (this.#stream.isTTY ? DRAW_MS : PRINT_MS)) return;
    this.#shownAtMs = nowMs;
    const part = (progress.done + progress.failed) / Math.max(1, progress.total);
    const percent = `${Math.floor(100 * part)} %`;
    const told = `task ${status}, ${progress.done} of ${progress.total} messages done${progress.failed > 0 ? `, ${progress.failed} failed` : ""}`;
    if (!this.#stream.isTTY) {
      const counts = statuses.map(({ queue, pending, processing }) => `${queue} ${pending} pending ${processing} processing`);
      this.event(`${counts.join(", ")}; ${told} (${percent})`);
      return;
    }
    const cells = Math.floor(BAR_CELLS * part);
    const rows = statuses.map(({ queue, pending, processing }) => countsRow(queue, String(pending), String(processing)));
    const bar = `${"█".repeat(cells)}${"░".repeat(BAR_CELLS - cells)}`;
    this.clear();
    this.#draw(["", countsRow("", "pending", "processing"), ...rows, `  ${bar}  ${percent}  ${told}`]);
  }

  /** Takes the counts away. */
  clear(): void {
    if (this.#drawn.length > 0) this.#stream.write(`\u001b[${this.#drawn.length}A\u001b[0J`);
    this.#drawn = [];
  }

  #draw(lines: readonly string[]): void {
    for (const line of lines) this.#stream.write(`${line}\n`);
    this.#drawn = lines;
  }
}

function countsRow(queue: string, pending: string, processing: string): string {
  return `  ${queue.padEnd(16)}${pending.padStart(9)}${processing.padStart(12)}`;
}
