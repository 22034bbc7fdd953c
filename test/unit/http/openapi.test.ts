import { Validator } from "@seriousme/openapi-schema-validator";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ERROR_TABLE, type ErrorCode } from "../../../src/core/errors.ts";
import { API_PREFIX } from "../../../src/core/wire.ts";
import { type OpenApiDocument, openApiDocument } from "../../../src/http/openapi.ts";
import { ROUTES } from "../../../src/http/routes/table.ts";
import { SCHEMAS } from "../../../src/http/schemas.ts";
import { type Answered, type Asked, openTestApp, type TestApp } from "../../support/http-app.ts";

let app: TestApp;
let document: OpenApiDocument;
beforeAll(async () => {
  app = await openTestApp();
  document = (await app.ask("GET //openapi.json")).json;
});
afterAll(() => app.close());

describe("/openapi.json", () => {
  it("is a valid description by OpenAPI 3.1", async () => {
    expect(await new Validator().validate(structuredClone(document) as never)).toEqual({ valid: true });
    expect(document).toEqual(JSON.parse(JSON.stringify(openApiDocument(String(document.info.version)))));
  });

  it("lists every route, and no other", () => {
    const described = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { operationId }]) => `${method.toUpperCase()} ${path} ${operationId}`),
    );
    expect(described.sort()).toEqual(ROUTES.map(({ method, path, name }) => `${method} ${API_PREFIX}${path} ${name}`).sort());
    expect(new Set(ROUTES.map(({ name }) => name)).size).toBe(ROUTES.length);
  });

  it("lists only what is served, and says which methods a path has", async () => {
    for (const path of new Set(ROUTES.map((route) => route.path))) {
      const url = path.replace("{queue}", "nope").replace("{task}", "nope");
      const methods = ROUTES.filter((route) => route.path === path).flatMap(({ method }) =>
        method === "GET" ? ["GET", "HEAD"] : [method],
      );
      for (const method of ["GET", "PUT", "POST", "PATCH", "DELETE", "OPTIONS", "BREW"]) {
        const { status, headers, json } = await app.ask(`${method} ${url}`);
        expect({ path, method, isThere: status !== 405 }).toEqual({ path, method, isThere: methods.includes(method) });
        if (status !== 405) continue;
        expect(headers.get("allow")?.split(", ").sort()).toEqual([...methods].sort());
        expect(json.code).toBe("unsupported");
      }
    }
  });

  it("uses every shape, and refers to none that is not there", () => {
    const text = JSON.stringify(document);
    const referred = new Set([...text.matchAll(/#\/components\/schemas\/(\w+)/g)].map((match) => match[1]));
    expect([...referred].sort()).toEqual(Object.keys(SCHEMAS).sort());
  });
});

describe("/docs", () => {
  it("shows every route without anything from elsewhere, and lets nothing be loaded", async () => {
    const { status, headers, bytes } = await app.ask("GET //docs");
    const page = Buffer.from(bytes).toString("utf8");
    expect(status).toBe(200);
    for (const { name, path } of ROUTES) {
      expect(page).toContain(`id="${name}"`);
      expect(page).toContain(path);
    }
    for (const name of Object.keys(SCHEMAS)) expect(page).toContain(`id="shape-${name}"`);
    expect(page).not.toMatch(/<script|<link|<img|https?:\/\/|@import|url\(/);
    expect(headers.get("content-security-policy")).toMatch(/^default-src 'none'; style-src 'sha256-/);
  });
});

describe("answers", () => {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  (addFormats as unknown as (ajv: Ajv2020) => void)(ajv);
  /** Operations and statuses that were seen. */
  const seen = new Set<string>();

  /** Asks, and holds question and answer to what the description says of them. */
  async function hold(request: string, status: number, asked: Asked = {}): Promise<Answered> {
    const [method = "", path = ""] = request.split(" ");
    const answer = await app.ask(request, asked);
    expect({ request, status: answer.status, json: answer.json }).toEqual({ request, status, json: answer.json });
    const route = ROUTES.find(
      (each) => each.method === method && new RegExp(`^${each.path.replace(/\{\w+\}/g, "[^/]+")}$`).test(path.split("?", 1)[0] ?? ""),
    );
    if (route === undefined) throw new Error(`no route for ${request}`);
    const described = document.paths[API_PREFIX + route.path]?.[method.toLowerCase()];
    const response = described?.responses[String(status)] as { content: Record<string, { schema?: { $ref: string } }> } | undefined;
    expect({ request, status, described: response !== undefined }).toEqual({ request, status, described: true });
    const type = answer.headers.get("content-type") ?? "";
    expect(Object.keys(response?.content ?? {})).toContain(type);
    const check = (reference: string, value: unknown): void => {
      const valid = ajv.validate({ $ref: reference, components: document.components }, value);
      expect({ request, valid, errors: ajv.errors, value }).toEqual({ request, valid: true, errors: null, value });
    };
    const reference = response?.content[type]?.schema?.$ref;
    if (reference !== undefined) check(reference, type === "text/event-stream" ? Buffer.from(answer.bytes).toString() : answer.json);
    if (
      status < 300 &&
      asked.body !== undefined &&
      route.body !== undefined &&
      typeof asked.body === "object" &&
      !(asked.body instanceof Uint8Array)
    )
      check(`#/components/schemas/${route.body.schema}`, asked.body);
    seen.add(`${route.name} ${status}`);
    if (status >= 400) {
      const code = answer.json.code as ErrorCode;
      expect(answer.json).toMatchObject({
        type: `urn:queuefs:error:${code}`,
        title: ERROR_TABLE[code].meaning,
        status,
        retryable: ERROR_TABLE[code].retryable,
      });
    }
    return answer;
  }

  it("of every route are as described, with what was asked", async () => {
    const q = "/queues/a%2Fb";
    await hold("GET /store", 200);
    await hold(`PUT ${q}`, 201, { body: { maxDeliveries: 1 } });
    await hold(`PUT ${q}`, 200);
    await hold(`PATCH ${q}`, 200, { body: { maxDeliveries: 2 } });
    await hold("GET /queues?limit=1", 200);
    await hold(`POST ${q}/messages`, 201, {
      body: { messages: [{ data: "one" }, { data: "AP8=", encoding: "base64", id: "two", delayMs: 0 }] },
    });
    await hold(`POST ${q}/messages`, 201, { body: { messages: [{ data: "other", id: "two" }] } });
    await hold(`GET ${q}/messages`, 200);
    await hold(`GET ${q}/peek`, 200);
    await hold(`GET ${q}/status`, 200);
    await hold(`GET ${q}/statistics`, 200);
    await hold(`GET ${q}/next-due`, 200);
    const { json } = await hold(`POST ${q}/dequeue`, 200, {
      body: { limit: 2, leaseMs: 60_000, requestId: "r", owner: "process", waitMs: 0 },
    });
    const [one, two] = json.messages;
    await hold(`GET ${q}/statistics`, 200);
    await hold(`POST ${q}/extend`, 200, {
      body: {
        items: [
          { receipt: one.receipt, leaseMs: 1_000 },
          { receipt: "r-9-9-9", leaseMs: 10 },
        ],
      },
    });
    const forward = [{ queue: "a/b", messages: [{ data: "three", id: "three" }] }];
    await hold(`POST ${q}/ack`, 200, { body: { items: [{ receipt: one.receipt, forward }, { receipt: "r-9-9-9" }] } });
    await hold(`POST ${q}/nack`, 200, { body: { items: [{ receipt: two.receipt, reason: "why", giveUp: true, delayMs: 1 }] } });
    await hold(`GET ${q}/dead-letters`, 200);
    await hold(`POST ${q}/redrive`, 200, { body: { ids: ["two", "nope"] } });
    const again = (await hold(`POST ${q}/dequeue`, 200, { body: { limit: 2 } })).json.messages;
    await hold(`POST ${q}/release`, 200, { body: { receipts: [again[0].receipt, "r-9-9-9"] } });
    await hold(`POST ${q}/ack-by-id`, 200, { body: { ids: [again[1].id, "nope"] } });
    await hold(`POST ${q}/drop`, 200, { body: { ids: ["nope"] } });
    await hold(`POST ${q}/clear`, 200);
    await hold(`GET ${q}/peek`, 200);
    await hold(`GET ${q}/next-due`, 200);
    await hold("POST /statuses", 200, { body: { under: "" } });
    await hold("POST /statuses", 200, { body: { queues: ["a/b"] } });
    const mark = (await hold("POST /marks", 200, { body: { queues: ["a/b"] } })).json;
    await hold("POST /marks/reached", 200, { body: mark });
    await hold("POST /wait", 200, { body: { selection: { queues: ["a/b"] }, timeoutMs: 10, upTo: "now" } });
    await hold("POST /recover", 200);
    await hold("GET /inspect", 200);
    const batches = [{ queue: "a/b", messages: [{ data: "m" }] }];
    const task = {
      id: "t",
      type: "import",
      resource: "/x",
      stage: "begin",
      meta: { a: [1] },
      keepMs: { failed: 1_000 },
      producer: { leaseMs: 60_000 },
    };
    const made = (await hold("POST /tasks", 201, { body: { task, batches } })).json;
    await hold("POST /tasks", 200, { body: { task } });
    await hold("GET /tasks?type=import&status=pending&limit=5", 200);
    await hold("GET /tasks/t", 200);
    await hold("PATCH /tasks/t", 200, { body: { stage: "more", result: null } });
    await hold("POST /producers/renew", 200, { body: { items: [{ task: "t", producer: made.producer, leaseMs: 1_000 }] } });
    await hold("POST /tasks/t/seal", 200, { body: { producer: made.producer, error: "broke" } });
    const [message] = (await hold(`POST ${q}/dequeue`, 200)).json.messages;
    await hold(`POST ${q}/nack`, 200, { body: { items: [{ receipt: message.receipt, giveUp: true }] } });
    await hold("GET /tasks/t/failures", 200);
    await hold("GET /tasks/t/wait?timeoutMs=0", 200);
    await hold("POST /tasks", 201, { body: { task: { id: "into", type: "retry", producer: { leaseMs: 60_000 } } } });
    await hold("POST /tasks/t/redrive", 200, { body: { into: "into" } });
    await hold("POST /tasks/into/cancel", 200, { body: { reason: "enough" } });
    await hold("GET /tasks/into/wait?timeoutMs=10", 200);
    await hold("DELETE /tasks/t", 200);
    await hold("DELETE /queues/a?recursive=true", 200);
    await hold("GET /events", 200);
    const promised = ROUTES.flatMap(({ name, answers }) => Object.keys(answers).map((status) => `${name} ${status}`));
    expect(promised.filter((each) => !seen.has(each))).toEqual([]);
  });

  it("that are errors are problem details, as described", async () => {
    await app.ask("PUT /queues/err");
    for (const { name, method, path, scope } of ROUTES) {
      const body = method === "GET" || method === "DELETE" || name === "queue.make" ? undefined : { ids: [], items: [], receipts: [] };
      if (path.includes("{queue}") && name !== "queue.make" && name !== "queue.enqueue") {
        const only = { ack: "items", nack: "items", extend: "items", release: "receipts" }[name.slice("queue.".length)] ?? "ids";
        const asked =
          method === "POST" && /ack|nack|extend|release|redrive|drop/.test(name)
            ? { body: { [only]: [] } }
            : method === "PATCH"
              ? { body: {} }
              : {};
        await hold(`${method} ${path.replace("{queue}", "missing")}`, 404, asked);
      }
      if (scope === "queue") await hold(`${method} ${path.replace("{queue}", "a%2F%2Fb")}`, 400, body === undefined ? {} : { body });
    }
    await hold("POST /queues/missing/messages", 404, { body: "m" });
    await hold("PUT /queues/a%2Fdequeue", 400);
    await hold("PUT /queues/.a", 400);
    await hold("PUT /queues/err", 400, { body: { maxDeliveries: -1 } });
    await hold("PUT /queues/err", 400, { body: { nope: 1 } });
    await hold("PUT /queues/err", 400, { body: "[1", headers: { "content-type": "application/json" } });
    await hold("GET /queues?limit=0", 400);
    await hold("GET /queues?limit=x", 400);
    await hold("GET /queues?limit=1&limit=2", 400);
    await hold("GET /queues?nope=1", 400);
    await hold("DELETE /queues/err?recursive=yes", 400);
    await hold("POST /queues/err/dequeue", 400, { body: { waitMs: 60_001 } });
    await hold("POST /queues/err/dequeue", 400, { body: { nope: 1 } });
    await hold("POST /queues/err/dequeue", 400, { body: [] });
    await hold("POST /queues/err/messages", 400, { body: { messages: [{ data: 1 }] } });
    await hold("POST /queues/err/messages", 400, { body: { messages: [{ data: "x", nope: 1 }] } });
    await hold("POST /queues/err/messages?delayMs=1", 400, { body: { messages: [] } });
    await hold("POST /queues/err/messages", 404, { body: { messages: [{ data: "x", task: "missing" }] } });
    await hold("POST /queues/err/ack", 400, { body: {} });
    await hold("POST /statuses", 400, { body: {} });
    await hold("POST /statuses", 400, { body: { queues: ["err"], under: "" } });
    await hold("POST /statuses", 404, { body: { queues: ["missing"] } });
    await hold("POST /marks/reached", 400, { body: {} });
    await hold("POST /marks/reached", 400, { body: { queues: [{ queue: "err" }] } });
    await hold("POST /wait", 404, { body: { selection: { queues: ["missing"] } } });
    await hold("POST /wait", 400, { body: { selection: { under: "" }, timeoutMs: -1 } });
    await hold("POST /tasks", 400, { body: {} });
    await hold("POST /tasks", 404, { body: { task: { type: "t" }, batches: [{ queue: "missing", messages: [] }] } });
    await hold("GET /tasks/missing", 404);
    await hold("GET /tasks/%20", 400);
    await hold("GET /tasks?status=nope", 400);
    await hold("GET /tasks/missing/wait", 404);
    await hold("POST /tasks/missing/cancel", 404, { body: {} });
    await hold("POST /tasks/missing/cancel", 400, { body: { reason: 1 } });
    await app.ask("POST /tasks", { body: { task: { id: "open", type: "t", producer: { leaseMs: 60_000 } } } });
    await hold("DELETE /tasks/open", 409);
    await app.ask("POST /tasks/open/seal");
    await hold("PATCH /tasks/open", 409, { body: { stage: "x" } });
    await hold("POST /queues/err/messages", 409, { body: { messages: [{ data: "x", task: "open" }] } });
    await app.ask("PUT /queues/err%2Funder");
    await hold("DELETE /queues/err", 409);
    await app.ask("POST /queues/err/messages", { body: { messages: [{ data: "x" }, { data: "y" }] } });
    await app.ask("POST /queues/err/dequeue", { body: { requestId: "one" } });
    await hold("POST /queues/err/dequeue", 422, { body: { requestId: "one", limit: 2 } });
  });
});
