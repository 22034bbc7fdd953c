/** A reply that is lost must not double a step, nor make it look undone; and a server that is away for a while is waited for. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Backend } from "../../src/backend/contract.ts";
import { type HttpOptions, openHttp } from "../../src/backend/http/index.ts";
import { openMemory } from "../../src/backend/memory/index.ts";
import { openSqlite } from "../../src/backend/sqlite/index.ts";
import { QueueFSError } from "../../src/core/errors.ts";
import { type MessageId, parseQueueName, type Receipt } from "../../src/core/names.ts";
import { type HttpServer, listen } from "../../src/http/index.ts";
import { ManualClock } from "../../src/testing/index.ts";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy.ts";

const JOBS = parseQueueName("jobs");
const NEXT = parseQueueName("next");
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const texts = (...all: string[]): { data: Uint8Array }[] => all.map((text) => ({ data: bytes(text) }));

let folder: string;
/** The store as it is, past the server. */
let direct: Backend;
let server: HttpServer;
let proxy: TcpProxy;
/** Talks through the proxy. */
let backend: Backend;
let told: unknown[];
const opened: Backend[] = [];

async function open(options?: HttpOptions): Promise<Backend> {
  const store = await openHttp({ url: `http://127.0.0.1:${proxy.port}`, onError: (error) => void told.push(error), ...options });
  opened.push(store);
  return store;
}

beforeEach(async () => {
  told = [];
  folder = await mkdtemp(join(tmpdir(), "queuefs-http-"));
  direct = await openSqlite({ path: join(folder, "queue.db"), durability: "normal" });
  await direct.createQueue(JOBS);
  await direct.createQueue(NEXT);
  server = await listen(direct, { port: 0 });
  proxy = await startTcpProxy(server.port);
  backend = await open();
});

afterEach(async () => {
  proxy.losesReplies = false;
  for (const store of opened.splice(0)) await store.close();
  await proxy.stop();
  await server.stop();
  await direct.close();
  await rm(folder, { recursive: true });
});

async function take(count = 1): Promise<Awaited<ReturnType<Backend["dequeue"]>>> {
  const messages = await direct.dequeue(JOBS, { limit: count, owner: "receipt" });
  expect(messages).toHaveLength(count);
  return messages;
}

/** Makes the call, throws its first answer away, breaks the connection, and gives what the call answers in the end. */
async function losing<Answer>(call: () => Promise<Answer>, meanwhile?: () => Promise<void>): Promise<Answer> {
  proxy.losesReplies = true;
  const answer = call();
  answer.catch(() => {});
  await sleep(60);
  await meanwhile?.();
  proxy.losesReplies = false;
  proxy.cut();
  return answer;
}

/** Another life of the server, at the same address. */
async function restart(store = direct): Promise<void> {
  const { port } = server;
  await server.stop();
  server = await listen(store, { port });
}

describe("a call whose reply was lost gets its first answer, and is done once", () => {
  it("enqueue", async () => {
    const [answer] = await losing(() => backend.enqueue(JOBS, texts("1")));
    expect(answer?.outcome).toBe("enqueued");
    expect(await direct.status(JOBS)).toEqual({ pending: 1, processing: 0 });
  });

  it("dequeue", async () => {
    await direct.enqueue(JOBS, texts("1", "2", "3"));
    const messages = await losing(() => backend.dequeue(JOBS, { limit: 2 }));
    expect(messages.map(({ data, deliveryCount }) => [Buffer.from(data).toString(), deliveryCount])).toEqual([
      ["1", 1],
      ["2", 1],
    ]);
    expect(await direct.status(JOBS)).toEqual({ pending: 1, processing: 2 });
    const acks = messages.map(({ receipt }) => ({ receipt }));
    expect(await backend.ack(JOBS, acks)).toEqual([
      { outcome: "acked", forwarded: [] },
      { outcome: "acked", forwarded: [] },
    ]);
  });

  it("ack, with what it forwards", async () => {
    await direct.enqueue(JOBS, texts("1"));
    const [held] = await take();
    const receipt = held?.receipt as never;
    const [answer] = await losing(() => backend.ack(JOBS, [{ receipt, forward: [{ queue: NEXT, messages: texts("f") }] }]));
    expect(answer).toMatchObject({ outcome: "acked", forwarded: [[{ outcome: "enqueued" }]] });
    expect(await direct.status(NEXT)).toEqual({ pending: 1, processing: 0 });
  });

  it("nack, release, redrive, drop, clear and removal", async () => {
    await direct.enqueue(JOBS, texts("1", "2"));
    const [one, two] = await take(2);
    if (one === undefined || two === undefined) throw new Error("two were taken");
    expect(await losing(() => backend.nack(JOBS, [{ receipt: one.receipt, giveUp: true }]))).toEqual(["dead"]);
    expect(await losing(() => backend.release(JOBS, [two.receipt]))).toEqual(["released"]);
    expect(await losing(() => backend.redrive(JOBS, [one.id]))).toEqual(["redriven"]);
    const [again] = await take();
    await direct.nack(JOBS, [{ receipt: again?.receipt as never, giveUp: true }]);
    expect(await losing(() => backend.drop(JOBS, [again?.id as MessageId]))).toEqual(["dropped"]);
    expect(await losing(() => backend.clear(JOBS))).toEqual({ pending: 1, processing: 0 });
    expect(await losing(() => backend.removeQueue(JOBS))).toBe(1);
  });

  it("making, sealing and removing a task", async () => {
    const created = await losing(() => backend.createTask({ type: "import", producer: { leaseMs: 60_000 } }));
    if (created.outcome !== "created" || created.producer === undefined) throw new Error("it was made");
    const { task, producer } = created;
    expect((await direct.tasks()).items).toHaveLength(1);
    expect(await losing(() => backend.sealTask(task.id, { producer }))).toMatchObject({ outcome: "sealed", task: { status: "completed" } });
    await losing(() => backend.removeTask(task.id));
    expect((await direct.tasks()).items).toHaveLength(0);
  });

  it("an error", async () => {
    const lost = losing(() => backend.removeQueue(parseQueueName("none")));
    await expect(lost).rejects.toMatchObject({ code: "queue-not-found" });
  });
});

it("a connection that has fallen silent is given up, and the call comes through on another", async () => {
  const patient = await open({ requestTimeoutMs: 150 });
  proxy.losesReplies = true;
  const answer = patient.enqueue(JOBS, texts("1"));
  await sleep(60);
  proxy.losesReplies = false;
  // The reply was thrown away and nothing breaks: only the silence tells.
  expect((await answer)[0]?.outcome).toBe("enqueued");
  expect(await direct.status(JOBS)).toEqual({ pending: 1, processing: 0 });
});

/** Makes a call whose first copy stays under way until it has been answered, and then comes after all. */
async function overtaking<Answer>(call: () => Promise<Answer>, afterwards?: () => Promise<unknown>): Promise<Answer> {
  proxy.keepsRequests = true;
  const calling = call();
  calling.catch(() => {});
  await sleep(60);
  proxy.keepsRequests = false;
  proxy.cut();
  const answer = await calling;
  await afterwards?.();
  await proxy.deliverLate();
  return answer;
}

describe("a copy of a call that comes after its repeat was answered changes nothing:", () => {
  it("a renewal does not shorten a later one", async () => {
    const clock = new ManualClock();
    await using timed = await openMemory({ clock, sweepIntervalMs: 3_600_000 });
    await timed.createQueue(JOBS);
    await restart(timed);
    await timed.enqueue(JOBS, texts("a"));
    const { receipt } = (await backend.dequeue(JOBS, { leaseMs: 60_000 }))[0] as { receipt: Receipt };
    const later = (): Promise<unknown> => backend.extend(JOBS, [{ receipt, leaseMs: 90_000 }]);
    expect(await overtaking(() => backend.extend(JOBS, [{ receipt, leaseMs: 1_000 }]), later)).toEqual(["extended"]);
    clock.advance(60_000);
    expect(await timed.recover()).toMatchObject({ recovered: 0 });
    await restart();
  });

  it("neither does a setting, nor what is said of a task", async () => {
    await overtaking(
      () => backend.configureQueue(JOBS, { maxDeliveries: 3 }),
      () => backend.configureQueue(JOBS, { maxDeliveries: 7 }),
    );
    expect((await direct.statistics(JOBS)).settings.maxDeliveries).toBe(7);
    const { task } = await direct.createTask({ type: "import", producer: { leaseMs: 60_000, owner: "receipt" } });
    await overtaking(
      () => backend.updateTask(task.id, { stage: "first" }),
      () => backend.updateTask(task.id, { stage: "second" }),
    );
    expect((await direct.task(task.id)).stage).toBe("second");
  });

  it("nor does what was refused for a while in between", async () => {
    let refusals = 2;
    const busy = new Proxy(direct, {
      get: (target, name: keyof Backend) => {
        const method = target[name];
        if (typeof method !== "function") return method;
        return (...values: unknown[]) => {
          if (name === "enqueue" && refusals-- > 0) return Promise.reject(new QueueFSError("store-busy", "busy"));
          return (method as (...values: unknown[]) => unknown).apply(target, values);
        };
      },
    });
    await restart(busy);
    // Of another life than the one it spoke to it would not hear at all.
    await backend.status(JOBS);
    expect(await overtaking(() => backend.enqueue(JOBS, texts("a")))).toMatchObject([{ outcome: "enqueued" }]);
    expect(await direct.status(JOBS)).toEqual({ pending: 1, processing: 0 });
  });
});

describe("after a restart of the server, which forgets its sessions,", () => {
  it("a step that may have happened is not done again: its outcome is unknown", async () => {
    await expect(losing(() => backend.enqueue(JOBS, texts("1")), restart)).rejects.toMatchObject({ code: "outcome-unknown" });
    expect(await direct.status(JOBS)).toEqual({ pending: 1, processing: 0 });
    expect((await backend.enqueue(JOBS, texts("2")))[0]?.outcome).toBe("enqueued");
  });

  it("a step that is harmless twice is done again", async () => {
    const message = { id: "chosen" as MessageId, data: bytes("1") };
    expect(await losing(() => backend.enqueue(JOBS, [message]), restart)).toEqual([{ outcome: "repeated", id: "chosen" }]);
    expect(await losing(() => backend.createQueue(parseQueueName("made")), restart)).toBe("exists");
    const [held] = await take();
    const item = { receipt: held?.receipt as never, leaseMs: 60_000 };
    expect(await losing(() => backend.extend(JOBS, [item]), restart)).toEqual(["extended"]);
    expect(await losing(() => backend.status(JOBS), restart)).toEqual({ pending: 0, processing: 1 });
  });
});

describe("a server that is away", () => {
  it("is waited for, by every call, and is told of once", async () => {
    proxy.refusesConnections = true;
    proxy.cut();
    const calls = [backend.enqueue(JOBS, texts("1")), backend.status(JOBS), backend.enqueue(JOBS, texts("2")), backend.listQueues()];
    await sleep(300);
    proxy.refusesConnections = false;
    await Promise.all(calls);
    expect(await direct.status(JOBS)).toEqual({ pending: 2, processing: 0 });
    expect(told.map(String)).toEqual([expect.stringContaining("connecting again")]);
  });

  it("may be restarted meanwhile", async () => {
    const { port, url } = server;
    // Past the proxy, which would take requests for a server that is not there.
    const near = await open({ url });
    await server.stop();
    // A request in the very turn in which the server lets go of the connection may have been read, for all that its client knows.
    await sleep(20);
    const call = near.enqueue(JOBS, texts("1"));
    await sleep(200);
    server = await listen(direct, { port });
    expect((await call)[0]?.outcome).toBe("enqueued");
    expect(await direct.status(JOBS)).toEqual({ pending: 1, processing: 0 });
  });

  it("is unreachable when it stays away too long", async () => {
    const impatient = await open({ url: server.url, outageMs: 100 });
    await server.stop();
    await sleep(20);
    await expect(impatient.enqueue(JOBS, texts("1"))).rejects.toMatchObject({ code: "store-unreachable" });
    expect(await direct.status(JOBS)).toEqual({ pending: 0, processing: 0 });
  });

  it("does not hold up closing", async () => {
    proxy.refusesConnections = true;
    proxy.cut();
    const call = backend.status(JOBS);
    call.catch(() => {});
    await sleep(50);
    const begunMs = performance.now();
    await backend.close();
    expect(performance.now() - begunMs).toBeLessThan(1_000);
    await expect(call).rejects.toMatchObject({ code: "closed" });
  });
});
