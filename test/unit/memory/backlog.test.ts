import fc from "fast-check";
import { expect, it } from "vitest";
import { Backlog } from "../../../src/backend/memory/backlog.ts";
import { DELAYED, DUE, Entry, NO_BYTES } from "../../../src/backend/memory/entry.ts";
import { OrderedLog } from "../../../src/backend/memory/ordered-log.ts";
import { Ownerships } from "../../../src/backend/memory/ownership.ts";
import { FULL_SEGMENT_BYTES, LARGEST_PACKED_BYTES, SegmentPool } from "../../../src/backend/memory/segment.ts";

/** Bytes that only the message of this place has. */
function payload(place: number, length: number): Uint8Array {
  const data = new Uint8Array(length);
  for (let index = 0; index < length; index += 1) data[index] = place * 31 + index * 7;
  return data;
}

function read(entry: Entry): Uint8Array {
  return entry.bytes.slice(entry.start, entry.start + entry.length);
}

function makeBacklog(pool = new SegmentPool()): { backlog: Backlog; passed: OrderedLog<Entry> } {
  const passed = new OrderedLog<Entry>();
  return { backlog: new Backlog(pool, passed, new Ownerships()), passed };
}

const lengths = fc.oneof(
  { weight: 5, arbitrary: fc.nat(300) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(0, 1, 7, 8, 9, LARGEST_PACKED_BYTES - 1, LARGEST_PACKED_BYTES, LARGEST_PACKED_BYTES + 1, 20_000),
  },
);

const steps = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant("append" as const),
        count: fc.integer({ min: 1, max: 60 }),
        length: lengths,
        kind: fc.constantFrom("plain" as const, "plain" as const, "plain" as const, "aside" as const, "delayed" as const),
      }),
    },
    { weight: 4, arbitrary: fc.record({ do: fc.constant("take" as const), count: fc.integer({ min: 1, max: 60 }) }) },
    { weight: 3, arbitrary: fc.record({ do: fc.constant("let go" as const), count: fc.integer({ min: 1, max: 80 }), stay: fc.nat(10) }) },
  ),
  { maxLength: 60 },
);

/** A backlog beside a list that does the same. */
class Line {
  readonly backlog: Backlog;
  readonly #passed: OrderedLog<Entry>;
  readonly #lengths: number[] = [];
  #waiting: number[] = [];
  #held: Entry[] = [];

  constructor(pool: SegmentPool) {
    const { backlog, passed } = makeBacklog(pool);
    this.backlog = backlog;
    this.#passed = passed;
  }

  append(length: number, kind: "plain" | "aside" | "delayed"): void {
    const place = this.#lengths.push(length);
    const data = payload(place, length);
    if (kind !== "delayed") this.#waiting.push(place);
    if (kind === "plain") {
      this.backlog.append(place, data, 5, undefined);
    } else {
      const entry = new Entry(place, undefined, 5, NO_BYTES, 0, length, undefined);
      if (kind === "delayed") entry.state = DELAYED;
      this.backlog.appendAside(entry, data);
    }
    data.fill(0);
  }

  take(): void {
    expect(this.backlog.settle()).toBe(this.#waiting[0] ?? Number.POSITIVE_INFINITY);
    if (this.#waiting.length === 0) return;
    const entry = this.backlog.take();
    expect(entry.place).toBe(this.#waiting.shift());
    this.#check(entry);
    this.#held.push(entry);
  }

  letGo(atMost: number, stay: number): void {
    for (let count = 0; count < atMost && this.#held.length > stay; count += 1) {
      const entry = this.#held.splice((count * 7) % this.#held.length, 1)[0] as Entry;
      this.#check(entry);
      this.#passed.remove(entry);
      this.backlog.letGo(entry);
    }
  }

  checkAll(): void {
    for (const entry of this.#held) this.#check(entry);
    const seen: number[] = [];
    this.backlog.visit(0, (entry) => {
      this.#check(entry);
      if (entry.state !== DELAYED) seen.push(entry.place);
      return true;
    });
    expect(seen).toEqual(this.#waiting);
    expect(this.backlog.waiting).toBe(seen.length);
  }

  #check(entry: Entry): void {
    expect(Buffer.compare(read(entry), payload(entry.place, this.#lengths[entry.place - 1] as number))).toBe(0);
  }
}

it("gives messages in the order of their enqueue, with their bytes, whatever happens to the segments that hold them", () => {
  fc.assert(
    fc.property(steps, (list) => {
      // Two lines of one pool: a segment that one gives back too early, the other overwrites.
      const pool = new SegmentPool();
      const lines = [new Line(pool), new Line(pool)];
      for (const [index, step] of list.entries()) {
        const line = lines[index % 2] as Line;
        if (step.do === "let go") line.letGo(step.count, step.stay);
        for (let count = 0; count < step.count; count += 1) {
          if (step.do === "append") line.append(step.length, step.kind);
          else if (step.do === "take") line.take();
        }
      }
      for (const line of lines) line.checkAll();
    }),
  );
});

it("finds the message of any place, and passes delayed ones that stand before the first that waits", () => {
  const { backlog, passed } = makeBacklog();
  for (let place = 1; place <= 2_000; place += 1) {
    const entry = new Entry(place, undefined, 5, NO_BYTES, 0, 100, undefined);
    entry.state = place % 3 === 0 ? 0 : place % 3 === 1 ? DELAYED : DUE;
    backlog.appendAside(entry, payload(place, 100));
  }
  const seen: number[] = [];
  backlog.visit(1_500, (entry) => {
    seen.push(entry.place);
    return seen.length < 3;
  });
  expect(seen).toEqual([1_500, 1_501, 1_502]);
  expect(backlog.firstPlace()).toBe(1);
  expect(backlog.settle()).toBe(3);
  expect([passed.length, passed.first()?.place]).toEqual([2, 1]);
  expect(backlog.take().place).toBe(3);
  expect(backlog.waiting).toBe(665);
});

it("does not let one message that stays keep the memory of its neighbours", () => {
  const { backlog, passed } = makeBacklog();
  const kept: Entry[] = [];
  for (let place = 1; place <= 20_000; place += 1) backlog.append(place, payload(place, 256), 5, undefined);
  for (let place = 1; place <= 20_000; place += 1) {
    backlog.settle();
    const entry = backlog.take();
    if (place % 500 === 0) {
      kept.push(entry);
    } else {
      passed.remove(entry);
      backlog.letGo(entry);
    }
  }
  expect(kept.map((entry) => Buffer.compare(read(entry), payload(entry.place, 256)))).toEqual(kept.map(() => 0));
  const blocks = new Set(kept.map((entry) => entry.bytes.buffer));
  const taken = [...blocks].reduce((sum, block) => sum + block.byteLength, 0);
  expect(taken).toBeLessThanOrEqual(5 * FULL_SEGMENT_BYTES);
});
