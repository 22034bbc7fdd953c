import { describe, expect, it } from "vitest";
import { Gate, parseTokens } from "../../../src/http/auth.ts";
import { ROUTES } from "../../../src/http/routes/table.ts";
import { openTestApp } from "../../support/http-app.ts";

const FULL = "full-access-0123456789";
const LOOK = "look-only-0123456789";
const LIMITED = "limited-to-a-0123456789";
const tokens = parseTokens(`# comment\n\n${FULL}\n ${LOOK}  read-only\n${LIMITED} queues=a,x%2Cy/z\r\n`, "tokens");
const bearer = (secret: string): Record<string, string> => ({ authorization: `Bearer ${secret}` });
const basic = (pair: string): Record<string, string> => ({ authorization: `Basic ${Buffer.from(pair).toString("base64")}` });

describe("a token file", () => {
  it("has one token a line, with what it is for", () => {
    expect(tokens).toEqual([{ secret: FULL }, { secret: LOOK, readOnly: true }, { secret: LIMITED, queues: ["a", "x,y/z"] }]);
  });

  it("is refused with its line, and without a word of a secret", () => {
    const wrong: [string, string][] = [
      ["short", "the token in line 1 of t must have 16 to 512 visible ASCII characters without white space"],
      [`\n${FULL} readonly`, "the token in line 2 of t is followed by a word that is neither read-only nor queues=…"],
      [`${FULL} queues=`, "queues of the token in line 1 of t cannot be read"],
      [`${FULL} queues=a/../b`, "queues of the token in line 1 of t cannot be read"],
      [`${FULL} queues=%zz`, "queues of the token in line 1 of t cannot be read"],
      [`pass${"ö".repeat(20)}`, "the token in line 1 of t must have"],
      [`${FULL}\n# comment\n${FULL} read-only`, "the token in line 3 of t is that of line 1 again"],
    ];
    for (const [text, words] of wrong) {
      expect(() => parseTokens(text, "t")).toThrow(words);
      expect(() => parseTokens(text, "t")).not.toThrow(FULL);
    }
    expect(() => new Gate([{ secret: FULL, queues: [] }])).toThrow("at least one queue");
    expect(() => new Gate([{ secret: LOOK }, { secret: FULL }, { secret: LOOK }])).toThrow("token 3 has the same secret as token 1");
    expect(() => new Gate("secret" as never)).toThrow("must be an array");
    expect(() => new Gate([{ secret: FULL, readOnly: 1 as never }])).toThrow("readOnly of token 1");
  });
});

describe("a server with tokens", () => {
  it("lets in who sends one, as bearer or as the password of any user", async () => {
    await using app = disposable(await openTestApp({ tokens }));
    const good = [bearer(FULL), { authorization: `bearer ${FULL}` }, basic(`anybody:${FULL}`), basic(`:${FULL}`)];
    for (const headers of good) expect((await app.ask("GET /store", { headers })).status).toBe(200);
    const bad = [
      {},
      bearer("x"),
      bearer(`${FULL}x`),
      bearer(FULL.slice(1)),
      { authorization: FULL },
      { authorization: `Digest ${FULL}` },
      { authorization: "Bearer" },
      basic(FULL),
      basic(`${FULL}:`),
      { authorization: `Bearer ${FULL} ${FULL}` },
    ];
    for (const headers of bad) {
      const { status, json, headers: sent } = await app.ask("GET /store", { headers });
      expect({ headers, status, code: json.code }).toEqual({ headers, status: 401, code: "unauthenticated" });
      expect(sent.get("www-authenticate")).toBe('Bearer realm="queuefs", Basic realm="queuefs"');
      expect(JSON.stringify(json)).not.toContain(FULL);
    }
  });

  it("asks for none where nothing of the store is told", async () => {
    await using app = disposable(await openTestApp({ tokens }));
    for (const path of ["//docs", "//openapi.json"]) expect((await app.ask(`GET ${path}`)).status).toBe(200);
    expect((await app.ask("GET //")).status).toBe(200);
    expect((await app.ask("GET //", { headers: { accept: "text/html" } })).headers.get("location")).toBe("/docs");
    expect((await app.ask("GET /nothing")).status).toBe(401);
  });

  it("lets a token that may only look call no route that changes something", async () => {
    await using app = disposable(await openTestApp({ tokens }));
    for (const { method, path, access, name } of ROUTES) {
      const url = path.replace("{queue}", "a").replace("{task}", "t");
      const { json } = await app.ask(`${method} ${url}`, { headers: bearer(LOOK), ...(method === "GET" ? {} : { body: {} }) });
      expect({ name, forbidden: json?.code === "forbidden" }).toEqual({ name, forbidden: access === "write" });
    }
  });

  it("lets a token for some queues reach no other, in path or body", async () => {
    await using app = disposable(await openTestApp({ tokens }));
    const headers = bearer(LIMITED);
    for (const { method, path, scope, name } of ROUTES) {
      if (scope !== "queue" && scope !== "store") continue;
      for (const queue of ["b", "ab", "x", "A"]) {
        const url = path.replace("{queue}", queue).replace("{task}", "t");
        const { status, json } = await app.ask(`${method} ${url}`, { headers, ...(method === "GET" ? {} : { body: {} }) });
        expect({ name, queue, status, code: json.code }).toEqual({ name, queue, status: 403, code: "forbidden" });
      }
    }
    const message = { data: "m" };
    const bodies: [string, unknown][] = [
      ["POST /queues/a/ack", { items: [{ receipt: "r-1-1-1", forward: [{ queue: "b", messages: [message] }] }] }],
      ["POST /statuses", { queues: ["a", "b"] }],
      ["POST /statuses", { under: "" }],
      ["POST /marks", { queues: ["b"] }],
      ["POST /marks/reached", { queues: [{ queue: "b", place: "1" }] }],
      ["POST /wait", { selection: { under: "x" }, timeoutMs: 0 }],
      ["POST /tasks", { task: { type: "t" }, batches: [{ queue: "b", messages: [message] }] }],
    ];
    for (const [request, body] of bodies)
      expect({ request, code: (await app.ask(request, { headers, body })).json.code }).toEqual({ request, code: "forbidden" });
    for (const request of [
      "GET /queues",
      "GET /queues?under=b",
      "GET /events?queue=b",
      "GET /events?under=b",
      "GET /events?under=",
      "GET //metrics",
    ])
      expect((await app.ask(request, { headers })).json.code).toBe("forbidden");
    for (const { scope, name } of ROUTES.filter((route) => route.scope === "body"))
      expect({ scope, covered: /queue.list|status|mark|wait|task.create|events/.test(name) }).toEqual({ scope, covered: true });
  });

  it("lets a token for some queues use them and what lies under them", async () => {
    await using app = disposable(await openTestApp({ tokens }));
    const headers = bearer(LIMITED);
    for (const queue of ["a", "a%2Fb", "x,y%2Fz%2Fdeep"]) expect((await app.ask(`PUT /queues/${queue}`, { headers })).status).toBe(201);
    expect((await app.ask("POST /queues/a%2Fb/messages", { headers, body: "m" })).status).toBe(201);
    expect((await app.ask("GET /queues?under=a", { headers })).json.items).toEqual(["a", "a/b"]);
    expect((await app.ask("POST /statuses", { headers, body: { under: "a" } })).json.statuses).toHaveLength(2);
    const { json } = await app.ask("POST /tasks", {
      headers,
      body: { task: { type: "t" }, batches: [{ queue: "a", messages: [{ data: "m" }] }] },
    });
    expect((await app.ask(`GET /tasks/${json.task.id}`, { headers })).json.status).toBe("pending");
    expect((await app.ask(`GET /files?path=/queuefs/.tasks/${json.task.id}`, { headers })).status).toBe(200);
  });

  it("lets a token for some queues end only those tasks whose producer it is", async () => {
    await using app = disposable(await openTestApp({ tokens }));
    const body = { task: { type: "t", producer: { leaseMs: 60_000 } }, batches: [] };
    const { task, producer } = (await app.ask("POST /tasks", { headers: bearer(FULL), body })).json;
    expect(producer).toBeTypeOf("string");
    const headers = bearer(LIMITED);
    expect((await app.ask(`GET /tasks/${task.id}/wait?timeoutMs=0`, { headers })).status).toBe(200);
    expect((await app.ask(`POST /tasks/${task.id}/seal`, { headers, body: {} })).status).toBe(403);
    expect((await app.ask(`PATCH /tasks/${task.id}`, { headers, body: { name: "x" } })).status).toBe(403);
    expect((await app.ask(`POST /tasks/${task.id}/seal`, { headers, body: { producer: "wrong" } })).json.outcome).toBe("stale");
    expect((await app.ask(`POST /tasks/${task.id}/seal`, { headers, body: { producer } })).json.outcome).toBe("sealed");
  });
});

function disposable<Opened extends { close(): Promise<void> }>(opened: Opened): Opened & AsyncDisposable {
  return Object.assign(opened, { [Symbol.asyncDispose]: () => opened.close() });
}
