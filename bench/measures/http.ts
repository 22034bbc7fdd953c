/**
 * HTTP: what a store costs behind a server instead of in the process, what the server costs beside an empty handler, and what clients that
 * only wait cost those that work.
 */

import { type ChildProcess, fork } from "node:child_process";
import { Agent, get, request } from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Backend } from "../../src/backend/contract.ts";
import type { openHttp } from "../../src/backend/http/index.ts";
import { parseQueueName } from "../../src/core/names.ts";
import { Load, PAYLOAD, runCallers } from "../contender.ts";
import { QUEUE } from "../contenders/queuefs.ts";
import { quantile } from "../results.ts";
import { type Run, turns } from "../settings.ts";
import type { HttpMemory, HttpTask } from "./http-main.ts";

/** The suites. */
export const BATCH_SUITE = "http-batches";
/** Single calls. */
export const CALL_SUITE = "http-calls";
/** Beside clients that wait. */
export const IDLE_SUITE = "http-idle";
/** Contenders of the first. */
export const IN_PROCESS = "in the process";
/** The other. */
export const OVER_HTTP = "over HTTP";
/** Contenders of the second. */
export const EMPTY_HANDLER = "an empty handler";
/** The other. */
export const SERVER = "queuefs serve, memory";
/** Contenders of the third. */
export const ALONE = "alone";
/** The other. */
export const BESIDE_IDLE = "beside 1,000 long polls and 200 readers of events";
/** The measure of the first suite, of a store. */
export const batchMeasure = (store: string): string => `${store}: enqueue, dequeue and ack of 100`;
/** The measure of the second. */
export const ENQUEUE_CALL = "enqueue of one message";
/** Measures of the third. */
export const IDLE_MEDIAN = "a cycle of three calls, p50";
/** The slow ones. */
export const IDLE_P99 = "a cycle of three calls, p99";
/** Of the server. */
export const IDLE_MEMORY = "memory of the server";

const BATCH = 100;
const BATCH_CALLERS = 8;
const CALLERS = 32;
const LOAD_CALLERS = 8;
const LONG_POLLS = 1_000;
const READERS = 200;
/** Queues that the idle consumers wait at. */
const IDLE_QUEUES = 10;
/** The windows here are longer than those within a process. */
const WINDOWS = 4;

/**
 * Measures callers after as long a time in which nothing is counted: each server is a fresh process, whose first seconds tell how Node compiles,
 * and not what a call costs.
 */
async function measureWarm(run: Run, callers: number, call: () => Promise<void>): Promise<Load> {
  const durationMs = run.settings.windowMs * WINDOWS;
  await runCallers(new Load(callers, { durationMs }), call);
  const load = new Load(callers, { durationMs });
  await runCallers(load, call);
  return load;
}

interface Server {
  readonly url: string;
  readonly port: number;
  readonly residentBytes: () => Promise<number>;
  readonly stop: () => Promise<void>;
}

function next<Message>(child: ChildProcess): Promise<Message> {
  return new Promise((resolve, reject) => {
    child.once("message", (message) => resolve(message as Message));
    child.once("exit", (exitCode) => reject(new Error(`a server of the benchmark ended with ${exitCode}`)));
  });
}

async function startServer(task: HttpTask): Promise<Server> {
  const main = fileURLToPath(new URL("./http-main.ts", import.meta.url));
  const child = fork(main, [JSON.stringify(task)], { execArgv: [...process.execArgv, "--expose-gc"] });
  const port = await next<number>(child);
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    residentBytes: async () => {
      child.send("memory");
      return (await next<HttpMemory>(child)).residentBytes;
    },
    stop: async () => {
      child.disconnect();
      await ended;
    },
  };
}

async function openClient(url: string): Promise<Backend> {
  const module = (await import(new URL("../../dist/backend/http/index.js", import.meta.url).href)) as {
    readonly openHttp: typeof openHttp;
  };
  return module.openHttp({ url });
}

/** Everything about HTTP. */
export async function runHttp(run: Run): Promise<void> {
  run.results.begin(BATCH_SUITE, {
    title: "HTTP: messages per second in batches of 100",
    base: IN_PROCESS,
    order: [IN_PROCESS, OVER_HTTP],
    note: `${BATCH_CALLERS} callers, each with a cycle at a time. The server is a process of its own beside the client's, measured once it is warm; SQLite with durability normal.`,
  });
  run.results.begin(CALL_SUITE, {
    title: "HTTP: single calls per second",
    base: EMPTY_HANDLER,
    order: [EMPTY_HANDLER, SERVER],
    note: `${CALLERS} connections that are kept, a request at a time on each. The empty handler reads the same body and answers the same bytes. Both are measured once they are warm.`,
  });
  run.results.begin(IDLE_SUITE, {
    title: "HTTP: clients that only wait",
    base: ALONE,
    order: [ALONE, BESIDE_IDLE],
    note: `${LOAD_CALLERS} callers enqueue, dequeue and ack one message after the other; the readers hear of each change. Memory after a collection of garbage.`,
  });
  for (let round = 0; round < run.settings.rounds; round += 1) {
    await measureBatches(run, round);
    await measureCalls(run, round);
    await measureIdle(run, round);
  }
}

async function measureBatches(run: Run, round: number): Promise<void> {
  for (const name of ["memory", "SQLite"] as const) {
    for (const contender of turns([IN_PROCESS, OVER_HTTP], round)) {
      run.tell(`http, round ${round + 1}: batches, ${name} ${contender}`);
      await run.inFolder(async (folder) => {
        const path = join(folder, "queue.db");
        const server = contender === OVER_HTTP ? await startServer({ store: name, path }) : undefined;
        const { openMemory, openSqlite } = run.library;
        const store =
          server !== undefined
            ? await openClient(server.url)
            : name === "memory"
              ? await openMemory()
              : await openSqlite({ path, durability: "normal" });
        await store.createQueue(QUEUE);
        const messages = Array.from({ length: BATCH }, () => ({ data: PAYLOAD }));
        const load = await measureWarm(run, BATCH_CALLERS, async () => {
          await store.enqueue(QUEUE, messages);
          const deliveries = await store.dequeue(QUEUE, { limit: BATCH });
          await store.ack(
            QUEUE,
            deliveries.map(({ receipt }) => ({ receipt })),
          );
        });
        run.results.record(BATCH_SUITE, batchMeasure(name), contender, "/s", load.perSecond * BATCH);
        await store.close();
        await server?.stop();
      });
    }
  }
}

const BODY = JSON.stringify({ messages: [{ data: PAYLOAD.toString() }] });

/** One request on a connection that is kept; the answer is read to its end. */
function post(agent: Agent, port: number, path: string, body: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
    const sent = request({ agent, port, host: "127.0.0.1", method: "POST", path, headers }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (part: string) => {
        text += part;
      });
      response.on("end", () => {
        if ((response.statusCode ?? 500) < 300) resolve(text);
        else reject(new Error(`${path} was answered with ${response.statusCode}: ${text}`));
      });
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

async function measureCalls(run: Run, round: number): Promise<void> {
  for (const contender of turns([EMPTY_HANDLER, SERVER], round)) {
    run.tell(`http, round ${round + 1}: single calls, ${contender}`);
    const server = await startServer({ store: contender === SERVER ? "memory" : "nothing", path: "" });
    const agent = new Agent({ keepAlive: true, maxSockets: CALLERS });
    const load = await measureWarm(run, CALLERS, async () => {
      await post(agent, server.port, `/api/v1/queues/${encodeURIComponent(QUEUE)}/messages`, BODY);
    });
    run.results.record(CALL_SUITE, ENQUEUE_CALL, contender, "/s", load.perSecond);
    agent.destroy();
    await server.stop();
  }
}

/** Clients that wait, until they are told to leave. */
async function beginIdle(server: Server): Promise<() => void> {
  const agent = new Agent({ keepAlive: false, maxSockets: Number.POSITIVE_INFINITY });
  const leave: (() => void)[] = [];
  let isOver = false;
  const streams = Array.from(
    { length: READERS },
    () =>
      new Promise<void>((resolve, reject) => {
        const sent = get({ agent, port: server.port, host: "127.0.0.1", path: "/api/v1/events" }, (response) => {
          response.resume();
          if (response.statusCode === 200) resolve();
          else reject(new Error(`a reader was answered with ${response.statusCode}`));
        });
        sent.on("error", (error) => (isOver ? undefined : reject(error)));
        leave.push(() => sent.destroy());
      }),
  );
  await Promise.all(streams);
  for (let index = 0; index < LONG_POLLS; index += 1) {
    const body = '{"waitMs":60000}';
    const sent = request({
      agent,
      port: server.port,
      host: "127.0.0.1",
      method: "POST",
      path: `/api/v1/queues/idle-${index % IDLE_QUEUES}/dequeue`,
      headers: { "content-type": "application/json", "content-length": body.length },
    });
    sent.on("error", () => {});
    sent.end(body);
    leave.push(() => sent.destroy());
  }
  // All wait once the server says so.
  for (let isWaiting = false; !isWaiting; ) {
    const metrics = await (await fetch(`${server.url}/metrics`)).text();
    isWaiting = metrics.includes(`queuefs_http_long_polls ${LONG_POLLS}\n`);
  }
  return () => {
    isOver = true;
    for (const each of leave) each();
    agent.destroy();
  };
}

async function measureIdle(run: Run, round: number): Promise<void> {
  for (const contender of turns([ALONE, BESIDE_IDLE], round)) {
    run.tell(`http, round ${round + 1}: ${contender}`);
    const server = await startServer({ store: "memory", path: "" });
    const store = await openClient(server.url);
    for (let index = 0; index < IDLE_QUEUES; index += 1) await store.createQueue(parseQueueName(`idle-${index}`));
    const leave = contender === BESIDE_IDLE ? await beginIdle(server) : undefined;
    const durations: number[] = [];
    const load = new Load(LOAD_CALLERS, { durationMs: run.settings.windowMs * WINDOWS });
    await runCallers(load, async () => {
      const begunMs = performance.now();
      await store.enqueue(QUEUE, [{ data: PAYLOAD }]);
      const deliveries = await store.dequeue(QUEUE);
      await store.ack(
        QUEUE,
        deliveries.map(({ receipt }) => ({ receipt })),
      );
      durations.push(performance.now() - begunMs);
    });
    run.results.record(IDLE_SUITE, IDLE_MEDIAN, contender, "ms", quantile(durations, 0.5));
    run.results.record(IDLE_SUITE, IDLE_P99, contender, "ms", quantile(durations, 0.99));
    run.results.record(IDLE_SUITE, IDLE_MEMORY, contender, "bytes", await server.residentBytes());
    leave?.();
    await store.close();
    await server.stop();
  }
}
