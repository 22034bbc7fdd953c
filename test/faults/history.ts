/**
 * Judges what a reader saw against what others did at the same time, after the fact. All times are of the monotonic clock that the
 * processes of one host share, in nanoseconds. Properties C1, C2, C3 and S7: each snapshot must be explained by one instant of its call.
 *
 * An operation happened at an unknown instant between its begin and its end. So a message is certainly pending from the end of its enqueue
 * to the begin of its dequeue, and possibly from the begin of the one to the end of the other; likewise in processing. Counted over all
 * messages this gives bounds that change at the begin and end of operations only; a snapshot is right when, somewhere in its call, all of
 * its numbers lie within their bounds at once.
 */

/** One operation that was answered, as the process that made it saw it. */
export interface Operation {
  /** `return`: nack or release, pending again. `forward`: the enqueue in the step of an ack, which is an operation of its own. */
  readonly kind: "enqueue" | "dequeue" | "return" | "ack" | "forward";
  readonly queue: string;
  /** Names the message; unique in the history. */
  readonly message: string;
  readonly begin: number;
  readonly end: number;
}

/**
 * Snapshots, one after the other: begin, end, then pending and processing of each queue. In one array, since there are hundreds of
 * thousands.
 */
export type Snapshots = Float64Array;

/** A snapshot that no instant explains. */
export interface Violation {
  /** `false-completion`: all zero while something was unacked throughout. `no-instant`: the numbers never were so. */
  readonly kind: "false-completion" | "no-instant";
  readonly begin: number;
  readonly end: number;
  /** Pending and processing of each queue. */
  readonly seen: readonly number[];
  /** The bounds at the begin of the call, for the failure's message. */
  readonly bounds: string;
}

/** What a history tells of the snapshots taken during it. */
export interface Verdict {
  readonly snapshots: number;
  /** Snapshots in which all was zero: without some, the test has not looked at completion. */
  readonly complete: number;
  /** Snapshots taken wholly while something was certainly unacked: without some, the test could not have failed. */
  readonly duringWork: number;
  readonly violations: readonly Violation[];
}

/** Per queue: at least and at most pending, processing, and both together. */
const BOUNDS = 6;
const [PENDING, PROCESSING, UNACKED] = [0, 2, 4];

interface Change {
  readonly at: number;
  readonly bound: number;
  readonly by: 1 | -1;
}

/** The bounds of all numbers between any two changes. */
class Bounds {
  readonly queues: readonly string[];
  readonly #times: number[] = [];
  readonly #values: Int32Array[] = [];

  constructor(operations: readonly Operation[], queues: readonly string[]) {
    this.queues = queues;
    const changes = changesOf(operations, queues).sort((left, right) => left.at - right.at);
    const current = new Int32Array(queues.length * BOUNDS + 1);
    this.#add(Number.NEGATIVE_INFINITY, current);
    for (const [index, { at, bound, by }] of changes.entries()) {
      current[bound] = (current[bound] as number) + by;
      if (changes[index + 1]?.at !== at) this.#add(at, current);
    }
  }

  #add(at: number, values: Int32Array): void {
    this.#times.push(at);
    this.#values.push(values.slice());
  }

  /** Index of the last change not after `time`. */
  at(time: number): number {
    let low = 0;
    let high = this.#times.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#times[middle] as number) <= time) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** The bounds after change `index`. The last one is the least number of unfinished pieces of work over all queues. */
  values(index: number): Int32Array {
    return this.#values[index] as Int32Array;
  }
}

/** From when to when something is certain or possible; an empty span counts for nothing. */
function span(changes: Change[], bound: number, from: number, to: number): void {
  if (from < to) changes.push({ at: from, bound, by: 1 }, { at: to, bound, by: -1 });
}

/**
 * The operations on one message in the order in which they happened. Their begins do not tell it: a dequeue that waits for its turn may have
 * begun before the enqueue. But a message is enqueued first and acked last, each delivery ends after the one before it was given back, and
 * who gives a message back had its delivery before.
 */
function inOrder(life: readonly Operation[]): Operation[] {
  const of = (...kinds: readonly Operation["kind"][]): Operation[] => life.filter(({ kind }) => kinds.includes(kind));
  const dequeues = of("dequeue").sort((left, right) => left.end - right.end);
  const returns = of("return").sort((left, right) => left.begin - right.begin);
  const middle = dequeues.flatMap((dequeue, index) => [dequeue, ...returns.slice(index, index + 1)]);
  return [...of("enqueue", "forward"), ...middle, ...of("ack")];
}

function changesOf(operations: readonly Operation[], queues: readonly string[]): Change[] {
  const lives = new Map<string, Operation[]>();
  for (const operation of operations) {
    const life = lives.get(operation.message);
    if (life === undefined) lives.set(operation.message, [operation]);
    else life.push(operation);
  }
  const changes: Change[] = [];
  for (const unordered of lives.values()) {
    const life = inOrder(unordered);
    const first = life[0] as Operation;
    const last = life.at(-1) as Operation;
    const isRemoved = last.kind === "ack";
    const base = queues.indexOf(first.queue) * BOUNDS;
    for (const [index, operation] of life.entries()) {
      if (operation.kind === "ack") continue;
      const next = life[index + 1];
      const bound = base + (operation.kind === "dequeue" ? PROCESSING : PENDING);
      span(changes, bound, operation.end, next?.begin ?? Number.POSITIVE_INFINITY);
      span(changes, bound + 1, operation.begin, next?.end ?? Number.POSITIVE_INFINITY);
    }
    const sureFrom = Math.min(...life.map(({ end }) => end));
    span(changes, base + UNACKED, sureFrom, isRemoved ? last.begin : Number.POSITIVE_INFINITY);
    span(changes, base + UNACKED + 1, first.begin, isRemoved ? last.end : Number.POSITIVE_INFINITY);
    // A forwarded message takes over from its source in one step: the work is there throughout, though it cannot be said in which queue.
    const workFrom = first.kind === "forward" ? first.begin : sureFrom;
    span(changes, queues.length * BOUNDS, workFrom, isRemoved ? last.begin : Number.POSITIVE_INFINITY);
  }
  return changes;
}

function explains(bounds: Int32Array, numbers: Float64Array): boolean {
  let total = 0;
  for (let queue = 0; queue * 2 < numbers.length; queue += 1) {
    const pending = numbers[queue * 2] as number;
    const processing = numbers[queue * 2 + 1] as number;
    total += pending + processing;
    for (const [bound, value] of [
      [PENDING, pending],
      [PROCESSING, processing],
      [UNACKED, pending + processing],
    ] as const) {
      const at = queue * BOUNDS + bound;
      if (value < (bounds[at] as number) || value > (bounds[at + 1] as number)) return false;
    }
  }
  return total >= (bounds.at(-1) as number);
}

/** Judges every snapshot. Messages of other queues than these must not be in the history. */
export function judge(operations: readonly Operation[], snapshots: Snapshots, queues: readonly string[]): Verdict {
  const bounds = new Bounds(operations, queues);
  const width = 2 + queues.length * 2;
  const violations: Violation[] = [];
  let complete = 0;
  let duringWork = 0;
  for (let row = 0; row < snapshots.length; row += width) {
    const begin = snapshots[row] as number;
    const end = snapshots[row + 1] as number;
    const numbers = snapshots.subarray(row + 2, row + width);
    const first = bounds.at(begin);
    const last = bounds.at(end);
    let isExplained = false;
    let isWork = true;
    for (let index = first; index <= last; index += 1) {
      const values = bounds.values(index);
      isExplained ||= explains(values, numbers);
      isWork &&= (values.at(-1) as number) > 0;
    }
    const isZero = numbers.every((number) => number === 0);
    if (isZero) complete += 1;
    if (isWork) duringWork += 1;
    if (!isExplained) {
      const kind = isZero && isWork ? "false-completion" : "no-instant";
      violations.push({ kind, begin, end, seen: [...numbers], bounds: bounds.values(first).join(" ") });
    }
  }
  return { snapshots: snapshots.length / width, complete, duringWork, violations };
}

/** The first few violations as text, for the message of a failed test. */
export function describeViolations({ violations }: Verdict): string {
  return violations
    .slice(0, 5)
    .map((one) => `${one.kind} in ${one.end - one.begin} ns at ${one.begin}: saw ${one.seen.join(" ")}, bounds ${one.bounds}`)
    .join("\n");
}
