/** One line on a terminal that says how the work goes, out of the way of what programs write; and the account at the end. */

import type { Session } from "../session.ts";
import type { Outcome } from "./group-worker.ts";

/** How often the line is drawn at most, in milliseconds. */
const DRAW_MS = 100;
const LINE_END = 10;
const ERASE = "\r\u001b[K";

/** Counts what becomes of messages, and passes on what programs write. */
export class ProgressLine {
  readonly #session: Session;
  readonly #isDrawn: boolean;
  readonly #counts: Record<Outcome, number> = { acked: 0, nacked: 0, dead: 0, released: 0, cancelled: 0, lost: 0 };
  #running = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isShown = false;
  /** Whether the terminal's cursor is where a line begins: what a program has begun to write there is not to be erased. */
  #isAtLineStart = true;
  #isOver = false;

  constructor(session: Session) {
    this.#session = session;
    this.#isDrawn = session.errors.isTTY === true && !session.json && session.environment.TERM !== "dumb";
    this.#draw();
  }

  /** Counts a program that begins (1) or ends (-1). */
  countRunning(change: 1 | -1): void {
    this.#running += change;
    this.#draw();
  }

  /** Programs that run now. */
  get running(): number {
    return this.#running;
  }

  /** Counts what became of messages. */
  count(outcomes: readonly Outcome[]): void {
    for (const outcome of outcomes) this.#counts[outcome] += 1;
    this.#draw();
  }

  /**
   * Passes on what a program wrote, as it is: people run programs of theirs here, whose colours are theirs. Resolves when it is handed over.
   *
   * @throws OutputClosedError, OutputFailedError for standard output
   */
  async pass(stream: "stdout" | "stderr", bytes: Uint8Array): Promise<void> {
    const { output, errors } = this.#session;
    if (stream === "stdout" ? output.isTerminal : errors.isTTY === true) {
      this.#clear();
      this.#isAtLineStart = bytes.at(-1) === LINE_END;
    }
    if (stream === "stdout") await output.raw(bytes);
    // Nobody who reads standard error is no reason to leave work undone.
    else await new Promise<void>((resolve) => errors.write(bytes, () => resolve()));
    this.#draw();
  }

  /** Says something, on a line of its own. */
  note(text: string): void {
    this.#clear();
    if (!this.#isAtLineStart) this.#session.errors.write("\n");
    this.#isAtLineStart = true;
    this.#session.note(text);
    this.#draw();
  }

  #draw(): void {
    if (!this.#isDrawn || this.#isOver) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      if (this.#isOver || !this.#isAtLineStart) return;
      this.#isShown = true;
      const columns = this.#session.errors.columns || 80;
      this.#session.errors.write(`${ERASE}${`${this.#text()}, ${this.#running} running`.slice(0, columns - 1)}`);
    }, DRAW_MS);
  }

  #clear(): void {
    if (!this.#isShown) return;
    this.#isShown = false;
    this.#session.errors.write(ERASE);
  }

  #text(): string {
    const counts = Object.entries(this.#counts).filter(([outcome, count]) => outcome === "acked" || count > 0);
    return counts.map(([outcome, count]) => `${count} ${outcome}`).join(", ");
  }

  /** Takes the line away and says what became of all messages. Standard output is the programs', so that this is said on standard error. */
  end(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    if (this.#session.json) this.#session.errors.write(`${JSON.stringify(this.#counts)}\n`);
    else this.note(this.#text());
  }
}
