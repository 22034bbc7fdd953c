import { describe, expect, it } from "vitest";
import { decodeRecord } from "../../../src/migrate/record.ts";

const record = (value: unknown): Uint8Array => Buffer.from(JSON.stringify(value));

describe("decodeRecord", () => {
  it("takes text as its UTF-8 bytes", () => {
    expect(decodeRecord(record({ id: "1", data: "Grüße\n\0", timestamp: 5 }))).toEqual({ data: new Uint8Array(Buffer.from("Grüße\n\0")) });
    expect(decodeRecord(record({ id: "1", data: "", timestamp: "2024-05-01T10:00:00Z" }))).toEqual({ data: new Uint8Array() });
    expect(decodeRecord(record({ data: '{"id":"x"}' }))).toEqual({ data: new Uint8Array(Buffer.from('{"id":"x"}')) });
  });

  it("takes an array as bytes, all 256 values of them", () => {
    const all = Array.from({ length: 256 }, (_, value) => value);
    expect(decodeRecord(record({ id: "1", data: all }))).toEqual({ data: Uint8Array.from(all) });
    expect(decodeRecord(record({ id: "1", data: [] }))).toEqual({ data: new Uint8Array() });
  });

  it.each([
    ["nothing", null, "NULL"],
    ["bytes that are no text", Uint8Array.of(0x7b, 0xff), "UTF-8"],
    ["text that is no JSON", Buffer.from("hello"), "not JSON"],
    ["an empty record", Buffer.from(""), "not JSON"],
    ["a JSON text", record("hello"), "not a JSON object"],
    ["a JSON array", record([1]), "not a JSON object"],
    ["null", record(null), "not a JSON object"],
    ["an object without data", record({ id: "1" }), 'no "data"'],
    ["data that is a number", record({ data: 5 }), "neither text nor an array"],
    ["data that is null", record({ data: null }), "neither text nor an array"],
    ["data that is an object", record({ data: { a: 1 } }), "neither text nor an array"],
    ["a byte over 255", record({ data: [1, 256] }), "byte 1"],
    ["a byte under 0", record({ data: [-1] }), "byte 0"],
    ["a broken byte", record({ data: [1.5] }), "byte 0"],
    ["a byte that is text", record({ data: ["1"] }), "byte 0"],
    ["half a character", Buffer.from('{"data":"\\ud800"}'), "not valid Unicode"],
  ])("says what is wrong with %s", (_, bytes, words) => {
    const decoded = decodeRecord(bytes);
    expect("fault" in decoded && decoded.fault).toContain(words);
  });
});
