import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseQueueName, RESERVED_COMPONENTS } from "../../../src/core/names.ts";
import { renameQueues } from "../../../src/migrate/queue-names.ts";

const key = (name: string | Uint8Array): string => Buffer.from(name as string).toString("latin1");

function renamed(...names: (string | Uint8Array)[]): Record<string, string> {
  return Object.fromEntries(renameQueues(names.map(key)).map((queue) => [queue.oldName, queue.queue]));
}

describe("renameQueues", () => {
  it("leaves good names alone", () => {
    const queues = renameQueues(["jobs", "imports/parse", "日本/q", "a b"].map(key));
    for (const queue of queues) expect(queue).toMatchObject({ queue: queue.oldName });
    for (const queue of queues) expect(queue.reason).toBeUndefined();
  });

  it("marks the component that is reserved, and says why", () => {
    expect(renamed("status", "jobs/status", "jobs/messages", "status/size")).toEqual({
      status: "migrated-status",
      "jobs/status": "jobs/migrated-status",
      "jobs/messages": "jobs/migrated-messages",
      "status/size": "migrated-status/migrated-size",
    });
    expect(renameQueues([key("jobs/status")])[0]?.reason).toContain("control file");
  });

  it("finds names for all that was possible before", () => {
    expect(renamed("", "/", "/lead", "trail/", "a//b", ".hidden", ".", "..", "line\nend", "100%\u0001", Uint8Array.of(0x61, 0xff))).toEqual(
      {
        "": expect.stringMatching(/^migrated-unnamed-[0-9a-f]{12}$/),
        "/": expect.stringMatching(/^migrated-unnamed-[0-9a-f]{12}$/),
        "/lead": "lead",
        "trail/": "trail",
        "a//b": "a/b",
        ".hidden": "migrated-.hidden",
        ".": "migrated-.",
        "..": "migrated-..",
        "line\nend": "migrated-line%0Aend",
        "100%\u0001": "migrated-100%25%01",
        "a\ufffd": "migrated-a%FF",
      },
    );
  });

  it("never takes the name of another queue", () => {
    const names = renamed("status", "migrated-status", "/a", "a", "a/", "/a/");
    expect(names["migrated-status"]).toBe("migrated-status");
    expect(names.status).toMatch(/^migrated-status-[0-9a-f]{12}$/);
    expect(names.a).toBe("a");
    expect(new Set(Object.values(names)).size).toBe(6);
  });

  it("does not depend on the order, nor on repeats", () => {
    const names = ["status", "migrated-status", "/a", "a", "x/./y"].map(key);
    expect(renameQueues([...names].reverse().concat(names))).toEqual(renameQueues(names));
  });

  it("cuts what is too long between characters, and folds what is too deep", () => {
    const long = renameQueues([key("日".repeat(2_000)), key("日".repeat(2_001)), key(`${"d/".repeat(40)}end`), key("x".repeat(300_000))]);
    for (const queue of long) expect(() => parseQueueName(queue.queue)).not.toThrow();
    expect(new Set(long.map((queue) => queue.queue)).size).toBe(4);
  });

  it("keeps any set of names apart, every one of them good, and every good one untouched", () => {
    const component = fc.oneof(
      fc.constantFrom(...RESERVED_COMPONENTS, "", ".", "..", "a", "migrated-status", "migrated-a"),
      fc.string({ unit: "binary", maxLength: 8 }).filter((text) => !/[\ud800-\udfff]/u.test(text)),
    );
    const name = fc.oneof(
      fc.array(component, { maxLength: 4 }).map((components) => key(components.join("/"))),
      fc.uint8Array({ maxLength: 12 }).map(key),
    );
    fc.assert(
      fc.property(fc.array(name), (keys) => {
        const queues = renameQueues(keys);
        expect(queues.map((queue) => queue.key)).toEqual([...new Set(keys)].sort());
        expect(new Set(queues.map((queue) => queue.queue)).size).toBe(queues.length);
        for (const queue of queues) {
          expect(parseQueueName(queue.queue)).toBe(queue.queue);
          if (queue.reason === undefined) expect(key(queue.queue)).toBe(queue.key);
        }
      }),
    );
  });
});
