/** One line on a terminal that says how the work goes, out of the way of what programs write. */

import type { RunOutcome } from "../../queue/index.ts";
import type { Session } from "../session.ts";

/** How often the line is drawn at most, in milliseconds. */
const DRAW_MS = 100;

/** Counts ends, and draws them where people look. */
export class ProgressLine {
  readonly #session: Session;
  readonly #isDrawn: boolean;
  readonly #counts: Record<RunOutcome, number> = { done: 0, retry: 0, dead: 0, lost: 0 };
  #running = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #shown = false;

  constructor(session: Session) {
    this.#session = session;
    this.#isDrawn = session.errors.isTTY === true && !session.json;
  }

  /** Counts a program that begins (1) or ends (-1). */
  countRunning(change: 1 | -1): void {
    this.#running += change;
    this.#draw();
  }

  /** Counts how a message ended. */
  count(outcome: RunOutcome): void {
    this.#counts[outcome] += 1;
    this.#draw();
  }

  /** Writes what a program wrote, above the line. */
  write(stream: NodeJS.WritableStream, chunk: Uint8Array): void {
    this.#clear();
    stream.write(chunk);
    this.#draw();
  }

  #draw(): void {
    if (!this.#isDrawn || this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#shown = true;
      this.#session.errors.write(`\r\u001b[K${this.#text()}`);
    }, DRAW_MS);
  }

  #clear(): void {
    if (!this.#shown) return;
    this.#shown = false;
    this.#session.errors.write("\r\u001b[K");
  }

  #text(): string {
    const { done, retry, dead, lost } = this.#counts;
    const parts = [`${done} done`, `${this.#running} running`];
    if (retry > 0) parts.push(`${retry} to be tried again`);
    if (dead > 0) parts.push(`${dead} given up`);
    if (lost > 0) parts.push(`${lost} lost`);
    return parts.join(", ");
  }

  /** Takes the line away and says the result. */
  async end(): Promise<void> {
    clearTimeout(this.#timer);
    this.#clear();
    if (this.#session.json) await this.#session.output.line(JSON.stringify(this.#counts));
    else this.#session.note(this.#text().replace(", 0 running", ""));
  }
}
