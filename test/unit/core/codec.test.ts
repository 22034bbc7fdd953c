/** Messages as JSON: bytes in are bytes out. */

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { dataOf, decodeUtf8, describeMessage, formatTimestamp, isUtf8, messageJsonChunks, messageToJson } from "../../../src/core/codec.ts";
import { isQueueFSError } from "../../../src/core/errors.ts";
import type { Message } from "../../../src/core/message.ts";
import { parseMessageId, parseReceipt, parseTaskId } from "../../../src/core/names.ts";

function message(data: Uint8Array): Message {
  return { id: parseMessageId("m-1"), data, enqueuedAtMs: 1_700_000_000_123, deliveryCount: 2 };
}

function throughJson(data: Uint8Array): Uint8Array {
  return dataOf(JSON.parse(messageToJson(message(data))));
}

function throughChunks(data: Uint8Array): string {
  return Buffer.concat([...messageJsonChunks(message(data))]).toString("utf8");
}

/** `length` bytes that repeat `pattern`, long enough to be turned into JSON in pieces. */
function repeated(pattern: readonly number[], length: number): Uint8Array {
  return Uint8Array.from({ length }, (_, index) => pattern[index % pattern.length] as number);
}

describe("the shape", () => {
  test("text has these keys in this order and no encoding", () => {
    expect(messageToJson(message(new TextEncoder().encode("hé\n")))).toBe(
      '{"id":"m-1","data":"hé\\n","timestamp":"2023-11-14T22:13:20.123Z","deliveries":2}',
    );
  });

  test("bytes that are no text are base64 and say so", () => {
    expect(messageToJson(message(Uint8Array.of(0xff, 0xfe)))).toBe(
      '{"id":"m-1","data":"//4=","encoding":"base64","timestamp":"2023-11-14T22:13:20.123Z","deliveries":2}',
    );
  });

  test("a delivery has its receipt, a listing the state, a dead letter its reason and end, any the task that owns it", () => {
    const shown = { ...message(new Uint8Array(0)), receipt: parseReceipt("r-1"), state: "processing" as const, reason: "no", diedAtMs: 0 };
    const keys = ["id", "data", "receipt", "timestamp", "deliveries", "state", "reason", "diedAt"];
    expect(Object.keys(describeMessage(shown))).toEqual(keys);
    expect(Object.keys(describeMessage({ ...shown, task: parseTaskId("t") }))).toEqual([...keys, "task"]);
    expect(describeMessage(shown).diedAt).toBe("1970-01-01T00:00:00.000Z");
  });

  test.each([Number.NaN, -1, 1e300, Number.POSITIVE_INFINITY])("a timestamp of %s is still RFC 3339", (atMs) => {
    expect(formatTimestamp(atMs)).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  });
});

describe("what is text", () => {
  test.each([
    ["nothing", [], true],
    ["NUL", [0], true],
    ["a byte order mark", [0xef, 0xbb, 0xbf], true],
    ["a byte order mark and text", [0xef, 0xbb, 0xbf, 0x61], true],
    ["a noncharacter", [0xef, 0xbf, 0xbf], true],
    ["FF FE", [0xff, 0xfe], false],
    ["C3 28", [0xc3, 0x28], false],
    ["a surrogate, ED A0 80", [0xed, 0xa0, 0x80], false],
    ["an overlong NUL, C0 80", [0xc0, 0x80], false],
    ["beyond Unicode, F4 90 80 80", [0xf4, 0x90, 0x80, 0x80], false],
    ["half a character", [0x61, 0xc3], false],
  ])("%s", (_what, bytes, expected) => {
    const data = Uint8Array.from(bytes);
    expect(isUtf8(data)).toBe(expected);
    expect(describeMessage(message(data)).encoding).toBe(expected ? undefined : "base64");
    expect(throughJson(data)).toEqual(data);
    const text = decodeUtf8(data);
    expect(text === undefined ? undefined : new TextEncoder().encode(text)).toEqual(expected ? data : undefined);
  });
});

describe("round trips", () => {
  test("any bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (data) => {
        expect(throughJson(data)).toEqual(data);
      }),
    );
  });

  test("any text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 100 }), (text) => {
        const data = new TextEncoder().encode(text);
        expect(describeMessage(message(data)).data).toBe(new TextDecoder("utf-8", { ignoreBOM: true }).decode(data));
        expect(throughJson(data)).toEqual(data);
      }),
    );
  });

  // Lengths around the piece boundary put characters of 1 to 4 bytes across it.
  test.each([
    ["one-byte text", [0x61]],
    ["control characters", [0x01]],
    ["two-byte text", [0xc3, 0xa9]],
    ["three-byte text", [0xe2, 0x82, 0xac]],
    ["four-byte text", [0xf0, 0x9f, 0x98, 0x80]],
    ["all byte values", Array.from({ length: 256 }, (_, index) => index)],
  ])("%s of more than one piece is the same in pieces and as a whole", (_what, pattern) => {
    for (let odd = 0; odd < pattern.length && odd < 5; odd += 1) {
      const data = Buffer.concat([Buffer.alloc(odd, "x"), repeated(pattern, pattern.length * Math.ceil(800_000 / pattern.length))]);
      const json = throughChunks(data);
      expect(json === messageToJson(message(data))).toBe(true);
      expect(Buffer.compare(dataOf(JSON.parse(json)), data)).toBe(0);
    }
  });

  test("a large text that ends within a character is base64", () => {
    const data = repeated([0x61], 800_000);
    data[data.length - 1] = 0xc3;
    expect(isUtf8(data)).toBe(false);
    const parsed = JSON.parse(throughChunks(data));
    expect(parsed.encoding).toBe("base64");
    expect(Buffer.compare(dataOf(parsed), data)).toBe(0);
  });
});

describe("what is refused", () => {
  test.each([
    ["no data", {}],
    ["data that is no text", { data: 5 }],
    ["a surrogate that stands alone", { data: "\ud800" }],
    ["another encoding", { data: "", encoding: "hex" }],
    ["base64 without padding", { data: "//4", encoding: "base64" }],
    ["base64 with white space", { data: "//4=\n", encoding: "base64" }],
    ["base64 of the URL alphabet", { data: "__4=", encoding: "base64" }],
    ["base64 with bits left over", { data: "//5=", encoding: "base64" }],
  ])("%s", (_what, json) => {
    let thrown: unknown;
    try {
      dataOf(json);
    } catch (error) {
      thrown = error;
    }
    expect(isQueueFSError(thrown, "invalid-argument")).toBe(true);
  });
});
