import { describe, expect, it } from "vitest";
import { ERROR_TABLE, type ErrorCode, QueueFSError, queueNotFound } from "../../../src/core/errors.ts";
import type { MessageId, QueueName, Receipt, TaskId } from "../../../src/core/names.ts";
import type { Task } from "../../../src/core/task.ts";
import {
  acksFromWire,
  acksToWire,
  deadLetterFromWire,
  deliveredFromWire,
  errorOfProblem,
  listedFromWire,
  messageFromWire,
  messageToWire,
  newMessagesFromWire,
  newMessageToWire,
  problemOf,
  taskFailureFromWire,
  taskFromWire,
  taskToWire,
} from "../../../src/core/wire.ts";
import { BytesBeside, decodeFrame, encodeFrame, parseJson } from "../../../src/core/wire-bytes.ts";

const PAYLOADS = [
  new Uint8Array(0),
  Buffer.from("text\r\n"),
  Buffer.from("\ufeffwith a mark\0"),
  Buffer.from([0xff, 0, 0xfe]),
  Buffer.from("{}"),
];
const message = {
  id: "m-s-1-2" as MessageId,
  data: new Uint8Array([0xff, 1]),
  enqueuedAtMs: 1_700_000_000_123,
  deliveryCount: 3,
  task: "t-s-1" as TaskId,
};

/** Sends a value through JSON, as a body does. */
function throughJson<Value>(value: Value): Value {
  return JSON.parse(JSON.stringify(value)) as Value;
}

describe("messages", () => {
  it("come back as they were, whatever their bytes", () => {
    for (const data of PAYLOADS) {
      const [back] = newMessagesFromWire(throughJson([newMessageToWire({ data, id: "a" as MessageId, delayMs: 5 })]));
      expect(back).toEqual({ data: new Uint8Array(data), id: "a", delayMs: 5 });
    }
  });

  it("come back from the binary form, one behind the other", () => {
    const beside = new BytesBeside();
    const json = PAYLOADS.map((data) => newMessageToWire({ data }, beside));
    const frame = decodeFrame(Buffer.concat([Buffer.from([9]), encodeFrame({ messages: json }, beside)]).subarray(1));
    const back = newMessagesFromWire((frame.json as { messages: unknown }).messages, frame.beside);
    expect(back).toEqual(PAYLOADS.map((data) => ({ data: new Uint8Array(data) })));
    frame.beside.end();
  });

  it("come back in every shape, in both forms", () => {
    const shapes = [
      [message, messageFromWire],
      [{ ...message, receipt: "r-1-2-3" as Receipt, leaseMs: 30_000 }, deliveredFromWire],
      [{ ...message, state: "pending" }, listedFromWire],
      [{ ...message, reason: "why", diedAtMs: 1_700_000_000_456 }, deadLetterFromWire],
      [{ ...message, reason: "", diedAtMs: 0, queue: "a/b" as QueueName }, taskFailureFromWire],
    ] as const;
    for (const [shape, back] of shapes) {
      expect(back(throughJson(messageToWire(shape as typeof message)))).toEqual(shape);
      const beside = new BytesBeside();
      const frame = decodeFrame(encodeFrame(messageToWire(shape as typeof message, beside), beside));
      expect(back(frame.json as Parameters<typeof back>[0], frame.beside)).toEqual(shape);
    }
  });

  it("keep what the store is to refuse", () => {
    expect(newMessagesFromWire([{ data: "", dealyMs: 5 }])).toEqual([{ data: new Uint8Array(0), dealyMs: 5 }]);
  });

  it("are refused where their form is wrong", () => {
    for (const json of [null, "x", [[]], [null], [{ data: 1 }], [{ data: "x", encoding: "base64" }], [{ data: 1, encoding: "bytes" }]])
      expect(() => newMessagesFromWire(json)).toThrow(expect.objectContaining({ code: "invalid-argument" }));
  });

  it("are forwarded as they are", () => {
    const acks = [
      { receipt: "r-1-2-3" as Receipt },
      { receipt: "r-1-2-4" as Receipt, forward: [{ queue: "b" as QueueName, messages: [{ data: new Uint8Array([0xff]), delayMs: 1 }] }] },
    ];
    expect(acksFromWire(throughJson(acksToWire(acks)))).toEqual(acks);
  });
});

describe("the binary form", () => {
  const frame = (json: unknown, bytes: number): Uint8Array => {
    const beside = new BytesBeside();
    beside.put(new Uint8Array(bytes));
    return encodeFrame(json, beside);
  };

  it("is refused when it is shorter than it says, or no JSON", () => {
    for (const bytes of [[], [0, 0, 0], [0, 0, 0, 3, 0x7b, 0x7d], [0xff, 0xff, 0xff, 0xff, 0x31], [0, 0, 0, 1, 0xff], [0, 0, 0, 1, 0x7b]])
      expect(() => decodeFrame(Uint8Array.from(bytes))).toThrow(expect.objectContaining({ code: "invalid-argument" }));
  });

  it("is refused when bytes are missing or left over", () => {
    for (const data of [3, -1, 1.5, "1", undefined]) {
      const { json, beside } = decodeFrame(frame([{ data, encoding: "bytes" }], 2));
      expect(() => newMessagesFromWire(json, beside)).toThrow(expect.objectContaining({ code: "invalid-argument" }));
    }
    const { json, beside } = decodeFrame(frame([{ data: 1, encoding: "bytes" }], 2));
    newMessagesFromWire(json, beside);
    expect(() => beside.end()).toThrow("1 bytes more");
  });

  it("gives copies", () => {
    const bytes = frame([{ data: 1, encoding: "bytes" }], 1);
    const { json, beside } = decodeFrame(bytes);
    const [back] = newMessagesFromWire(json, beside);
    bytes.fill(9);
    expect(back?.data).toEqual(new Uint8Array(1));
    expect(back?.data.buffer.byteLength).toBe(1);
  });
});

it("tasks come back as they were", () => {
  const task: Task = {
    id: "t-s-1" as TaskId,
    type: "import",
    resource: "é",
    status: "failed",
    progress: { total: 4, done: 1, failed: 1, cancelled: 1, unacked: 1 },
    sealed: true,
    meta: { a: [null, 1] },
    result: null,
    error: { reason: "no", queue: "a" as QueueName, message: "m" as MessageId },
    createdAtMs: 1,
    updatedAtMs: 2,
    finishedAtMs: 3,
  };
  expect(taskFromWire(throughJson(taskToWire(task)))).toEqual(task);
  const { finishedAtMs: _, error: _error, ...going } = task;
  expect(taskFromWire(throughJson(taskToWire(going)))).toEqual(going);
});

describe("errors", () => {
  it("come back with code and words", () => {
    for (const code of Object.keys(ERROR_TABLE) as ErrorCode[]) {
      const problem = throughJson(problemOf(new QueueFSError(code, `words of ${code}`)));
      expect(problem.status).toBe(ERROR_TABLE[code].httpStatus);
      expect(errorOfProblem(problem)).toMatchObject({ code, message: `words of ${code}` });
    }
    expect(problemOf(queueNotFound("a"))).toMatchObject({ type: "urn:queuefs:error:queue-not-found", retryable: false });
  });

  it("do not tell the words of what is none of ours", () => {
    expect(JSON.stringify(problemOf(new Error("password=x")))).not.toContain("password");
    expect(problemOf("thrown")).toMatchObject({ code: "internal", status: 500 });
  });

  it("of a newer server, or of something between, are told apart", () => {
    expect(errorOfProblem({ code: "brand-new", detail: "words" })).toMatchObject({ code: "store-failed", message: "brand-new: words" });
    for (const body of [undefined, null, "Bad Gateway", {}, { code: 1, detail: "x" }, { code: "closed" }])
      expect(errorOfProblem(body)).toBeUndefined();
  });

  it("JSON that is none is refused", () => {
    expect(() => parseJson("{")).toThrow(expect.objectContaining({ code: "invalid-argument" }));
  });
});
