/** What AGFS clients are told when the store fails: they repeat writes by themselves, and must not be led to do one twice. */

import { afterEach, describe, expect, test } from "vitest";
import type { Backend } from "../../../src/backend/contract.ts";
import { openMemory } from "../../../src/backend/memory/index.ts";
import { ERROR_TABLE, type ErrorCode, QueueFSError } from "../../../src/core/errors.ts";
import { AGFS_ROUTES } from "../../../src/http/agfs/routes.ts";
import { type App, createApp, type RequestEnd } from "../../../src/http/index.ts";
import { type Answered, askingOf, errorOf } from "../../support/agfs-face.ts";
import { interpose } from "../../support/interpose.ts";

let backend: Backend | undefined;
let app: App;
const face = askingOf(() => app);

afterEach(async () => {
  await app.close();
  await backend?.close();
});

/** Statuses after which pyagfs writes again; the Go SDK does after each from 500 on. */
const REPEATED_BY_PYAGFS = [502, 503, 504];

/** A server whose store fails in one way in all that changes or reads messages. */
async function failing(error: unknown, told: unknown[] = []): Promise<void> {
  backend = await openMemory();
  const fail = async (): Promise<never> => {
    throw error;
  };
  const methods = [
    "enqueue",
    "dequeue",
    "ack",
    "ackById",
    "extend",
    "nack",
    "clear",
    "peek",
    "status",
    "createQueue",
    "removeQueue",
  ] as const;
  app = createApp(interpose(backend, Object.fromEntries(methods.map((method) => [method, fail]))), {
    onError: (error) => told.push(error),
  });
}

const failures = (code: ErrorCode): Promise<void> => failing(new QueueFSError(code, "it failed"));

describe("a store that fails", () => {
  test("with nothing done says 503, after which a repeat is right", async () => {
    for (const code of ["store-busy", "store-unreachable", "overloaded", "closed"] as const) {
      await failures(code);
      for (const answer of [
        await face.write("/queuefs/q/enqueue", "x"),
        await face.read("/queuefs/q/dequeue"),
        await face.mkdir("/queuefs/q"),
      ])
        expect(answer.status, code).toBe(503);
    }
  });

  test("with an unknown outcome never leads to a second message, or to a second clear", async () => {
    await failures("outcome-unknown");
    for (const file of ["enqueue", "clear", ".nack"]) {
      const answer = await face.write(`/queuefs/q/${file}`, "r-00000000000000000000000000");
      expect(answer.status, file).toBeGreaterThanOrEqual(400);
      expect(answer.status, file).toBeLessThan(500);
    }
    expect((await face.write("/queuefs/q/enqueue", "x")).status).toBe(409);
    expect((await face.at("/write", "/queuefs/q/enqueue", { method: "POST", body: "x" })).status).toBe(409);
    // A repeat of these does no more than the first.
    expect(REPEATED_BY_PYAGFS).toContain((await face.write("/queuefs/q/ack", "m-1")).status);
    expect(REPEATED_BY_PYAGFS).toContain((await face.mkdir("/queuefs/q")).status);
    expect((await face.read("/queuefs/q/dequeue")).status).toBe(504);
  });

  test("for good is no case for a repeat", async () => {
    await failures("store-read-only");
    const answer = await face.write("/queuefs/q/enqueue", "x");
    expect(answer.status).toBe(403);
    expect(errorOf(answer)).toContain("permission denied");
    for (const code of ["store-failed", "store-corrupt", "store-full"] as const) {
      await failures(code);
      expect(REPEATED_BY_PYAGFS).not.toContain((await face.write("/queuefs/q/enqueue", "x")).status);
    }
  });

  test("in a way that has no words is told to whoever runs the server, and not to the client", async () => {
    const told: unknown[] = [];
    const error = new Error("password=secret");
    await failing(error, told);
    const answer = await face.write("/queuefs/q/enqueue", "x");
    expect(answer.status).toBe(500);
    expect(errorOf(answer)).not.toContain("secret");
    expect(told).toEqual([error]);
  });

  test("in whatever way, is told as JSON with a text, by each code of the table", async () => {
    for (const code of Object.keys(ERROR_TABLE) as ErrorCode[]) {
      await failures(code);
      const answer = await face.write("/queuefs/q/enqueue", "x");
      expect(errorOf(answer)).toContain("it failed");
      expect(answer.json.code).toBe(code);
    }
  });

  test("makes health degraded and readiness fail", async () => {
    backend = await openMemory();
    app = createApp(
      interpose(backend, {
        listQueues: async () => {
          throw new QueueFSError("store-unreachable", "it is away");
        },
      }),
    );
    expect(await face.ask("/health")).toMatchObject({ status: 200, json: { status: "degraded", ready: false, degraded: true } });
    expect(await face.ask("/ready")).toMatchObject({ status: 503, json: { ready: false } });
  });

  test("is healthy otherwise, until the server is about to stop", async () => {
    backend = await openMemory();
    app = createApp(backend);
    expect(await face.ask("/health", { method: "POST" })).toMatchObject({ status: 200, json: { status: "healthy", ready: true } });
    expect((await face.ask("/ready")).status).toBe(200);
    expect((await face.ask("/version")).json).toEqual({
      version: expect.stringMatching(/^\d+\./),
      gitCommit: "unknown",
      buildTime: "unknown",
    });
    app.drain();
    expect((await face.ask("/health")).json).toMatchObject({ ready: false, mounts: { mounted: 1 } });
    expect((await face.ask("/ready")).status).toBe(503);
    const root = await app.fetch(new Request("http://127.0.0.1/"));
    expect(await root.json()).toMatchObject({ service: "AGFS Server", status: "running" });
  });
});

describe("a store that is slow", () => {
  test("is not waited for without end, and what it took is given back", async () => {
    backend = await openMemory();
    const real = backend;
    let open = (): void => {};
    const opened = new Promise<void>((resolve) => {
      open = resolve;
    });
    const slowly = <Arguments extends unknown[], Result>(method: (...args: Arguments) => Promise<Result>) => {
      return async (...args: Arguments): Promise<Result> => {
        await opened;
        return method(...args);
      };
    };
    app = createApp(interpose(real, { enqueue: slowly((...args: Parameters<Backend["enqueue"]>) => real.enqueue(...args)) }), {
      answerTimeoutMs: 1_000,
    });
    await face.mkdir("/queuefs/q");
    const answer = await face.write("/queuefs/q/enqueue", "x");
    // It may yet be stored, so this must not be one that is repeated.
    expect(answer.status).toBe(409);
    expect(errorOf(answer)).toContain("may or may not");
    open();
    await expect.poll(() => face.status("/queuefs/q")).toEqual({ pending: 1, processing: 0 });
  });
});

describe("a message or body over the limit", () => {
  test("is too large, and not stored", async () => {
    backend = await openMemory({ maxMessageBytes: 1024 });
    app = createApp(backend);
    await face.mkdir("/queuefs/q");
    expect((await face.write("/queuefs/q/enqueue", "x".repeat(1024))).status).toBe(200);
    expect((await face.write("/queuefs/q/enqueue", "x".repeat(1025))).status).toBe(413);
    expect((await face.write("/queuefs/q/enqueue", "x".repeat(20 * 1024 * 1024))).status).toBe(413);
    expect(await face.status("/queuefs/q")).toEqual({ pending: 1, processing: 0 });
  });
});

describe("who may do what", () => {
  const all = "all-0123456789abcdef";
  const looker = "look-0123456789abcdef";
  const limited = "some-0123456789abcdef";
  const as = (secret: string): { headers: Record<string, string> } => ({
    headers: { authorization: `Basic ${Buffer.from(`agfs:${secret}`).toString("base64")}` },
  });
  async function open(): Promise<void> {
    backend = await openMemory();
    app = createApp(backend, {
      tokens: [{ secret: all }, { secret: looker, readOnly: true }, { secret: limited, queues: ["mine" as never] }],
    });
    for (const queue of ["mine", "theirs"]) await face.at("/directories", `/queuefs/${queue}`, { method: "POST", ...as(all) });
    await face.at("/files", "/queuefs/theirs/enqueue", { method: "PUT", body: "x", ...as(all) });
  }
  const denied = (answer: Answered): void => {
    expect(answer.status).toBe(403);
    expect(errorOf(answer)).toContain("permission denied");
  };

  test("nobody without a token, which is told in the form of this API", async () => {
    await open();
    const answer = await face.read("/queuefs/theirs/size");
    expect(answer.status).toBe(401);
    expect(errorOf(answer)).toContain("permission denied");
    expect((await face.ask("/health")).status).toBe(200);
  });

  test("a token that may only look takes no message", async () => {
    await open();
    expect((await face.at("/files", "/queuefs/theirs/peek", as(looker))).json.data).toBe("x");
    for (const [method, endpoint, path] of [
      ["GET", "/files", "/queuefs/theirs/dequeue"],
      ["PUT", "/files", "/queuefs/theirs/enqueue"],
      ["PUT", "/files", "/queuefs/theirs/clear"],
      ["POST", "/directories", "/queuefs/new"],
      ["DELETE", "/files", "/queuefs/theirs"],
    ] as const)
      denied(await face.at(endpoint, path, { method, ...as(looker) }));
    expect((await face.at("/files", "/queuefs/theirs/size", as(all))).text).toBe("1");
  });

  test("a token for some queues sees no others", async () => {
    await open();
    expect((await face.at("/files", "/queuefs/mine/enqueue", { method: "PUT", body: "x", ...as(limited) })).status).toBe(200);
    expect((await face.at("/files", "/queuefs/mine/dequeue", as(limited))).json.data).toBe("x");
    expect((await face.at("/directories", "/queuefs/mine/under", { method: "POST", ...as(limited) })).status).toBe(201);
    expect((await face.at("/stat", "/queuefs", as(limited))).status).toBe(200);
    const { task } = await (backend as Backend).createTask({ type: "import" });
    for (const path of [`/queuefs/.tasks/${task.id}`, `/queuefs/.tasks/${task.id}/wait`])
      expect((await face.at("/files", path, as(limited))).json.status).toBe("completed");
    denied(await face.at("/files", `/queuefs/.tasks/${task.id}`, { method: "DELETE", ...as(limited) }));
    for (const [method, endpoint, path] of [
      ["GET", "/files", "/queuefs/theirs/peek"],
      ["GET", "/stat", "/queuefs/theirs"],
      ["GET", "/directories", "/queuefs"],
      ["GET", "/directories", "/queuefs/.tasks"],
      ["POST", "/directories", "/queuefs/mines"],
      ["PUT", "/files", "/queuefs/mine/../theirs/clear"],
      ["DELETE", "/files", "/queuefs/theirs"],
      ["POST", "/touch", "/queuefs/theirs/size"],
      ["POST", "/truncate", "/queuefs/theirs/ack"],
    ] as const)
      denied(await face.at(endpoint, path, { method, query: { size: "0", recursive: "true" }, ...as(limited) }));
    for (const path of ["/queuefs/theirs", "/queuefs", "/"])
      denied(await face.ask("/grep", { method: "POST", body: JSON.stringify({ path, pattern: "x", recursive: true }), ...as(limited) }));
    denied(
      await face.ask("/digest", {
        method: "POST",
        body: JSON.stringify({ path: "/queuefs/theirs/peek", algorithm: "md5" }),
        ...as(limited),
      }),
    );
  });
});

describe("the routes", () => {
  test("refuse other methods, and what is not there, in the form of this API; observers learn of all", async () => {
    backend = await openMemory();
    const seen: RequestEnd[] = [];
    app = createApp(backend, { observer: { end: (request) => seen.push(request) } });
    const paths = new Set(AGFS_ROUTES.map(({ path }) => path.replace("*", "7/read")));
    for (const path of paths) {
      const head = await face.ask(`${path}?path=/queuefs/q/dequeue`, { method: "HEAD" });
      expect(head.status, path).toBe(405);
      const patch = await face.ask(path, { method: "PATCH" });
      expect(patch.status, path).toBe(405);
      expect(errorOf(patch)).toContain("use ");
    }
    expect(seen.map(({ status }) => status)).toEqual(Array.from({ length: 2 * paths.size }, () => 405));
    expect((await face.ask("/files/more")).status).toBe(404);
    expect((await face.ask("/nothing")).status).toBe(404);
  });
});
