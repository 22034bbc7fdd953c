/** Durations, instants, rate limits, rhythms, backoffs and words of the command line: understood as they are meant, or refused. */

import { InvalidArgumentError } from "commander";
import fc from "fast-check";
import { expect, test } from "vitest";
import { instantOption, integerOption, jsonOption, readQueue, readSelection, readUnder } from "../../src/cli/arguments.ts";
import { formatDuration, parseDuration } from "../../src/cli/duration.ts";
import { visibleJson, visibleLines } from "../../src/cli/visible.ts";
import { backoffMs, checkBackoff } from "../../src/core/backoff.ts";
import { systemClock } from "../../src/core/clock.ts";
import { RateLimiter } from "../../src/queue/rate-limit.ts";
import { instantsOf } from "../../src/queue/schedule.ts";
import { ManualClock } from "../../src/testing/index.ts";
import { ending, endingAsync, hold, holdAsync } from "./fuzzing.ts";
import { anyNumber, anyText, anyValue } from "./values.ts";

const UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

test("a duration is the sum of its parts; any other text is refused", () => {
  const part = fc.tuple(fc.nat({ max: 5_000 }), fc.constantFrom(...(Object.keys(UNITS) as (keyof typeof UNITS)[])));
  hold<[[number, keyof typeof UNITS][]]>([fc.array(part, { minLength: 1, maxLength: 4 })], 10, (parts) => {
    const text = parts.map(([count, unit]) => `${count}${unit}`).join("");
    // "5m" and "5ms" read on: a part ends where its unit cannot go on.
    expect(parseDuration(text)).toBe(parts.reduce((sum, [count, unit]) => sum + count * UNITS[unit], 0));
  });
  hold<[string]>([fc.oneof(anyText, fc.stringMatching(/^[0-9.smhd -]{0,10}$/))], 20, (text) => {
    const { error, result } = ending(() => parseDuration(text));
    if (error === undefined) expect(result >= 0 && Number.isInteger(result)).toBe(true);
    else expect(error.code).toBe("invalid-argument");
  });
  hold<[number]>([fc.nat({ max: 400 * 86_400_000 })], 10, (milliseconds) => {
    const shown = parseDuration(formatDuration(milliseconds));
    // In the two greatest units: what is left out is less than the smaller of them, and half a second.
    const unit = milliseconds >= 86_400_000 ? 3_600_000 : milliseconds >= 3_600_000 ? 60_000 : 1_000;
    expect(Math.abs(shown - milliseconds)).toBeLessThanOrEqual(unit);
  });
});

test("words of a command line are read, or refused as wrong usage", () => {
  const usage = <Result>(read: () => Result): Result | undefined => {
    try {
      return read();
    } catch (error) {
      if (error instanceof InvalidArgumentError) return undefined;
      return ending<Result>(() => {
        throw error;
      }).result;
    }
  };
  hold<[string]>([fc.oneof(anyText, fc.stringMatching(/^[0-9T:Z+.-]{0,24}$/))], 20, (text) => {
    const number = usage(() => integerOption(text));
    if (number !== undefined) expect(Number.isSafeInteger(number) && number >= 0).toBe(true);
    const instant = usage(() => instantOption(text));
    if (instant !== undefined) expect(Number.isInteger(instant) && instant >= 0, `${text} is ${instant}`).toBe(true);
    const json = usage(() => jsonOption(text));
    if (json !== undefined) expect(JSON.parse(text)).toEqual(json.value);
    usage(() => readQueue(text));
    usage(() => readUnder(text));
    usage(() => readSelection([text], undefined));
    expect(visibleLines(text).replace(/[\n\t]/g, "")).not.toMatch(/\p{Cc}/u);
    expect(JSON.parse(visibleJson(JSON.stringify(text)))).toBe(text);
  });
});

test("a rate limit lets no more through in any stretch of time than it says", async () => {
  const limit = fc.record({ count: fc.integer({ min: 1, max: 20 }), perMs: fc.integer({ min: 1, max: 5_000 }) });
  await holdAsync<[{ count: number; perMs: number }, [number, number][]]>(
    [limit, fc.array(fc.tuple(fc.nat({ max: 3_000 }), fc.integer({ min: 1, max: 30 })), { maxLength: 20 })],
    2,
    async (given, steps) => {
      const clock = new ManualClock();
      const limiter = new RateLimiter(given, clock);
      const begun: { atMs: number; count: number }[] = [];
      for (const [passMs, wanted] of steps) {
        clock.advance(passMs);
        const stopping = new AbortController();
        const waiting = limiter.wait(wanted, stopping.signal);
        // What may not begin now would wait, for ever by a clock that stands still.
        setImmediate(() => stopping.abort());
        const may = await waiting;
        limiter.use(may);
        begun.push({ atMs: clock.monotonicMs(), count: may });
      }
      for (const [index, { atMs }] of begun.entries()) {
        for (const later of begun.slice(index)) {
          const total = begun
            .slice(index)
            .filter((one) => one.atMs <= later.atMs)
            .reduce((sum, { count }) => sum + count, 0);
          expect(total).toBeLessThanOrEqual(given.count + ((later.atMs - atMs) * given.count) / given.perMs + 1e-6);
        }
      }
    },
  );
  hold<[unknown]>([fc.record({ count: anyValue, perMs: anyValue })], 5, (value) => {
    const { error } = ending(() => new RateLimiter(value as never, systemClock));
    if (error !== undefined) expect(error.code).toBe("invalid-argument");
  });
});

test("a rhythm goes on to a later instant, or is refused", async () => {
  const rhythm = fc.oneof(
    fc.record({ everyMs: fc.oneof(fc.integer({ min: 100, max: 1e9 }), anyNumber) }),
    fc.record(
      {
        cron: fc.oneof(fc.stringMatching(/^[0-9*/,L-]{1,4}( [0-9*/,L#-]{1,4}){4,5}$/), anyText),
        timeZone: fc.oneof(fc.constantFrom("UTC", "Europe/Berlin", undefined), anyText),
      },
      { requiredKeys: ["cron"] },
    ),
    anyValue,
  );
  await holdAsync<[unknown, number]>([rhythm, fc.integer({ min: 0, max: 4e12 })], 2, async (value, afterMs) => {
    const { error, result } = await endingAsync(() => instantsOf(value as never));
    if (error !== undefined) expect(error.code).toBe("invalid-argument");
    const next = result?.(afterMs);
    if (next !== undefined) expect(next).toBeGreaterThan(afterMs);
  });
});

test("a backoff waits within its bounds, or is refused", () => {
  hold<[unknown, number, number]>(
    [
      fc.oneof(anyValue, fc.record({ firstMs: fc.nat(), maximumMs: fc.nat() })),
      fc.integer({ min: 1, max: 5_000 }),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
    ],
    10,
    (value, attempt, fraction) => {
      const { error, result } = ending(() => checkBackoff(value as never));
      if (error !== undefined) expect(error.code).toBe("invalid-argument");
      else {
        const waitMs = backoffMs(result, attempt, { fraction: () => fraction } as never);
        expect(waitMs > 0 && waitMs <= result.maximumMs).toBe(true);
      }
    },
  );
});
