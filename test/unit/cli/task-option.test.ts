import { resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { taskOf } from "../../../src/cli/task-option.ts";

const around = { QUEUEFS_STORE: `sqlite:${resolve("a.db")}`, QUEUEFS_TASK: "t-1" };

describe("taskOf", () => {
  it("is that of the option, whatever the environment says", () => {
    expect(taskOf("other", undefined, around)).toBe("other");
    expect(taskOf("other", "memory:", {})).toBe("other");
  });

  it("is that of the environment, if there is one", () => {
    expect(taskOf(undefined, undefined, around)).toBe("t-1");
    expect(taskOf(undefined, "memory:", { QUEUEFS_TASK: "t-1" })).toBe("t-1");
    expect(taskOf(undefined, undefined, { QUEUEFS_TASK: "" })).toBeUndefined();
    expect(taskOf(undefined, undefined, {})).toBeUndefined();
  });

  it("is none when that is asked for", () => {
    expect(taskOf(false, undefined, around)).toBeUndefined();
  });

  it("is that of the environment only in its store, however that is written", () => {
    expect(taskOf(undefined, "sqlite:./a.db", around)).toBe("t-1");
    expect(taskOf(undefined, "sqlite:b.db", around)).toBeUndefined();
    expect(taskOf(undefined, "redis://localhost", around)).toBeUndefined();
  });

  it("is never malformed", () => {
    expect(() => taskOf("a b", undefined, {})).toThrow(/task id/);
    expect(() => taskOf(undefined, undefined, { QUEUEFS_TASK: "a/b" })).toThrow(/task id/);
  });
});
