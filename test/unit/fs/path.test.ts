/** What a path names. */

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type ErrorCode, isQueueFSError } from "../../../src/core/errors.ts";
import { parseNewDirectory, parsePath } from "../../../src/fs/path.ts";

function codeOf(action: () => unknown): ErrorCode | unknown {
  try {
    return action();
  } catch (error) {
    return isQueueFSError(error) ? error.code : error;
  }
}

describe("what exists", () => {
  test.each(["/", "//", "/.", "/./", "/./."])("%s is the root", (path) => {
    expect(parsePath(path).kind).toBe("root");
    expect(parseNewDirectory(path)).toBeUndefined();
  });

  test.each([
    ["/q", "q"],
    ["/q/", "q"],
    ["//q/.", "q"],
    ["/a/b//c", "a/b/c"],
    ["/a/size.txt", "a/size.txt"],
    ["/日本/q", "日本/q"],
    ["/constructor", "constructor"],
    ["/__proto__", "__proto__"],
  ])("%s is the directory %s", (path, name) => {
    expect(parsePath(path)).toMatchObject({ kind: "directory", name });
    expect(parsePath(new TextEncoder().encode(path))).toEqual(parsePath(path));
    expect(parseNewDirectory(path)).toBe(name);
  });

  test.each([
    ["/q/size", "q", "size"],
    ["//q/.//.wait", "q", ".wait"],
    ["/a/b/ack", "a/b", "ack"],
  ])("%s is a control file of %s", (path, name, file) => {
    expect(parsePath(path)).toEqual({ kind: "control", name, file, shown: `/${name}/${file}` });
  });

  test.each(["/.tasks", "/.tasks/", "//./.tasks/."])("%s is the directory of tasks", (path) => {
    expect(parsePath(path)).toEqual({ kind: "tasks", shown: "/.tasks" });
  });

  test.each([
    ["/.tasks/t-1", "t-1", false],
    ["/.tasks/wait", "wait", false],
    ["/.tasks/size", "size", false],
    ["//.tasks//import:2026@x/./wait", "import:2026@x", true],
  ])("%s belongs to the task %s", (path, id, isWait) => {
    expect(parsePath(path)).toEqual({ kind: "task", id, isWait, shown: `/.tasks/${id}${isWait ? "/wait" : ""}` });
  });
});

describe("what cannot exist", () => {
  test.each([
    ["", "invalid-name"],
    ["q", "invalid-name"],
    ["./q", "invalid-name"],
    ["/..", "invalid-name"],
    ["/a/../b", "invalid-name"],
    ["/a\0b", "invalid-name"],
    ["/a\nb/size", "invalid-name"],
    ["/\ud800", "invalid-name"],
    [`/${"x".repeat(256)}`, "invalid-name"],
    [`/${"a/".repeat(33)}size`, "invalid-name"],
    [`/${"/".repeat(100_000)}`, "invalid-name"],
    ["/size", "path-not-found"],
    ["/.wait", "path-not-found"],
    ["/size/x", "path-not-found"],
    ["/.tasks/.hidden", "path-not-found"],
    ["/.tasks/a b", "path-not-found"],
    ["/.tasks/.hidden/wait", "path-not-found"],
    [`/.tasks/${"x".repeat(129)}`, "path-not-found"],
    ["/.tasks/1/", "not-a-directory"],
    ["/.tasks/1/wait/", "not-a-directory"],
    ["/.tasks/1/wait/x", "not-a-directory"],
    ["/.tasks/1/size", "not-a-directory"],
    ["/q/.tasks", "path-not-found"],
    ["/q/.tasks/1", "path-not-found"],
    ["/q/.hidden", "path-not-found"],
    ["/q/.hidden/size", "path-not-found"],
    ["/q/size/", "not-a-directory"],
    ["/q/size/.", "not-a-directory"],
    ["/q/size/x", "not-a-directory"],
    ["/q/size/size", "not-a-directory"],
  ])("%s is %s", (path, code) => {
    expect(codeOf(() => parsePath(path))).toBe(code);
  });

  test.each([Uint8Array.of(0x2f, 0xff), Uint8Array.of(0x2f, 0xed, 0xa0, 0x80), new Uint8Array(0), 5, null, undefined, {}, ["/q"]])(
    "%s is no path",
    (path) => {
      expect(codeOf(() => parsePath(path as string))).toBe("invalid-name");
      expect(codeOf(() => parseNewDirectory(path as string))).toBe("invalid-name");
    },
  );

  test.each(["/size", "/q/ack", "/q/enqueue/x", "/.x", "/q/.wait", "/.tasks", "/.tasks/1", "/.tasks/1/wait"])(
    "%s cannot be made, since it is reserved",
    (path) => {
      expect(codeOf(() => parseNewDirectory(path))).toBe("reserved-name");
    },
  );

  test("a byte order mark is part of a name, not a mark", () => {
    expect(parsePath(Uint8Array.of(0x2f, 0xef, 0xbb, 0xbf, 0x71))).toMatchObject({ name: "\ufeffq" });
    expect(codeOf(() => parsePath(Uint8Array.of(0xef, 0xbb, 0xbf, 0x2f, 0x71)))).toBe("invalid-name");
  });
});

test("any path at all is parsed or refused with a code, and what is shown leads to the same place", () => {
  const component = fc.oneof(
    fc.constantFrom("q", "size", ".wait", ".tasks", "wait", "..", ".", "", "enqueue", "\0", "\ud800"),
    fc.string({ maxLength: 4 }),
  );
  const path = fc.oneof(
    fc.array(component, { maxLength: 6 }).map((components) => `/${components.join("/")}`),
    fc.string({ unit: "binary" }),
    fc.uint8Array({ maxLength: 20 }),
  );
  fc.assert(
    fc.property(path, (one) => {
      for (const parse of [parsePath, parseNewDirectory]) {
        try {
          parse(one);
        } catch (error) {
          expect(isQueueFSError(error), String(error)).toBe(true);
          return;
        }
      }
      const parsed = parsePath(one);
      expect(parsePath(parsed.shown)).toEqual(parsed);
    }),
  );
});
