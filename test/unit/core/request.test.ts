import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ErrorCode, isQueueFSError } from "../../../src/core/errors.ts";
import {
  DEFAULT_LEASE_MS,
  DEFAULT_MAX_DELIVERIES,
  DEFAULT_PAGE_ITEMS,
  MAX_BATCH_ITEMS,
  MAX_DELAY_MS,
  MAX_DEQUEUE_LIMIT,
  MAX_LEASE_MS,
  MAX_MAX_DELIVERIES,
  MAX_PAGE_ITEMS,
  MAX_REASON_CHARACTERS,
  MAX_SNAPSHOT_QUEUES,
  MIN_LEASE_MS,
} from "../../../src/core/limits.ts";
import type { QueueName, Receipt } from "../../../src/core/names.ts";
import {
  checkBatch,
  checkChangedSettings,
  checkDequeue,
  checkExtensions,
  checkMessages,
  checkNacks,
  checkNewSettings,
  checkPage,
  checkSelection,
  storableReason,
  usedUpReason,
} from "../../../src/core/request.ts";

/** The code with which `call` refuses, or "taken". */
function verdict(call: () => unknown): ErrorCode | "taken" {
  try {
    call();
    return "taken";
  } catch (error) {
    if (isQueueFSError(error)) return error.code;
    throw error;
  }
}

const never = <Value>(value: unknown): Value => value as Value;

describe("a dequeue", () => {
  it("has defaults", () => {
    const defaults = { limit: 1, leaseMs: DEFAULT_LEASE_MS, owner: "process" };
    expect(checkDequeue(undefined)).toEqual(defaults);
    expect(checkDequeue({})).toEqual(defaults);
    expect(checkDequeue({ limit: 7, leaseMs: 10, owner: "receipt", requestId: "q" })).toEqual({
      limit: 7,
      leaseMs: 10,
      owner: "receipt",
      requestId: "q",
    });
  });

  it.each([
    [{ limit: 1 }, "taken"],
    [{ limit: MAX_DEQUEUE_LIMIT }, "taken"],
    [{ limit: 0 }, "invalid-argument"],
    [{ limit: MAX_DEQUEUE_LIMIT + 1 }, "invalid-argument"],
    [{ leaseMs: MIN_LEASE_MS }, "taken"],
    [{ leaseMs: MAX_LEASE_MS }, "taken"],
    [{ leaseMs: MIN_LEASE_MS - 1 }, "invalid-argument"],
    [{ leaseMs: MAX_LEASE_MS + 1 }, "invalid-argument"],
    [{ owner: "other" }, "invalid-argument"],
    [{ requestId: "" }, "invalid-name"],
    [{ requestId: "a b" }, "invalid-name"],
    [{ requestId: 5 }, "invalid-argument"],
    [{ lease: 5 }, "invalid-argument"],
  ])("%j: %s", (options, expected) => {
    expect(verdict(() => checkDequeue(never(options)))).toBe(expected);
  });
});

describe("settings", () => {
  it("of a new queue are filled in, changed ones are those given", () => {
    expect(checkNewSettings(undefined)).toEqual({ maxDeliveries: DEFAULT_MAX_DELIVERIES });
    expect(checkNewSettings({ maxDeliveries: 0 })).toEqual({ maxDeliveries: 0 });
    expect(checkChangedSettings({})).toEqual({});
    expect(checkChangedSettings({ maxDeliveries: 3 })).toEqual({ maxDeliveries: 3 });
  });

  it.each([-1, MAX_MAX_DELIVERIES + 1, 1.5, "3", null])("maxDeliveries %j is refused", (maxDeliveries) => {
    expect(verdict(() => checkNewSettings(never({ maxDeliveries })))).toBe("invalid-argument");
    expect(verdict(() => checkChangedSettings(never({ maxDeliveries })))).toBe("invalid-argument");
  });

  it("unknown ones are refused", () => {
    expect(verdict(() => checkNewSettings(never({ maxDelivery: 3 })))).toBe("invalid-argument");
    expect(verdict(() => checkChangedSettings(never({ maxDelivery: 3 })))).toBe("invalid-argument");
  });
});

describe("a page", () => {
  it("has defaults and bounds", () => {
    expect(checkPage(undefined)).toEqual({ limit: DEFAULT_PAGE_ITEMS, under: "" });
    expect(checkPage({ after: "", limit: MAX_PAGE_ITEMS })).toEqual({ after: "", limit: MAX_PAGE_ITEMS, under: "" });
    for (const bad of [{ limit: 0 }, { limit: MAX_PAGE_ITEMS + 1 }, { after: 5 }, { before: "x" }])
      expect(verdict(() => checkPage(never(bad)))).toBe("invalid-argument");
  });
});

describe("batches", () => {
  it("are arrays of at most ten thousand", () => {
    expect(checkBatch("ack", [])).toEqual([]);
    expect(checkBatch("ack", new Array(MAX_BATCH_ITEMS).fill(0))).toHaveLength(MAX_BATCH_ITEMS);
    expect(verdict(() => checkBatch("ack", new Array(MAX_BATCH_ITEMS + 1).fill(0)))).toBe("invalid-argument");
    for (const bad of [undefined, null, "text", { length: 1 }, new Set([1]), 5])
      expect(verdict(() => checkBatch("ack", never<unknown[]>(bad)))).toBe("invalid-argument");
  });
});

describe("messages", () => {
  const bytes = (length: number): Uint8Array => new Uint8Array(length);

  it("keep the limit alone and together", () => {
    expect(verdict(() => checkMessages([], 10))).toBe("taken");
    expect(verdict(() => checkMessages([{ data: bytes(0) }, { data: bytes(10) }], 10))).toBe("taken");
    expect(verdict(() => checkMessages([{ data: bytes(11) }], 10))).toBe("message-too-large");
    expect(verdict(() => checkMessages([{ data: bytes(5) }, { data: bytes(6) }], 10))).toBe("message-too-large");
    expect(verdict(() => checkMessages([{ data: Buffer.from("text") }], 4))).toBe("taken");
  });

  it.each(["text", undefined, null, 5, [1, 2], new ArrayBuffer(2), new Uint16Array(2), new DataView(new ArrayBuffer(2)), { length: 2 }])(
    "data of another type is refused: %j",
    (data) => {
      expect(verdict(() => checkMessages([never({ data })], 10))).toBe("invalid-argument");
    },
  );

  it("whole messages of another type are refused", () => {
    for (const bad of [undefined, null, 5, "text"]) expect(verdict(() => checkMessages([never(bad)], 10))).toBe("invalid-argument");
  });

  it("ids and delays are checked", () => {
    const data = bytes(1);
    expect(
      verdict(() =>
        checkMessages(
          [
            { data, id: never("x"), delayMs: 0 },
            { data, delayMs: MAX_DELAY_MS },
          ],
          10,
        ),
      ),
    ).toBe("taken");
    for (const id of ["", "m-1", "r-1", "a b", 5]) expect(verdict(() => checkMessages([{ data, id: never(id) }], 10))).toBe("invalid-name");
    for (const delayMs of [-1, MAX_DELAY_MS + 1, 0.5, "1", Number.NaN])
      expect(verdict(() => checkMessages([{ data, delayMs: never(delayMs) }], 10))).toBe("invalid-argument");
  });
});

describe("nacks and extensions", () => {
  const receipt = "r-1-1-1" as Receipt;

  it("have bounds", () => {
    expect(verdict(() => checkNacks([{ receipt }, { receipt, delayMs: MAX_DELAY_MS, giveUp: true, reason: "x" }]))).toBe("taken");
    for (const delayMs of [-1, MAX_DELAY_MS + 1, 0.5, "1"])
      expect(verdict(() => checkNacks([{ receipt, delayMs: never(delayMs) }]))).toBe("invalid-argument");
    expect(
      verdict(() =>
        checkExtensions([
          { receipt, leaseMs: MIN_LEASE_MS },
          { receipt, leaseMs: MAX_LEASE_MS },
        ]),
      ),
    ).toBe("taken");
    for (const leaseMs of [0, MIN_LEASE_MS - 1, MAX_LEASE_MS + 1, undefined, "1000", Number.NaN]) {
      expect(verdict(() => checkExtensions([{ receipt, leaseMs: never(leaseMs) }]))).toBe("invalid-argument");
    }
  });
});

describe("a selection", () => {
  it("takes ten thousand named queues, or any subtree", () => {
    const queues = new Array<QueueName>(MAX_SNAPSHOT_QUEUES).fill("a" as QueueName);
    expect(verdict(() => checkSelection({ queues }))).toBe("taken");
    expect(verdict(() => checkSelection({ queues: [...queues, "a" as QueueName] }))).toBe("invalid-argument");
    expect(verdict(() => checkSelection({ under: "" }))).toBe("taken");
  });
});

describe("a reason", () => {
  it("is always storable: no NUL, no lone surrogate, at most 4,096 characters, whatever it was", () => {
    const text = fc.string({
      unit: fc.oneof(fc.string({ unit: "binary", maxLength: 1 }), fc.constantFrom("\0", "\ud800", "\udc00", "😀")),
      maxLength: 50,
    });
    fc.assert(
      fc.property(fc.oneof(text, fc.anything()), fc.nat(MAX_REASON_CHARACTERS), (reason, padding) => {
        for (const one of [reason, typeof reason === "string" ? "x".repeat(padding + 4060) + reason : reason]) {
          const stored = storableReason(one);
          expect(stored.length).toBeLessThanOrEqual(MAX_REASON_CHARACTERS);
          expect(stored).not.toContain("\0");
          expect(Buffer.from(stored, "utf8").toString("utf8")).toBe(stored);
        }
      }),
    );
  });

  it("that is storable stays as it is", () => {
    for (const reason of ["", "plain", "日本 😀\n\t", "x".repeat(MAX_REASON_CHARACTERS)]) expect(storableReason(reason)).toBe(reason);
    expect(storableReason(undefined)).toBe("");
    expect(storableReason(null)).toBe("null");
    expect(storableReason({ an: "object" })).toBe('{"an":"object"}');
  });

  it("of used-up deliveries is the last one, or words with the count", () => {
    expect(usedUpReason(3, "it hurts")).toBe("it hurts");
    expect(usedUpReason(3, "")).toMatch(/deliveries used up \(3\)/);
  });
});
