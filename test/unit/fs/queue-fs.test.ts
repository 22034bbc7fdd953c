/** What the file face asks of its backend, and what it does when that fails or is slow. */

import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Backend } from "../../../src/backend/contract.ts";
import { openMemory } from "../../../src/backend/memory/index.ts";
import { CONTROL_FILES } from "../../../src/core/control-files.ts";
import { type ErrorCode, isQueueFSError, QueueFSError } from "../../../src/core/errors.ts";
import { DEFAULT_PLAIN_LEASE_MS, MAX_CONTROL_TEXT_BYTES } from "../../../src/core/limits.ts";
import type { DequeueOptions, ExtendItem } from "../../../src/core/message.ts";
import { parseQueueName, type Receipt } from "../../../src/core/names.ts";
import { type FileSystemPort, QueueFS } from "../../../src/fs/index.ts";
import { ManualClock } from "../../../src/testing/manual-clock.ts";
import { interpose } from "../../support/interpose.ts";

const Q = parseQueueName("q");
const LIMIT = 16 * 1024;

let backend: Backend;
let fs: QueueFS;

beforeEach(async () => {
  backend = await openMemory({ maxMessageBytes: LIMIT });
  fs = new QueueFS(backend);
  await fs.mkdir("/q");
});

afterEach(async () => {
  await fs.close();
  await backend.close();
});

function utf8(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

async function refusal(code: ErrorCode, action: Promise<unknown>): Promise<QueueFSError> {
  const outcome: unknown = await action.then(
    (answer) => ({ answer }),
    (error: unknown) => error,
  );
  if (!isQueueFSError(outcome))
    expect.fail(`refused as ${code}, but it ended with ${outcome instanceof Error ? outcome.stack : JSON.stringify(outcome)}`);
  expect(`${outcome.code}: ${outcome.message}`).toMatch(new RegExp(`^${code}: `));
  return outcome;
}

async function taken(): Promise<{ id: string; receipt: Receipt }> {
  await fs.write("/q/enqueue", utf8("work"));
  return JSON.parse(new TextDecoder().decode(await fs.read("/q/dequeue")));
}

/** A promise that the test resolves. */
function gate(): { opened: Promise<void>; open: () => void } {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

describe("the limit of a message", () => {
  test("is enforced while it is written, and nothing is stored", async () => {
    const handle = await fs.open("/q/enqueue", { mode: "write" });
    expect(await handle.write(new Uint8Array(LIMIT))).toBe(LIMIT);
    const error = await refusal("message-too-large", handle.write(Uint8Array.of(1)));
    expect(error.errno).toBe("EFBIG");
    await expect(handle.write(Uint8Array.of(1), 0)).rejects.toBe(error);
    await expect(handle.truncate(0)).rejects.toBe(error);
    await expect(handle.close()).rejects.toBe(error);
    await handle.discard();
    expect(await backend.status(Q)).toEqual({ pending: 0, processing: 0 });
  });

  test("covers gaps and lengthening, and is reached but not exceeded", async () => {
    const gap = await fs.open("/q/enqueue", { mode: "write" });
    await refusal("message-too-large", gap.write(Uint8Array.of(1), Number.MAX_SAFE_INTEGER - 1));
    await gap.discard();
    const longer = await fs.open("/q/enqueue", { mode: "write" });
    await refusal("message-too-large", longer.truncate(LIMIT + 1));
    await refusal("message-too-large", longer.close());
    await refusal("message-too-large", fs.write("/q/enqueue", new Uint8Array(LIMIT + 1)));
    const full = await fs.open("/q/enqueue", { mode: "write" });
    await full.write(Uint8Array.of(1), LIMIT - 1);
    expect(await full.close()).toMatchObject({ bytesWritten: 1 });
    expect((await backend.peek(Q))?.data).toHaveLength(LIMIT);
  });
});

describe("control files through handles", () => {
  test("act at the close on all that was written, byte by byte if need be", async () => {
    const { receipt } = await taken();
    const handle = await fs.open("/q/ack", { mode: "write" });
    for (const byte of utf8(` ${receipt}\n`)) await handle.write(Uint8Array.of(byte));
    expect(await backend.status(Q)).toEqual({ pending: 0, processing: 1 });
    await handle.close();
    expect(await backend.status(Q)).toEqual({ pending: 0, processing: 0 });
  });

  test("do nothing when nothing was written", async () => {
    await taken();
    for (const file of ["ack", "clear", ".nack", ".dead"]) await (await fs.open(`/q/${file}`, { mode: "write" })).close();
    expect(await backend.status(Q)).toEqual({ pending: 0, processing: 1 });
  });

  test("clear takes any amount and keeps none of it", async () => {
    await taken();
    const handle = await fs.open("/q/clear", { mode: "write" });
    for (let index = 0; index < 100; index += 1) await handle.write(new Uint8Array(MAX_CONTROL_TEXT_BYTES));
    expect(await handle.close()).toEqual({ bytesWritten: 100 * MAX_CONTROL_TEXT_BYTES });
    expect(await backend.status(Q)).toEqual({ pending: 0, processing: 0 });
  });

  test("refuse more text than any receipt could need while it is written", async () => {
    const handle = await fs.open("/q/ack", { mode: "write" });
    await handle.write(new Uint8Array(MAX_CONTROL_TEXT_BYTES).fill(0x20));
    await refusal("invalid-argument", handle.write(utf8("x")));
    await refusal("invalid-argument", handle.close());
  });

  test("when eager, act inside the write that makes the text whole, and once", async () => {
    const { receipt } = await taken();
    const handle = await fs.open("/q/ack", { mode: "write", eager: true });
    await handle.write(utf8("\n "));
    await handle.write(utf8(receipt.slice(0, 4)));
    await handle.write(utf8(receipt.slice(4)));
    expect(await backend.status(Q)).toEqual({ pending: 0, processing: 1 });
    await handle.write(utf8("\n"));
    expect(await backend.status(Q)).toEqual({ pending: 0, processing: 0 });
    await handle.write(utf8(" \n"));
    await refusal("invalid-argument", handle.write(utf8(receipt)));
    const partial = await fs.open("/q/ack", { mode: "write", eager: true });
    await partial.write(utf8((await taken()).receipt));
    await partial.close();
    expect(await backend.status(Q)).toEqual({ pending: 0, processing: 0 });
  });

  test("when eager, tell a failure to the writer", async () => {
    const stale = await fs.open("/q/ack", { mode: "write", eager: true });
    await refusal("not-in-processing", stale.write(utf8("r-1-1-1\n")));
    await refusal("not-in-processing", stale.close());
    await taken();
    const clear = await fs.open("/q/clear", { mode: "write", eager: true });
    await clear.write(utf8("x"));
    expect(await backend.status(Q)).toEqual({ pending: 0, processing: 0 });
    await taken();
    await clear.write(utf8("x"));
    await clear.close();
    expect(await backend.status(Q)).toEqual({ pending: 0, processing: 1 });
    const enqueue = await fs.open("/q/enqueue", { mode: "write", eager: true });
    await enqueue.write(utf8("not yet\n"));
    expect(await backend.status(Q)).toEqual({ pending: 0, processing: 1 });
    await enqueue.close();
    expect(await backend.status(Q)).toEqual({ pending: 1, processing: 1 });
  });
});

describe("claims", () => {
  test("have the plain lease and no process as owner, unless told otherwise", async () => {
    const asked: (DequeueOptions | undefined)[] = [];
    const extended: (readonly ExtendItem[])[] = [];
    const recording = interpose(backend, {
      dequeue(queue, options) {
        asked.push(options);
        return backend.dequeue(queue, options);
      },
      extend(queue, items) {
        extended.push(items);
        return backend.extend(queue, items);
      },
    });
    await taken();
    await backend.enqueue(Q, [{ data: utf8("more") }]);
    await new QueueFS(recording).read("/q/dequeue");
    const other = new QueueFS(recording, { leaseMs: 5_000, owner: "process" });
    await backend.enqueue(Q, [{ data: utf8("more") }]);
    const { receipt } = JSON.parse(new TextDecoder().decode(await other.read("/q/dequeue")));
    await other.write("/q/.extend", utf8(receipt));
    expect(asked).toEqual([
      { leaseMs: DEFAULT_PLAIN_LEASE_MS, owner: "receipt" },
      { leaseMs: 5_000, owner: "process" },
    ]);
    expect(extended).toEqual([[{ receipt, leaseMs: 5_000 }]]);
  });

  test("that arrive after their reader went away are given back", async () => {
    await backend.enqueue(Q, [{ data: utf8("work") }]);
    const claim = gate();
    const slow = new QueueFS(
      interpose(backend, {
        async dequeue(queue, options) {
          const delivered = await backend.dequeue(queue, options);
          await claim.opened;
          return delivered;
        },
      }),
    );
    const controller = new AbortController();
    const reading = slow.read("/q/dequeue", { signal: controller.signal });
    reading.catch(() => {});
    const handle = await slow.open("/q/dequeue", { mode: "read" });
    await backend.enqueue(Q, [{ data: utf8("second") }]);
    const handleReading = handle.read({ length: 5 });
    handleReading.catch(() => {});
    controller.abort("gone");
    // Told at once, although the store has not answered yet.
    await expect(reading).rejects.toBe("gone");
    expect(await backend.status(Q)).toEqual({ pending: 0, processing: 2 });
    const closing = handle.close();
    claim.open();
    await closing;
    await refusal("closed", handleReading);
    await slow.close();
    expect(await backend.status(Q)).toEqual({ pending: 2, processing: 0 });
    expect((await backend.dequeue(Q, { limit: 2 })).map((one) => one.deliveryCount)).toEqual([1, 1]);
  });

  test("can be given back by whoever read them whole, until they are settled", async () => {
    await fs.write("/q/enqueue", utf8("work"));
    const given: (() => Promise<void>)[] = [];
    const onClaim = (giveBack: () => Promise<void>): number => given.push(giveBack);
    await fs.read("/q/dequeue", { onClaim });
    expect(await backend.status(Q)).toEqual({ pending: 0, processing: 1 });
    await given[0]?.();
    expect(await backend.status(Q)).toEqual({ pending: 1, processing: 0 });
    const { id } = JSON.parse(new TextDecoder().decode(await fs.read("/q/dequeue", { onClaim }))) as { id: string };
    await fs.write("/q/ack", utf8(id));
    await given[1]?.();
    await given[1]?.();
    expect(await backend.status(Q)).toEqual({ pending: 0, processing: 0 });
    // Nothing was claimed, so there is nothing to give back.
    await fs.read("/q/dequeue", { onClaim });
    await fs.read("/q/status", { onClaim });
    expect(given).toHaveLength(2);
  });

  test("whose outcome is unknown are not repeated by the same handle", async () => {
    await backend.enqueue(Q, [{ data: utf8("work") }, { data: utf8("more") }]);
    const unknown = new QueueFSError("outcome-unknown", "the connection broke");
    let claims = 0;
    const broken = new QueueFS(
      interpose(backend, {
        async dequeue(queue, options) {
          claims += 1;
          await backend.dequeue(queue, options);
          throw unknown;
        },
      }),
    );
    const handle = await broken.open("/q/dequeue", { mode: "read" });
    for (let attempt = 0; attempt < 3; attempt += 1) await expect(handle.read({ length: 10 })).rejects.toBe(unknown);
    expect(claims).toBe(1);
    await handle.close();
  });

  test("that cannot be given back are told: to whoever closes, or to onError", async () => {
    await backend.enqueue(Q, [{ data: utf8("work") }, { data: utf8("more") }]);
    const away = new QueueFSError("store-unreachable", "away");
    const told: unknown[] = [];
    const controller = new AbortController();
    const failing = new QueueFS(
      interpose(backend, {
        release: () => Promise.reject(away),
        dequeue(queue, options) {
          controller.abort("gone");
          return backend.dequeue(queue, options);
        },
      }),
      {
        onError(error) {
          told.push(error);
          throw new Error("a listener must not break the close");
        },
      },
    );
    await expect(failing.read("/q/dequeue", { signal: controller.signal })).rejects.toBe("gone");
    const handle = await failing.open("/q/dequeue", { mode: "read" });
    await handle.read({ length: 10 });
    await expect(handle.discard()).rejects.toBe(away);
    await failing.close();
    expect(told).toEqual([away]);
  });
});

test("a listing is read page by page, as far as its reader goes", async () => {
  await backend.enqueue(
    Q,
    Array.from({ length: 1_000 }, (_, index) => ({ data: utf8(`message ${index}`) })),
  );
  let pages = 0;
  const counting = new QueueFS(
    interpose(backend, {
      messages(queue, options) {
        pages += 1;
        return backend.messages(queue, options);
      },
    }),
  );
  const handle = await counting.open("/q/messages", { mode: "read" });
  expect(pages).toBe(0);
  await handle.read({ length: 100 });
  expect(pages).toBe(1);
  await handle.close();
  await counting.close();
  expect(pages).toBe(1);
});

test("redriving all dead letters ends, although they die again meanwhile", async () => {
  await backend.enqueue(
    Q,
    Array.from({ length: 250 }, () => ({ data: utf8("poison") })),
  );
  const die = async (): Promise<void> => {
    const deliveries = await backend.dequeue(Q, { limit: 1_000 });
    await backend.nack(
      Q,
      deliveries.map(({ receipt }) => ({ receipt, giveUp: true })),
    );
  };
  await die();
  let moved = 0;
  const poisoned = new QueueFS(
    interpose(backend, {
      async redrive(queue, ids) {
        const answers = await backend.redrive(queue, ids);
        moved += ids.length;
        await die();
        return answers;
      },
    }),
  );
  await poisoned.write("/q/.dead", utf8('{"redrive":"all"}'));
  expect(moved).toBe(250);
  expect((await backend.statistics(Q)).dead).toBe(250);
});

test("modification times are when the face was opened, and stay", async () => {
  const clock = new ManualClock({ wallMs: 1_234_567 });
  const face = new QueueFS(backend, { clock });
  clock.advance(60_000);
  expect((await face.stat("/q")).modifiedAtMs).toBe(1_234_567);
  expect((await face.stat("/q/peek")).modifiedAtMs).toBe(1_234_567);
});

test("options of the face are checked", () => {
  for (const options of [{ leaseMs: 5 }, { owner: "me" }, { lease: 1 }, 5]) {
    expect(() => new QueueFS(backend, options as never)).toThrow(QueueFSError);
  }
});

test("whatever is asked at whatever path, it is answered or refused with a code", async () => {
  const component = fc.oneof(
    fc.constantFrom("q", "r", "s t", "..", ".", "", "\0", "\ud800", ".tasks"),
    fc.constantFrom(...Object.keys(CONTROL_FILES)),
  );
  const path = fc.oneof(
    fc.array(component, { maxLength: 4 }).map((components) => `/${components.join("/")}`),
    fc.string({ unit: "binary", maxLength: 6 }),
    fc.uint8Array({ maxLength: 8 }),
  );
  const data = fc.oneof(fc.uint8Array({ maxLength: 20 }), fc.json().map(utf8), fc.constantFrom(utf8('{"drop":"all"}'), utf8("r-1-1-1")));
  const action = fc.oneof(
    fc.record({ do: fc.constantFrom("read", "stat", "readdir", "mkdir", "rm", "touch", "rename", "watch") }),
    fc.record({ do: fc.constantFrom("write", "hold"), data }),
    fc.record({ do: fc.constant("truncate"), size: fc.oneof(fc.nat(), fc.double()) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(path, action), { maxLength: 12 }), async (steps) => {
      const face = new QueueFS(backend);
      for (const [at, step] of steps) {
        const outcome: unknown = await act(face, at, step).catch((error: unknown) => error);
        if (outcome instanceof Error) expect(isQueueFSError(outcome), outcome.stack).toBe(true);
      }
      await face.close();
    }),
    { numRuns: 300 },
  );
});

async function act(
  face: FileSystemPort,
  path: string | Uint8Array,
  step: { do: string; data?: Uint8Array; size?: number },
): Promise<unknown> {
  switch (step.do) {
    case "read":
      // A read of .wait may wait for ever.
      return face
        .read(path, { signal: AbortSignal.timeout(5) })
        .catch((error: unknown) => (error instanceof DOMException ? undefined : Promise.reject(error)));
    case "write":
      return face.write(path, step.data as Uint8Array);
    case "hold": {
      const handle = await face.open(path, { mode: "write", eager: true });
      await handle.write(step.data as Uint8Array);
      return handle.close();
    }
    case "truncate":
      return face.truncate(path, step.size as number);
    case "rename":
      return face.rename(path, "/elsewhere");
    case "watch":
      return face.watch(path).return?.();
    case "stat":
      return face.stat(path);
    case "readdir":
      return face.readdir(path, { all: true });
    case "mkdir":
      return face.mkdir(path);
    case "rm":
      return face.rm(path, { recursive: true });
    default:
      return face.touch(path);
  }
}
