/** Paths and names: each place has one name, and no text is read as the place of another. */

import fc from "fast-check";
import { expect, test } from "vitest";
import { deliveryOf, makeDeliveryReceipt } from "../../src/backend/redis/receipt.ts";
import { decodeUtf8 } from "../../src/core/codec.ts";
import { CONTROL_FILES } from "../../src/core/control-files.ts";
import {
  isWithin,
  makeMessageId,
  parseChosenMessageId,
  parseMessageId,
  parseQueueName,
  parseReceipt,
  parseTaskId,
  placeOfMessageId,
  placeOfReceipt,
} from "../../src/core/names.ts";
import { parseNewDirectory, parsePath } from "../../src/fs/path.ts";
import { ending, hold } from "./fuzzing.ts";
import { anyText, anyValue } from "./values.ts";

const component = fc.oneof(
  fc.constantFrom("a", "b", "size", ".wait", ".tasks", "wait", "..", ".", "", "enqueue", "\0", "\ud800", "é", "e\u0301", "A"),
  anyText,
);
const path = fc.oneof(
  { weight: 4, arbitrary: fc.array(component, { maxLength: 6 }).map((components) => `/${components.join("/")}`) },
  { weight: 1, arbitrary: fc.array(component, { maxLength: 40 }).map((components) => components.join("/")) },
  { weight: 1, arbitrary: anyText },
);
/** A name that is good, more often than chance has it. */
const name = fc
  .array(
    fc.oneof(fc.constantFrom("a", "b", "A", "é", "e\u0301", "%2F", "%", "a b", "*", "日本"), fc.string({ unit: "grapheme", maxLength: 5 })),
    {
      minLength: 1,
      maxLength: 5,
    },
  )
  .map((components) => components.join("/"))
  .filter((text) => ending(() => parseQueueName(text)).error === undefined);

/** Says a path in another way: more slashes, dots that mean here. */
const detours = fc.array(fc.constantFrom("/", "//", "/./", "/.//"), { minLength: 12, maxLength: 12 });

test("a path names exactly one place, of which its name and its file lead back to it, however it is written", () => {
  hold<[string, string[]]>([name, detours], 10, (queue, ways) => {
    const written = queue.split("/").reduce((before, next, index) => `${before}${ways[index % ways.length]}${next}`, "");
    expect(parsePath(written)).toEqual({ kind: "directory", name: queue, shown: `/${queue}` });
    expect(parseNewDirectory(written)).toBe(queue);
    for (const file of Object.keys(CONTROL_FILES)) {
      expect(parsePath(`${written}/${file}`)).toEqual({ kind: "control", name: queue, file, shown: `/${queue}/${file}` });
    }
  });
});

test("paths that name the same place are the same components; no path leaves its own", () => {
  hold<[string, string]>([path, path], 20, (left, right) => {
    const places = [left, right].map((text) => ending(() => parsePath(text)));
    for (const [index, place] of places.entries()) {
      if (place.error !== undefined) continue;
      const said = ([left, right][index] as string).split("/").filter((part) => part !== "" && part !== ".");
      expect(said).not.toContain("..");
      expect(place.result.shown).toBe(`/${said.join("/")}`);
      if (place.result.kind === "directory") expect(place.result.name).toBe(said.join("/"));
      if (place.result.kind === "control") expect(`${place.result.name}/${place.result.file}`).toBe(said.join("/"));
      expect(parsePath(place.result.shown)).toEqual(place.result);
    }
    const [one, other] = places.map((place) => place.result);
    if (one !== undefined && other !== undefined) expect(one.shown === other.shown).toBe(JSON.stringify(one) === JSON.stringify(other));
  });
});

test("bytes are read as the text that they are, or refused", () => {
  hold<[Uint8Array]>(
    [
      fc.oneof(
        fc.uint8Array({ maxLength: 12 }).map((bytes) => Uint8Array.of(47, ...bytes)),
        path.map((text) => Buffer.from(text)),
      ),
    ],
    20,
    (bytes) => {
      const text = decodeUtf8(bytes);
      const read = ending(() => parsePath(bytes));
      if (text === undefined) expect(read.error?.code).toBe("invalid-name");
      else expect(read).toEqual(ending(() => parsePath(text)));
    },
  );
});

test("a name contains another only by whole components", () => {
  hold<[string, string]>([name, name], 20, (left, right) => {
    const parts = [left.split("/"), right.split("/")] as const;
    expect(isWithin(left, right)).toBe(parts[1].every((part, index) => parts[0][index] === part));
    expect(isWithin(`${left}/x`, left)).toBe(true);
    expect(isWithin(`${left}x`, left)).toBe(false);
  });
});

test("any value is a name as it is, or refused by an error of the table", () => {
  hold<[unknown]>([anyValue], 20, (value) => {
    for (const parse of [parseQueueName, parseMessageId, parseChosenMessageId, parseReceipt, parseTaskId]) {
      const parsed = ending(() => parse(value));
      if (parsed.error === undefined) expect(parsed.result).toBe(value);
      else expect(["invalid-name", "reserved-name"]).toContain(parsed.error.code);
    }
    // As a path it may also name what is not there, and what lies under a file.
    const codes = ["invalid-name", "reserved-name", "path-not-found", "not-a-directory"];
    for (const parse of [parsePath, parseNewDirectory]) {
      const { error } = ending(() => parse(value as string));
      if (error !== undefined) expect(codes).toContain(error.code);
    }
  });
});

const whole = fc.oneof(fc.maxSafeInteger().map(Math.abs), fc.integer({ min: 0, max: 100 }), fc.constantFrom(35, 36, 2 ** 31, 2 ** 53 - 1));
const marked = fc.oneof(
  fc.stringMatching(/^[mr]-[0-9a-zA-Z-]{0,24}$/),
  fc
    .tuple(
      fc.constantFrom("r", "m-s"),
      fc.array(
        fc.oneof(
          whole.map((value) => value.toString(36)),
          fc.constantFrom("", "0", "00", "01", "A", "zzzzzzzzzzzzz"),
        ),
        { maxLength: 5 },
      ),
    )
    .map(([mark, parts]) => [mark, ...parts].join("-")),
  anyText,
);

test("a receipt or made id names one place by one text", () => {
  hold<[string]>([marked], 30, (text) => {
    const place = placeOfReceipt(text);
    if (place !== undefined) expect(makeDeliveryReceipt(place.slot, place.sequence, place.token, 0)).toBe(text);
    const delivery = deliveryOf(text);
    if (delivery !== undefined) expect(makeDeliveryReceipt(delivery.slot, delivery.sequence, delivery.token, delivery.task)).toBe(text);
    // Both stores read the same receipts, but for the number of a task at the end.
    if (place !== undefined || delivery?.task === 0) expect(delivery).toEqual({ ...place, task: 0 });
    const made = placeOfMessageId("s", text);
    if (made !== undefined) expect(makeMessageId("s", made.slot, made.sequence)).toBe(text);
  });
  hold<[number, number, number, number]>([whole, whole, whole, whole], 10, (slot, sequence, token, task) => {
    expect(deliveryOf(makeDeliveryReceipt(slot, sequence, token, task))).toEqual({ slot, sequence, token, task });
    expect(placeOfMessageId("s", makeMessageId("s", slot, sequence))).toEqual({ slot, sequence });
    expect(placeOfMessageId("t", makeMessageId("s", slot, sequence))).toBeUndefined();
  });
});
