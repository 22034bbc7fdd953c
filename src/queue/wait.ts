/** Waiting until queues are complete: woken by the store, judged by one snapshot of all of them. */

import type { Backend } from "../backend/contract.ts";
import { type Clock, systemClock, type Timer } from "../core/clock.ts";
import { isQueueFSError, QueueFSError, quote } from "../core/errors.ts";
import { DEFAULT_WAIT_POLL_MS, WAIT_GAP_MS } from "../core/limits.ts";
import { isComplete, type Mark, type QueueSelection, type QueueStatus } from "../core/message.ts";
import { isWithin, type QueueName } from "../core/names.ts";
import { type OptionTable, readOptions } from "../core/options.ts";
import { checkSelection } from "../core/request.ts";
import { ClearWatch, type WaitedStatus } from "./clear-watch.ts";
import { type Stall, StallWatch } from "./stall.ts";

/** Options of {@link waitComplete}. */
export interface WaitOptions {
  /**
   * The wait ends with {@link WaitTimeoutError} after so many milliseconds by the monotonic clock. 0 judges once; absent or Infinity
   * waits for ever.
   */
  readonly timeoutMs?: number;
  /** Ends the wait, which then rejects with the signal's reason. */
  readonly signal?: AbortSignal;
  /** `now`: waits only for the messages enqueued before the call, and is not held up by later ones. Absent: until all queues are empty. */
  readonly upTo?: "now";
  /** Gets every snapshot that was judged, the last one included. What it throws ends the wait. */
  readonly onProgress?: (statuses: readonly QueueStatus[]) => void;
  /** Gets every failure to look that the wait rides out (store busy, store away). What it throws ends the wait. */
  readonly onError?: (error: QueueFSError) => void;
  /**
   * Told when nothing has moved in the queues for `stallMs`, and again after each further `stallMs`, with what holds them: consumers that
   * are busy or hang, nobody who takes, leases nobody recovered, or delays. What it throws ends the wait.
   */
  readonly onStall?: (stall: Stall) => void;
  /** How long nothing must move before `onStall` is told, in milliseconds; it is told by half of that later. 10 to 3,600,000, default 60,000. */
  readonly stallMs?: number;
  /** The clock of deadline and poll. Default: the host's. */
  readonly clock?: Clock;
  /** How often to look although nothing woke the wait, in milliseconds. 1 to 3,600,000, default 1,000. */
  readonly pollIntervalMs?: number;
}

/** What waiting needs of a backend. */
export type WaitedBackend = Pick<Backend, "statuses" | "mark" | "reached" | "subscribe" | "statistics" | "nextDue">;

/** A verdict and the snapshot it was judged by. */
export interface Completion {
  readonly complete: boolean;
  readonly statuses: readonly QueueStatus[];
}

/** The wait ended before the queues were complete. */
export class WaitTimeoutError extends QueueFSError {
  override readonly name = "WaitTimeoutError";
  /** The last snapshot judged; absent when the store gave none in time. */
  readonly statuses?: readonly QueueStatus[];
  /** Which queues were waited for. */
  readonly selection: QueueSelection;
  /** How long the wait was allowed to take, in milliseconds. */
  readonly timeoutMs: number;

  /**
   * @param statuses the last snapshot, if there is one
   * @param options `cause`: why the last look failed, if it did
   */
  constructor(
    selection: QueueSelection,
    timeoutMs: number,
    statuses: readonly QueueStatus[] | undefined,
    options?: { readonly cause?: unknown },
  ) {
    super(
      "timed-out",
      `${describeSelection(selection)} not complete after ${timeoutMs} ms: ${describeStatuses(statuses)}; allow more time, or see what holds the messages`,
      options,
    );
    if (statuses !== undefined) this.statuses = statuses;
    this.selection = selection;
    this.timeoutMs = timeoutMs;
  }
}

/** Options of {@link waitComplete}, as a table. */
export const WAIT_OPTIONS = {
  signal: { type: "object", meaning: "ends the wait" },
  upTo: { type: "choice", choices: ["now"], meaning: "wait only for what was enqueued before the call" },
  onProgress: { type: "object", meaning: "gets every snapshot" },
  onError: { type: "object", meaning: "gets every failure that is ridden out" },
  onStall: { type: "object", meaning: "told when nothing moves" },
  stallMs: {
    type: "integer",
    minimum: 10,
    maximum: 3_600_000,
    default: 60_000,
    meaning: "how long nothing must move before onStall is told, in milliseconds",
  },
  clock: { type: "object", meaning: "the clock of deadline and poll" },
  pollIntervalMs: {
    type: "integer",
    minimum: 1,
    maximum: 3_600_000,
    default: DEFAULT_WAIT_POLL_MS,
    meaning: "how often to look unwoken, in milliseconds",
  },
} as const satisfies OptionTable;

/** Judges one snapshot of the selected queues, and gives it with the verdict. @throws QueueFSError `queue-not-found` for a named queue that is missing */
export async function judgeComplete(backend: Pick<Backend, "statuses">, selection: QueueSelection): Promise<Completion> {
  const statuses = await backend.statuses(selection);
  return { complete: isComplete(statuses), statuses };
}

/** Whether nothing is unacknowledged in the selected queues, by one snapshot of all. @throws QueueFSError `queue-not-found` for a named queue that is missing */
export async function isAllComplete(backend: Pick<Backend, "statuses">, selection: QueueSelection): Promise<boolean> {
  return (await judgeComplete(backend, selection)).complete;
}

/**
 * Waits until the selected queues are complete, and resolves with the very snapshot that said so. A queue that was emptied by `clear` is
 * complete too; its status then says how many messages were cleared meanwhile (of the first 1,000 queues). It keeps the process alive.
 * A store that is busy or away is never taken for complete: the wait goes on, and `onError` is told.
 *
 * @param clock the clock unless the options have one; the host's unless given
 * @throws WaitTimeoutError when `timeoutMs` has passed
 * @throws QueueFSError `queue-not-found` as soon as a named queue is missing or removed, also when a new one has its name;
 *   `invalid-argument`; whatever the store answers that does not pass by itself
 * @throws the reason of `signal` when it is aborted
 */
export async function waitComplete(
  backend: WaitedBackend,
  selection: QueueSelection,
  options?: WaitOptions,
  clock: Clock = systemClock,
): Promise<readonly WaitedStatus[]> {
  const checked = checkWait(options, clock);
  checkSelection(selection);
  checked.signal?.throwIfAborted();
  return new Promise((resolve, reject) => new Wait(backend, selection, checked, resolve, reject).start());
}

/** Looks that need not keep their distance, after a time without any: a wait that hears little is quick to look. */
const LOOKS_AT_ONCE = 5;

type CheckedWait = WaitOptions & Required<Pick<WaitOptions, "timeoutMs" | "clock" | "pollIntervalMs" | "stallMs">>;

function checkWait(options: WaitOptions | undefined, clock: Clock): CheckedWait {
  const { timeoutMs = Number.POSITIVE_INFINITY, ...others } = options ?? {};
  if (typeof timeoutMs !== "number" || !(timeoutMs >= 0)) {
    const given = typeof timeoutMs === "number" ? String(timeoutMs) : quote(timeoutMs);
    throw new QueueFSError(
      "invalid-argument",
      `timeoutMs must be a number of milliseconds, 0 or more, got ${given}; leave it out to wait for ever`,
    );
  }
  const values = readOptions("waitComplete", WAIT_OPTIONS, typeof options === "object" && options !== null ? others : options);
  const { pollIntervalMs, stallMs } = values;
  return { clock, ...(values as WaitOptions), timeoutMs, pollIntervalMs, stallMs };
}

/**
 * One wait. A machine of events instead of a loop of races: a promise that lives as long as the wait, raced again and again, would
 * collect reactions without bound.
 */
class Wait {
  readonly #backend: WaitedBackend;
  readonly #selection: QueueSelection;
  readonly #options: CheckedWait;
  readonly #resolve: (statuses: readonly WaitedStatus[]) => void;
  readonly #reject: (reason: unknown) => void;
  readonly #deadlineMs: number;
  readonly #names: ReadonlySet<QueueName> | undefined;
  readonly #clears: ClearWatch;
  readonly #stalls: StallWatch | undefined;
  #settled = false;
  /** The snapshot that said "complete", while what was cleared is looked up. */
  #complete: readonly QueueStatus[] | undefined;
  #looking = false;
  #changed = false;
  /** Until when the looks so far are paid for, at one in {@link WAIT_GAP_MS}. */
  #paidMs = Number.NEGATIVE_INFINITY;
  #mark: Mark | undefined;
  #last: readonly QueueStatus[] | undefined;
  #failure: QueueFSError | undefined;
  #nextLook: Timer | undefined;
  #deadline: Timer | undefined;
  #unsubscribe: (() => void) | undefined;
  #keepAlive: ReturnType<typeof setInterval> | undefined;

  constructor(
    backend: WaitedBackend,
    selection: QueueSelection,
    options: CheckedWait,
    resolve: (statuses: readonly WaitedStatus[]) => void,
    reject: (reason: unknown) => void,
  ) {
    const { onStall } = options;
    this.#backend = backend;
    this.#clears = new ClearWatch(backend);
    if (onStall !== undefined) {
      const tell = (stall: Stall): void => this.#call(() => onStall(stall));
      this.#stalls = new StallWatch(backend, options.clock, options.stallMs, () => this.#incomplete(), tell);
    }
    this.#selection = selection;
    this.#options = options;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#deadlineMs = options.clock.monotonicMs() + options.timeoutMs;
    this.#names = "queues" in selection ? new Set(selection.queues) : undefined;
  }

  start(): void {
    // Timers and subscriptions of a backend let the process end; someone who awaits must not find it ended under the wait.
    this.#keepAlive = setInterval(() => {}, 2 ** 31 - 1);
    this.#options.signal?.addEventListener("abort", this.#onAbort);
    try {
      // Before the first look, so that no change falls between the two.
      this.#unsubscribe = this.#backend.subscribe((queues) => this.#onChange(queues));
    } catch (error) {
      this.#fail(error);
      return;
    }
    if (this.#options.timeoutMs > 0) this.#armDeadline();
    // In the same turn as the first look, so that no clear falls between the call and this.
    if (this.#names !== undefined && this.#options.timeoutMs > 0) this.#clears.watch(this.#names);
    this.#stalls?.start();
    void this.#look();
  }

  #incomplete(): readonly QueueName[] {
    return (this.#last ?? []).filter((status) => !isComplete([status])).map(({ queue }) => queue);
  }

  readonly #onAbort = (): void => this.#fail(this.#options.signal?.reason);

  #onChange(queues: ReadonlySet<QueueName> | undefined): void {
    if (this.#settled || this.#complete !== undefined || this.#changed || !this.#concerns(queues)) return;
    this.#changed = true;
    if (!this.#looking) this.#lookAfter(this.#gapMs());
  }

  #concerns(queues: ReadonlySet<QueueName> | undefined): boolean {
    if (queues === undefined) return true;
    const selection = this.#selection;
    for (const queue of queues) {
      if ("under" in selection ? selection.under === "" || isWithin(queue, selection.under) : this.#names?.has(queue)) return true;
    }
    return false;
  }

  #gapMs(): number {
    return Math.max(0, this.#paidMs - LOOKS_AT_ONCE * WAIT_GAP_MS - this.#options.clock.monotonicMs());
  }

  #lookAfter(delayMs: number): void {
    this.#nextLook?.cancel();
    this.#nextLook = undefined;
    if (delayMs <= 0) void this.#look();
    else this.#nextLook = this.#options.clock.setTimer(() => void this.#look(), delayMs);
  }

  async #look(): Promise<void> {
    if (this.#settled || this.#looking) return;
    this.#looking = true;
    this.#changed = false;
    this.#paidMs = Math.max(this.#paidMs, this.#options.clock.monotonicMs()) + WAIT_GAP_MS;
    let verdict: Completion | undefined;
    try {
      verdict = await this.#judge();
    } catch (error) {
      this.#failed(error);
    }
    if (verdict !== undefined) await this.#judged(verdict);
    this.#looking = false;
    if (this.#settled) return;
    if (this.#options.timeoutMs === 0) this.#timeOut();
    else this.#lookAfter(this.#changed ? this.#gapMs() : this.#options.pollIntervalMs);
  }

  async #judge(): Promise<Completion> {
    const { upTo, timeoutMs } = this.#options;
    if (upTo === undefined && (timeoutMs === 0 || "under" in this.#selection)) return judgeComplete(this.#backend, this.#selection);
    // A mark knows the queues themselves and not only their names: one that was removed and made anew between two looks is empty,
    // which does not mean that the work was done. A mark set late, after a store that was away, covers more messages, never fewer.
    this.#mark ??= await this.#backend.mark(this.#selection);
    const { reached, statuses } = await this.#backend.reached(this.#mark);
    return { complete: upTo === undefined ? isComplete(statuses) : reached, statuses };
  }

  async #judged({ complete, statuses }: Completion): Promise<void> {
    if (this.#settled) return;
    this.#last = statuses;
    this.#failure = undefined;
    this.#call(() => this.#options.onProgress?.(statuses));
    if (this.#options.timeoutMs > 0 && !this.#settled) this.#clears.watch(statuses.map(({ queue }) => queue));
    if (!complete || this.#settled) return;
    // The verdict stands; a deadline that passes meanwhile does not take it back.
    this.#complete = statuses;
    const waited = await this.#clears.compare(statuses);
    this.#settle(() => this.#resolve(waited));
  }

  #failed(error: unknown): void {
    if (this.#settled) return;
    // Looking changes nothing, so a look whose outcome is unknown may simply be repeated.
    if (!isQueueFSError(error) || !(error.retryable || error.code === "outcome-unknown")) {
      this.#fail(error);
      return;
    }
    this.#failure = error;
    this.#call(() => this.#options.onError?.(error));
  }

  #call(callback: () => void): void {
    try {
      callback();
    } catch (thrown) {
      this.#fail(thrown);
    }
  }

  #armDeadline(): void {
    const leftMs = this.#deadlineMs - this.#options.clock.monotonicMs();
    if (leftMs <= 0) this.#timeOut();
    // Timers may fire early when the delay is beyond what they can count: hence the look at the clock.
    else if (leftMs !== Number.POSITIVE_INFINITY) this.#deadline = this.#options.clock.setTimer(() => this.#armDeadline(), leftMs);
  }

  #timeOut(): void {
    const complete = this.#complete;
    if (complete !== undefined) {
      this.#settle(() => this.#resolve(complete));
      return;
    }
    const options = this.#failure === undefined ? undefined : { cause: this.#failure };
    this.#fail(new WaitTimeoutError(this.#selection, this.#options.timeoutMs, this.#last, options));
  }

  #fail(reason: unknown): void {
    this.#settle(() => this.#reject(reason));
  }

  #settle(tell: () => void): void {
    if (this.#settled) return;
    this.#settled = true;
    clearInterval(this.#keepAlive);
    this.#options.signal?.removeEventListener("abort", this.#onAbort);
    this.#nextLook?.cancel();
    this.#deadline?.cancel();
    this.#stalls?.stop();
    this.#unsubscribe?.();
    tell();
  }
}

function describeSelection(selection: QueueSelection): string {
  if ("under" in selection) return selection.under === "" ? "all queues" : `queues at and under ${quote(selection.under)}`;
  const [first, ...more] = selection.queues;
  if (first === undefined) return "no queues";
  return more.length === 0 ? `queue ${quote(first)}` : `queues ${quote(first)} and ${more.length} more`;
}

function describeStatuses(statuses: readonly QueueStatus[] | undefined): string {
  if (statuses === undefined) return "the store gave no status";
  const total = { pending: 0, processing: 0 };
  for (const status of statuses) {
    total.pending += status.pending;
    total.processing += status.processing;
  }
  return `${total.pending} pending, ${total.processing} processing`;
}
