import { setImmediate as turn } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Backend } from "../../../src/backend/contract.ts";
import { openMemory } from "../../../src/backend/memory/index.ts";
import { parseQueueName } from "../../../src/core/names.ts";
import { LongPolls } from "../../../src/http/long-polls.ts";
import { WaitingRoom } from "../../../src/http/waiting-room.ts";
import { ManualClock } from "../../../src/testing/index.ts";

const Q = parseQueueName("q");
/** Of a client that stays. */
const stays = (): AbortSignal => new AbortController().signal;
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
let clock: ManualClock;
let backend: Backend;
/** Dequeues that the store was asked for. */
let looks = 0;
let room: WaitingRoom;

beforeEach(async () => {
  clock = new ManualClock();
  backend = await openMemory({ clock, sweepIntervalMs: 3_600_000 });
  await backend.createQueue(Q);
  looks = 0;
  const counted = Object.create(backend) as Backend;
  counted.dequeue = (...given) => {
    looks += 1;
    return backend.dequeue(...given);
  };
  for (const name of ["nextDue", "release", "subscribe"] as const) counted[name] = backend[name].bind(backend) as never;
  room = new WaitingRoom(counted, clock);
});
afterEach(async () => {
  room.dismiss();
  await backend.close();
});

async function settle(): Promise<void> {
  for (let round = 0; round < 20; round += 1) await turn();
}

describe("a waiting room", () => {
  it("gives messages to those who wait in the order they came, one look at a time however many wait", async () => {
    const got: string[] = [];
    const waits = Array.from({ length: 500 }, (_, index) =>
      room
        .take(Q, { owner: "receipt" }, 60_000, stays())
        .then(([message]) => got.push(`${index}:${message === undefined ? "" : Buffer.from(message.data)}`)),
    );
    await settle();
    // Each looks once when it comes, until one waits; then the line looks for all of them.
    const before = looks;
    await backend.enqueue(Q, [{ data: bytes("a") }, { data: bytes("b") }]);
    await settle();
    expect(got).toEqual(["0:a", "1:b"]);
    expect(looks - before).toBeLessThan(10);
    room.dismiss();
    await Promise.all(waits);
    expect(got).toHaveLength(500);
  });

  it("lets each go with nothing when its time is over, and asks for nothing when nobody is left", async () => {
    const one = room.take(Q, {}, 1_000, stays());
    const other = room.take(Q, {}, 2_000, stays());
    await settle();
    await clock.advanceAndSettle(1_000);
    expect(await one).toEqual([]);
    await clock.advanceAndSettle(1_000);
    expect(await other).toEqual([]);
    await settle();
    const before = looks;
    await backend.enqueue(Q, [{ data: bytes("a") }]);
    await settle();
    expect(looks).toBe(before);
    expect(await room.take(Q, {}, 0, stays())).toHaveLength(1);
  });

  it("takes nothing for one who has gone away, and serves the next", async () => {
    const gone = new AbortController();
    const first = room.take(Q, { owner: "receipt" }, 60_000, gone.signal);
    const second = room.take(Q, { owner: "receipt" }, 60_000, stays());
    await settle();
    gone.abort(new Error("gone"));
    await expect(first).rejects.toThrow("gone");
    await backend.enqueue(Q, [{ data: bytes("a") }]);
    expect(await second).toHaveLength(1);
    expect(await backend.status(Q)).toEqual({ pending: 0, processing: 1 });
  });

  it("gives back what was taken for one who went away meanwhile, unless that one may ask again", async () => {
    for (const requestId of [undefined, "again"]) {
      const gone = new AbortController();
      const wait = room.take(Q, { owner: "receipt", ...(requestId === undefined ? {} : { requestId }) }, 60_000, gone.signal);
      await settle();
      const original = backend.dequeue.bind(backend);
      backend.dequeue = async (...given) => {
        const taken = await original(...given);
        if (taken.length > 0) gone.abort(new Error("gone"));
        return taken;
      };
      await backend.enqueue(Q, [{ data: bytes("a") }]);
      await expect(wait).rejects.toThrow("gone");
      await settle();
      backend.dequeue = original;
      expect(await backend.status(Q)).toEqual(requestId === undefined ? { pending: 1, processing: 0 } : { pending: 0, processing: 1 });
      if (requestId === undefined) await backend.clear(Q);
    }
  });

  it("wakes when a delay is over and when a lease ends", async () => {
    await backend.enqueue(Q, [{ data: bytes("late"), delayMs: 500 }]);
    const wait = room.take(Q, { leaseMs: 100, owner: "receipt" }, 60_000, stays());
    await settle();
    await clock.advanceAndSettle(500);
    expect(await wait).toHaveLength(1);
    const again = room.take(Q, { owner: "receipt" }, 60_000, stays());
    await settle();
    await clock.advanceAndSettle(150);
    expect(await again).toMatchObject([{ deliveryCount: 2 }]);
  });

  it("tells everybody who waits that the queue is gone", async () => {
    const waits = [room.take(Q, {}, 60_000, stays()), room.take(Q, {}, 60_000, stays())];
    await settle();
    await backend.removeQueue(Q);
    for (const wait of waits) await expect(wait).rejects.toMatchObject({ code: "queue-not-found" });
  });

  it("sends everybody away when it is closed, and lets nobody wait then", async () => {
    const wait = room.take(Q, {}, 60_000, stays());
    await settle();
    room.dismiss();
    expect(await wait).toEqual([]);
    expect(await room.take(Q, {}, 60_000, stays())).toEqual([]);
  });
});

describe("long polls", () => {
  it("are bounded in number, and end when the server stops", async () => {
    const polls = new LongPolls(backend, 1, clock);
    let ended = "";
    const first = polls.run(
      1_000,
      stays(),
      (_, signal) =>
        new Promise<void>((resolve) =>
          signal.addEventListener("abort", () => {
            ended = "drained";
            resolve();
          }),
        ),
    );
    await expect(polls.run(1_000, stays(), async () => {})).rejects.toMatchObject({ code: "overloaded" });
    expect(await polls.run(0, stays(), async (ms) => ms)).toBe(0);
    polls.end();
    await first;
    expect([ended, polls.count]).toEqual(["drained", 0]);
    expect(await polls.run(1_000, stays(), async (ms) => ms)).toBe(0);
  });

  it("share looks that begin after both have asked, and no other", async () => {
    const polls = new LongPolls(backend, 10, clock);
    const before = polls.looks.statuses({ queues: [Q] });
    const enqueued = backend.enqueue(Q, [{ data: bytes("a") }]);
    const after = [polls.looks.statuses({ queues: [Q] }), polls.looks.statuses({ queues: [Q] })];
    await enqueued;
    expect(await before).toMatchObject([{ pending: 0 }]);
    expect((await Promise.all(after)).map(([status]) => status?.pending)).toEqual([1, 1]);
    expect(after[0]).toBe(after[1]);
  });
});
