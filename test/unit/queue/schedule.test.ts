/** Schedules: which instants, what steps of the wall clock do to them, and how they end. Time is moved by hand. */

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Backend } from "../../../src/backend/contract.ts";
import { openMemory } from "../../../src/backend/memory/index.ts";
import { QueueFSError } from "../../../src/core/errors.ts";
import { NamedQueue, type RepeatOptions, type Repetition, type Rhythm, repeat, textCodec } from "../../../src/queue/index.ts";
import { instantsOf } from "../../../src/queue/schedule.ts";
import { ManualClock, SeededRandom } from "../../../src/testing/index.ts";
import { interpose } from "../../support/interpose.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

let clock: ManualClock;
let backend: Backend;
const running: Repetition[] = [];

async function openAt(instant: string): Promise<void> {
  clock = new ManualClock({ wallMs: Date.parse(instant) });
  backend = await openMemory({ clock });
}

beforeEach(() => openAt("2024-05-01T12:00:30Z"));

afterEach(async () => {
  await Promise.all(running.splice(0).map((repetition) => repetition.stop()));
  await backend.close();
  expect(clock.timerCount).toBe(0);
});

/** Keeps a schedule; errors are collected unless the options have their own listener. */
async function keep(rhythm: Rhythm, options: RepeatOptions = {}, on = backend): Promise<{ repetition: Repetition; errors: unknown[] }> {
  const errors: unknown[] = [];
  const queue = new NamedQueue<string>(on, "ticks", { codec: textCodec, clock });
  const repetition = await repeat(queue, "tick", rhythm, (instant) => instant.toISOString(), {
    clock,
    random: new SeededRandom(1),
    onError: (error) => void errors.push(error),
    ...options,
  });
  running.push(repetition);
  return { repetition, errors };
}

/** The instants that have a message, in the order they were stored, without ".000". */
async function instants(): Promise<string[]> {
  const queue = new NamedQueue<string>(backend, "ticks", { codec: textCodec, clock });
  const { items } = await queue.messages({ limit: 1_000 });
  for (const { id, data } of items) expect(id).toBe(`tick@${new TextDecoder().decode(data)}`);
  return items.map(({ data }) => new TextDecoder().decode(data).replace(".000Z", "Z"));
}

describe("instants", () => {
  test("every so many milliseconds, at multiples of them, whenever it was begun", async () => {
    await keep({ everyMs: MINUTE_MS });
    await clock.advanceAndSettle(3 * MINUTE_MS);
    expect(await instants()).toEqual(["2024-05-01T12:01:00Z", "2024-05-01T12:02:00Z", "2024-05-01T12:03:00Z"]);
  });

  // Berlin sets its clocks forward on 31 March 2024 at 01:00 UTC, and back on 27 October at 01:00 UTC.
  test.each([
    [
      "over the begin of daylight saving",
      "0 3 * * *",
      "2024-03-29T12:00:00Z",
      ["2024-03-30T02:00", "2024-03-31T01:00", "2024-04-01T01:00"],
    ],
    ["over its end", "0 3 * * *", "2024-10-26T00:00:00Z", ["2024-10-26T01:00", "2024-10-27T02:00", "2024-10-28T02:00"]],
    ["a time left out comes once, when the clocks jump", "30 2 * * *", "2024-03-30T12:00:00Z", ["2024-03-31T01:00", "2024-04-01T00:30"]],
    ["a time that is repeated comes once", "30 2 * * *", "2024-10-26T12:00:00Z", ["2024-10-27T00:30", "2024-10-28T01:30"]],
    ["two times of a repeated hour come once each", "0,30 2 * * *", "2024-10-26T23:59:00Z", ["2024-10-27T00:00", "2024-10-27T00:30"]],
    [
      "every half hour goes on evenly",
      "*/30 * * * *",
      "2024-10-27T00:15:00Z",
      ["2024-10-27T00:30", "2024-10-27T01:00", "2024-10-27T01:30"],
    ],
  ])("cron in a time zone: %s", async (_what, cron, from, wanted) => {
    const next = await instantsOf({ cron, timeZone: "Europe/Berlin" });
    const found: string[] = [];
    for (let last = Date.parse(from); found.length < wanted.length; ) {
      last = next(last) ?? Number.NaN;
      found.push(new Date(last).toISOString().slice(0, 16));
    }
    expect(found).toEqual(wanted);
  });

  test("cron without a time zone means UTC, and six fields have seconds", async () => {
    await keep({ cron: "*/20 * * * * *" });
    await clock.advanceAndSettle(MINUTE_MS);
    expect(await instants()).toEqual(["2024-05-01T12:00:40Z", "2024-05-01T12:01:00Z", "2024-05-01T12:01:20Z"]);
  });

  test("a pattern that has come to its end ends the schedule", async () => {
    const { repetition } = await keep({ cron: "2024-05-01T12:02:00" });
    await clock.advanceAndSettle(5 * MINUTE_MS);
    await repetition.ended;
    expect(await instants()).toEqual(["2024-05-01T12:02:00Z"]);
  });

  test("several schedules of one name store one message per instant, whatever their values", async () => {
    await keep({ everyMs: MINUTE_MS });
    await keep({ everyMs: MINUTE_MS });
    const queue = new NamedQueue<string>(backend, "ticks", { codec: textCodec, clock });
    running.push(await repeat(queue, "tick", { everyMs: MINUTE_MS }, () => "another value", { clock }));
    await clock.advanceAndSettle(3 * MINUTE_MS);
    expect(await backend.statistics(queue.name)).toMatchObject({ enqueued: 3, pending: 3 });
  });

  test.each<[Rhythm, string]>([
    [{ everyMs: 99 }, "tick"],
    [{ everyMs: 1.5 }, "tick"],
    [{ cron: "nonsense" }, "tick"],
    [{ cron: "0 0 30 2 *" }, "tick"],
    [{ cron: "* * * * *", timeZone: "Mars/Olympus" }, "tick"],
    [{ everyMs: 1_000 }, "\0"],
    [{ everyMs: 1_000 }, "x".repeat(250)],
  ])("%j named %j is refused", async (rhythm, name) => {
    const queue = new NamedQueue<string>(backend, "ticks", { codec: textCodec, clock });
    const refused = expect.stringMatching(/^invalid-(argument|name)$/) as string;
    await expect(repeat(queue, name, rhythm, () => "x", { clock })).rejects.toMatchObject({ code: refused });
    await expect(keep({ everyMs: 1_000 }, { lateMs: -1 })).rejects.toMatchObject({ code: "invalid-argument" });
  });
});

describe("steps of the wall clock", () => {
  test("a small step back gives no instant a second message, and goes on where it was", async () => {
    await keep({ everyMs: MINUTE_MS });
    await clock.advanceAndSettle(2 * MINUTE_MS);
    clock.stepWall(-HOUR_MS);
    await clock.advanceAndSettle(HOUR_MS + 30_000);
    expect(await instants()).toEqual(["2024-05-01T12:01:00Z", "2024-05-01T12:02:00Z", "2024-05-01T12:03:00Z"]);
    expect((await backend.statistics("ticks" as never)).enqueued).toBe(3);
  });

  test("a clock that was years ahead and is set right begins anew", async () => {
    await openAt("2030-01-01T00:00:30Z");
    await keep({ everyMs: MINUTE_MS });
    await clock.advanceAndSettle(MINUTE_MS);
    clock.stepWall(Date.parse("2024-05-01T12:00:30Z") - clock.wallMs());
    await clock.advanceAndSettle(2.5 * MINUTE_MS);
    expect(await instants()).toEqual(["2030-01-01T00:01:00Z", "2024-05-01T12:02:00Z", "2024-05-01T12:03:00Z"]);
  });

  test("a step forward over instants, or a sleep, makes up for the last of them and leaves out the others", async () => {
    const { errors } = await keep({ everyMs: MINUTE_MS });
    clock.stepWall(5 * MINUTE_MS + 10_000);
    await clock.advanceAndSettle(MINUTE_MS);
    expect(await instants()).toEqual(["2024-05-01T12:06:00Z"]);
    await clock.advanceAndSettle(MINUTE_MS);
    expect(await instants()).toEqual(["2024-05-01T12:06:00Z", "2024-05-01T12:07:00Z"]);
    expect(errors).toEqual([]);
  });

  test("an instant that is over for longer than may be is left out, and that is told: a process that slept must not repeat what others did", async () => {
    const { errors } = await keep({ cron: "1 12,16 * * *" });
    clock.stepWall(HOUR_MS);
    await clock.advanceAndSettle(3.5 * HOUR_MS);
    expect(await instants()).toEqual(["2024-05-01T16:01:00Z"]);
    expect(errors).toMatchObject([{ code: "timed-out" }]);
  });

  test("after a long sleep the last instant of a quick rhythm is found at once", async () => {
    const { errors } = await keep({ cron: "* * * * * *" });
    clock.stepWall(365 * 24 * HOUR_MS);
    await clock.advanceAndSettle(1_500);
    expect((await instants()).length).toBe(1);
    expect(errors).toEqual([]);
  });

  test("how late may be chosen", async () => {
    const { errors } = await keep({ cron: "1 12 * * *" }, { lateMs: 2 * HOUR_MS });
    clock.stepWall(HOUR_MS);
    await clock.advanceAndSettle(MINUTE_MS);
    expect(await instants()).toEqual(["2024-05-01T12:01:00Z"]);
    expect(errors).toEqual([]);
  });
});

describe("ends and errors", () => {
  const away = (failures: () => boolean): Backend =>
    interpose(backend, {
      enqueue: (queue, messages) =>
        failures() ? Promise.reject(new QueueFSError("store-unreachable", "away")) : backend.enqueue(queue, messages),
    });

  test("a store that is away is tried again, with the same id, and told of", async () => {
    let failures = 3;
    const { errors } = await keep(
      { everyMs: MINUTE_MS },
      {},
      away(() => failures-- > 0),
    );
    await clock.advanceAndSettle(MINUTE_MS);
    expect(await instants()).toEqual(["2024-05-01T12:01:00Z"]);
    expect(errors).toMatchObject([{ code: "store-unreachable" }, { code: "store-unreachable" }, { code: "store-unreachable" }]);
  });

  test("a store that is away over the next instant: what is over is left out, and the first one it can store is the next", async () => {
    let isAway = true;
    const { errors } = await keep(
      { everyMs: MINUTE_MS },
      {},
      away(() => isAway),
    );
    await clock.advanceAndSettle(2 * MINUTE_MS + 15_000);
    isAway = false;
    await clock.advanceAndSettle(MINUTE_MS);
    expect(await instants()).toEqual(["2024-05-01T12:02:00Z", "2024-05-01T12:03:00Z"]);
    expect(errors.filter((error) => (error as QueueFSError).code === "timed-out")).toHaveLength(1);
  });

  test("a value that throws is told of and tried again", async () => {
    const queue = new NamedQueue<string>(backend, "ticks", { codec: textCodec, clock });
    const errors: unknown[] = [];
    let throws = 2;
    const value = (instant: Date): string => {
      throws -= 1;
      if (throws >= 0) throw new Error("no value yet");
      return instant.toISOString();
    };
    running.push(await repeat(queue, "tick", { everyMs: MINUTE_MS }, value, { clock, onError: (error) => void errors.push(error) }));
    await clock.advanceAndSettle(MINUTE_MS);
    expect(await instants()).toEqual(["2024-05-01T12:01:00Z"]);
    expect(errors).toHaveLength(2);
  });

  test("a closed store ends it, and that is told", async () => {
    const { repetition, errors } = await keep({ everyMs: MINUTE_MS });
    await clock.advanceAndSettle(MINUTE_MS);
    await backend.close();
    await clock.advanceAndSettle(MINUTE_MS);
    await repetition.ended;
    expect(errors).toMatchObject([{ code: "closed" }]);
  });

  test("stop and an aborted signal end it, twice is harmless, and a listener that throws does not", async () => {
    const ending = new AbortController();
    const { repetition } = await keep({ everyMs: MINUTE_MS }, { signal: ending.signal });
    await clock.advanceAndSettle(MINUTE_MS);
    ending.abort();
    await repetition.ended;
    await repetition.stop();
    await clock.advanceAndSettle(MINUTE_MS);
    expect(await instants()).toEqual(["2024-05-01T12:01:00Z"]);
    const aborted = await keep({ everyMs: MINUTE_MS }, { signal: ending.signal });
    await aborted.repetition.ended;
    const warnings: unknown[] = [];
    const listen = (warning: Error): void => void warnings.push(warning.message);
    process.on("warning", listen);
    let failures = 1;
    const onError = (): never => {
      throw new Error("the listener throws");
    };
    await keep(
      { everyMs: MINUTE_MS },
      { onError },
      away(() => failures-- > 0),
    );
    await clock.advanceAndSettle(MINUTE_MS);
    process.off("warning", listen);
    expect(await instants()).toEqual(["2024-05-01T12:01:00Z", "2024-05-01T12:03:00Z"]);
    expect(warnings).toEqual(["the listener throws"]);
  });
});
