/** Tasks as JSON. */

import { expect, test } from "vitest";
import { parseMessageId, parseQueueName, parseTaskId } from "../../../src/core/names.ts";
import type { Task } from "../../../src/core/task.ts";
import { describeTask } from "../../../src/core/task-json.ts";

const task: Task = {
  updatedAtMs: 1_700_000_000_123,
  createdAtMs: 0,
  progress: { unacked: 1, cancelled: 0, failed: 1, done: 2, total: 4 },
  sealed: false,
  status: "running",
  type: "import",
  id: parseTaskId("t-1"),
};

test("a task has its keys in one order, and no key for what does not apply", () => {
  expect(JSON.stringify(describeTask(task))).toBe(
    '{"id":"t-1","type":"import","status":"running","progress":{"total":4,"done":2,"failed":1,"cancelled":0,"unacked":1},' +
      '"sealed":false,"createdAt":"1970-01-01T00:00:00.000Z","updatedAt":"2023-11-14T22:13:20.123Z"}',
  );
});

test("a task with everything has everything", () => {
  const error = { message: parseMessageId("m-1"), queue: parseQueueName("q"), reason: "no" };
  const whole: Task = {
    ...task,
    resource: "/x",
    stage: "",
    meta: null,
    result: false,
    error,
    retryOf: parseTaskId("t-0"),
    finishedAtMs: 5,
  };
  const shown = describeTask(whole);
  expect(Object.keys(shown)).toEqual(
    ["id", "type", "resource", "status", "stage", "progress", "sealed", "meta", "result", "error", "retryOf"].concat([
      "createdAt",
      "updatedAt",
      "finishedAt",
    ]),
  );
  expect(shown).toMatchObject({ stage: "", meta: null, result: false, retryOf: "t-0", finishedAt: "1970-01-01T00:00:00.005Z" });
  expect(JSON.stringify(shown.error)).toBe('{"reason":"no","queue":"q","message":"m-1"}');
});
