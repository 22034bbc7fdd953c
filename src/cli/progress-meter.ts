/** How far a wait has come, how fast, and how long it may take: reckoned from the numbers of unacknowledged messages. */

/** What a progress bar shows. */
export interface Progress {
  /** Messages that left the queues since the wait began, as far as the snapshots tell. */
  readonly done: number;
  /** Those and the ones still there. */
  readonly total: number;
  /** Messages per second, over the last seconds. */
  readonly perSecond: number;
  /** Time left in milliseconds at that speed; absent while there is none. */
  readonly leftMs?: number;
}

/** The speed is that of so many milliseconds. */
const WINDOW_MS = 10_000;

/** Adds snapshots up. Time is the caller's: a monotonic clock in milliseconds. */
export class ProgressMeter {
  #last: number | undefined;
  #done = 0;
  #points: { readonly atMs: number; readonly done: number }[] = [];

  /** Takes the number of unacknowledged messages of one snapshot, and answers how things stand. */
  add(unacked: number, nowMs: number): Progress {
    // Messages may have come and gone between two snapshots; counting only what is seen to leave never goes back.
    if (this.#last !== undefined && unacked < this.#last) this.#done += this.#last - unacked;
    this.#last = unacked;
    const newest = this.#points.at(-1);
    // Snapshots may come a hundred times a second; a point every 100 ms is enough for a speed.
    if (newest === undefined || nowMs - newest.atMs >= 100) this.#points.push({ atMs: nowMs, done: this.#done });
    while (this.#points.length > 1 && nowMs - (this.#points[1] as { atMs: number }).atMs >= WINDOW_MS) this.#points.shift();
    const oldest = this.#points[0] as { atMs: number; done: number };
    const spentMs = nowMs - oldest.atMs;
    const perSecond = spentMs > 0 ? ((this.#done - oldest.done) * 1_000) / spentMs : 0;
    return {
      done: this.#done,
      total: this.#done + unacked,
      perSecond,
      ...(perSecond > 0 ? { leftMs: (unacked / perSecond) * 1_000 } : {}),
    };
  }
}
