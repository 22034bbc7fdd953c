/** What is stored or sent as bytes: frames, messages as JSON, answers of Redis, cursors. Each comes out as it went in, or is refused. */

import fc from "fast-check";
import { expect, test } from "vitest";
import { ByteReader, ByteWriter } from "../../src/backend/redis/bytes.ts";
import { readLetter } from "../../src/backend/redis/letter.ts";
import { parseCursor } from "../../src/backend/redis/reading.ts";
import { dataOf, decodeUtf8, describeMessage, formatTimestamp, isUtf8, messageJsonChunks, messageToJson } from "../../src/core/codec.ts";
import { isQueueFSError } from "../../src/core/errors.ts";
import type { MessageId } from "../../src/core/names.ts";
import {
  acksFromWire,
  acksToWire,
  errorOfProblem,
  forwardsFromWire,
  newMessagesFromWire,
  newMessageToWire,
  problemOf,
} from "../../src/core/wire.ts";
import { BytesBeside, decodeFrame, encodeFrame, parseJson } from "../../src/core/wire-bytes.ts";
import { decodeRecord } from "../../src/migrate/record.ts";
import { ending, hold } from "./fuzzing.ts";
import { anyBytes, anyJson, anyNumber, anyText, anyValue } from "./values.ts";

test("messages come out of a frame, and of JSON, as they went in", () => {
  hold<[Uint8Array[]]>([fc.array(anyBytes, { maxLength: 5 })], 3, (payloads) => {
    const messages = payloads.map((data, index) => ({ data, id: `i${index}` as MessageId }));
    const beside = new BytesBeside();
    const frame = encodeFrame(
      messages.map((message) => newMessageToWire(message, beside)),
      beside,
    );
    const read = decodeFrame(frame);
    expect(newMessagesFromWire(read.json, read.beside).map(({ data }) => Buffer.from(data))).toEqual(
      payloads.map((data) => Buffer.from(data)),
    );
    read.beside.end();
    const through = parseJson(JSON.stringify(acksToWire([{ receipt: "r-1-1-1" as never, forward: [{ queue: "q" as never, messages }] }])));
    const back = acksFromWire(through)[0]?.forward?.[0]?.messages ?? [];
    expect(back.map(({ data }) => Buffer.from(data))).toEqual(payloads.map((data) => Buffer.from(data)));
  });
});

test("a frame that is cut, spoilt or longer is refused, and gives no bytes that were not in it", () => {
  const frame = fc.oneof(
    anyBytes,
    fc.tuple(fc.integer({ min: 0, max: 60 }), anyJson, anyBytes).map(([length, json, bytes]) => {
      const text = Buffer.from(JSON.stringify(json) ?? "");
      return Buffer.concat([Buffer.from([0, 0, 0, length]), text, bytes]);
    }),
    fc
      .tuple(
        fc.array(fc.record({ data: fc.oneof(fc.nat({ max: 9 }), anyJson), encoding: fc.constantFrom("bytes", "base64", undefined) }), {
          maxLength: 4,
        }),
        anyBytes,
      )
      .map(([messages, bytes]) => {
        const beside = new BytesBeside();
        beside.put(bytes);
        return encodeFrame(messages, beside);
      }),
  );
  hold<[Uint8Array]>([frame], 20, (bytes) => {
    const { error, result } = ending(() => {
      const { json, beside } = decodeFrame(bytes);
      const messages = newMessagesFromWire(json, beside);
      beside.end();
      return messages;
    });
    if (error !== undefined) expect(error.code).toBe("invalid-argument");
    for (const { data } of result ?? []) expect(Buffer.from(data).byteLength).toBeLessThanOrEqual(Math.max(bytes.byteLength, 3));
  });
});

test("any JSON is a list of messages, forwards or acks, or refused", () => {
  hold<[unknown]>(
    [
      fc.oneof(
        anyValue,
        anyJson,
        fc.array(fc.dictionary(fc.constantFrom("data", "encoding", "forward", "messages", "queue", "receipt", "id"), anyJson), {
          maxLength: 3,
        }),
      ),
    ],
    20,
    (json) => {
      for (const read of [newMessagesFromWire, forwardsFromWire, acksFromWire]) {
        const { error } = ending<unknown>(() => read(json));
        if (error !== undefined) expect(error.code).toBe("invalid-argument");
      }
    },
  );
});

test("a message as JSON has its bytes, whole or in pieces", () => {
  hold<[Uint8Array, string, number, number]>([anyBytes, anyText, anyNumber, fc.nat()], 10, (data, id, enqueuedAtMs, deliveryCount) => {
    const message = { id: id as MessageId, data, enqueuedAtMs, deliveryCount };
    const shown = describeMessage(message);
    expect(Buffer.from(dataOf(shown))).toEqual(Buffer.from(data));
    expect(JSON.parse(messageToJson(message))).toEqual(JSON.parse(Buffer.concat([...messageJsonChunks(message)]).toString("utf8")));
    expect(isUtf8(data)).toBe(decodeUtf8(data) !== undefined);
    expect(formatTimestamp(enqueuedAtMs)).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  });
});

test("any body is an error that it tells of, or none", () => {
  hold<[unknown, unknown]>(
    [
      fc.oneof(anyValue, fc.record({ code: fc.oneof(anyText, fc.constantFrom("closed", "__proto__", "constructor")), detail: anyText })),
      anyValue,
    ],
    10,
    (body, thrown) => {
      const error = errorOfProblem(body);
      if (error !== undefined) expect(isQueueFSError(error) && error.httpStatus >= 400).toBe(true);
      expect(problemOf(thrown).code).toBe("internal");
    },
  );
});

test("bytes of an answer of Redis are read as they were written, and never beyond their end", () => {
  const number = (bits: number): fc.Arbitrary<number> => fc.integer({ min: 0, max: 2 ** bits - 1 });
  hold<[number, number, number, number, string, Uint8Array]>(
    [number(8), number(16), number(32), number(48), fc.string({ unit: "binary", maxLength: 60 }), anyBytes],
    10,
    (u8, u16, u32, u48, text, bytes) => {
      const writer = new ByteWriter(1);
      writer.u8(u8);
      writer.u16(u16);
      writer.u32(u32);
      writer.u48(u48);
      writer.shortText(text);
      writer.bytes(bytes);
      const reader = new ByteReader(writer.view());
      expect([reader.u8(), reader.u16(), reader.u32(), reader.u48(), reader.text(reader.u8())]).toEqual([u8, u16, u32, u48, text]);
      expect(Buffer.from(reader.copy(bytes.byteLength))).toEqual(Buffer.from(bytes));
      expect(reader.isAtEnd).toBe(true);
      expect(() => reader.u8()).toThrow(/shorter than it says/);
    },
  );
});

test("any bytes are a dead letter of Redis, or an answer that is shorter than it says", () => {
  hold<[Uint8Array, boolean]>([fc.uint8Array({ maxLength: 80 }), fc.boolean()], 20, (bytes, isOwned) => {
    const life = { name: "q", slot: 1, life: 1, store: "s" };
    try {
      const letter = readLetter(new ByteReader(Buffer.from(bytes)), 1, life as never, isOwned);
      expect(letter.data.byteLength).toBeLessThanOrEqual(bytes.byteLength);
      expect(typeof letter.reason).toBe("string");
    } catch (error) {
      expect(isQueueFSError(error), String(error)).toBe(true);
    }
  });
});

test("any text is a place in a listing that it can be gone on from, or refused", () => {
  hold<[string]>([fc.oneof(anyText, anyNumber.map(String), fc.maxSafeInteger().map(String))], 20, (text) => {
    const { error, result } = ending(() => parseCursor(text));
    if (error === undefined) expect(Number.isSafeInteger(result) && result >= 0).toBe(true);
    else expect(error.code).toBe("invalid-argument");
  });
});

test("any record of the reference layout is a message with its bytes, or a fault in words", () => {
  const record = fc.oneof(
    fc.constant(null),
    anyBytes,
    anyJson.map((json) => Buffer.from(JSON.stringify(json) ?? "")),
    fc
      .record({ id: anyText, data: fc.oneof(anyText, fc.array(fc.oneof(fc.integer({ min: -1, max: 256 }), anyNumber)), anyJson) })
      .map((json) => Buffer.from(JSON.stringify(json))),
  );
  hold<[Uint8Array | null]>([record], 20, (bytes) => {
    const decoded = decodeRecord(bytes);
    if ("fault" in decoded) {
      expect(decoded.fault.length).toBeGreaterThan(0);
      return;
    }
    const { data } = JSON.parse(Buffer.from(bytes as Uint8Array).toString("utf8")) as { data: string | number[] };
    expect(Buffer.from(decoded.data)).toEqual(typeof data === "string" ? Buffer.from(data, "utf8") : Buffer.from(data));
  });
});
