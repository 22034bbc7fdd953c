/**
 * HTTP without sockets: whatever is asked of the native API and of the AGFS file API, the answer is one that the error table has, in the form
 * that the API has, and tells neither a token nor where in the code something failed.
 */

import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ERROR_TABLE, type ErrorCode } from "../../src/core/errors.ts";
import { parseQueueName, parseTaskId } from "../../src/core/names.ts";
import { REQUEST_HEADER, SESSION_HEADER } from "../../src/core/wire.ts";
import { BytesBeside, encodeFrame, MESSAGES_TYPE } from "../../src/core/wire-bytes.ts";
import { AGFS_ROUTES } from "../../src/http/agfs/routes.ts";
import { ROUTES } from "../../src/http/routes/table.ts";
import { SCHEMAS } from "../../src/http/schemas.ts";
import { answered, openTestApp, type TestApp } from "../support/http-app.ts";
import { holdAsync } from "./fuzzing.ts";
import { ofSchema, spoilt } from "./requests.ts";
import { anyBytes, anyText } from "./values.ts";

const TOKEN = "Zq7Wx9Kv3Jp5Ym2QTb8Rn4Lc";
const READER = "Hd6Fs1Gj0Uo7Pe3WXa9Mv5Kt";

let app: TestApp;
/** Errors that the server counts as its own fault: there must be none. */
const faults: unknown[] = [];
beforeAll(async () => {
  app = await openTestApp({
    tokens: [{ secret: TOKEN }, { secret: READER, readOnly: true, queues: [parseQueueName("a")] }],
    eventHeartbeatMs: 1_000,
    onError: (error) => void faults.push(error),
  });
  for (const name of ["q", "a/b"]) await app.backend.createQueue(parseQueueName(name));
  await app.backend.createTask({ id: parseTaskId("t"), type: "import" });
});
afterAll(async () => {
  await app.close();
  expect(faults).toEqual([]);
});

/** What a header can hold, since nothing else gets through a socket. */
const headerText = fc.oneof(
  fc.string({ unit: fc.integer({ min: 0x20, max: 0xff }).map((code) => String.fromCharCode(code)), maxLength: 30 }),
  fc.constantFrom(
    "",
    "0",
    "-1",
    "1e9",
    "application/json",
    "text/html",
    "*/*",
    "null",
    "close",
    "gzip",
    "localhost",
    "http://evil.example",
  ),
);
const headers = fc.array(
  fc.tuple(
    fc.constantFrom(
      "accept",
      "content-type",
      "content-encoding",
      "host",
      "origin",
      "sec-fetch-site",
      "idempotency-key",
      "last-event-id",
      "if-match",
      "range",
      "expect",
      "traceparent",
      SESSION_HEADER,
      REQUEST_HEADER,
      "queuefs-instance",
    ),
    fc.oneof(headerText, fc.constantFrom("s-1", "1", "2", MESSAGES_TYPE, "application/x-ndjson", "text/event-stream")),
  ),
  { maxLength: 3 },
);
const authorization = fc.oneof(
  { weight: 8, arbitrary: fc.constant(`Bearer ${TOKEN}`) },
  { weight: 1, arbitrary: fc.constant(`Bearer ${READER}`) },
  {
    weight: 1,
    arbitrary: fc.oneof(
      headerText,
      headerText.map((text) => `Bearer ${text}`),
      headerText.map((text) => `Basic ${Buffer.from(text).toString("base64")}`),
      fc.constant(`Basic ${Buffer.from(`:${TOKEN}`).toString("base64")}`),
    ),
  },
);

interface Question {
  readonly method: string;
  readonly path: string;
  readonly body: Uint8Array | undefined;
  readonly type: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly authorization: string;
}

/** Asks, and holds what is answered to what all answers must be. */
async function ask(question: Question): Promise<void> {
  const { method, path, body, type } = question;
  const given = new Headers();
  if (body !== undefined) given.set("content-type", type);
  for (const [name, value] of question.headers) given.set(name, value);
  given.set("authorization", question.authorization);
  let request: Request;
  try {
    request = new Request(`http://localhost${path}`, {
      method,
      headers: given,
      signal: AbortSignal.timeout(60_000),
      ...(body === undefined || method === "GET" || method === "HEAD" ? {} : { body: body as Uint8Array<ArrayBuffer> }),
    });
  } catch {
    // No request of HTTP.
    return;
  }
  const before = faults.length;
  const { status, headers: told, json, bytes } = await answered(await app.app.fetch(request));
  expect(faults.slice(before), `${method} ${path}`).toEqual([]);
  expect(status).toBeGreaterThanOrEqual(200);
  const text = Buffer.from(bytes).toString("latin1");
  for (const secret of [TOKEN, READER]) expect(text).not.toContain(secret);
  expect(told.get("cache-control")).toBe("no-store");
  if (status < 400) return;
  expect(text).not.toMatch(/\n\s+at |\.ts:\d|node_modules/);
  if (method === "HEAD") return;
  const code = json?.code as ErrorCode;
  expect(Object.keys(ERROR_TABLE), `${method} ${path} ${status} ${text}`).toContain(code);
  expect(code).not.toBe("internal");
  // What is above 499 is what the table puts there.
  if (status >= 500) expect([ERROR_TABLE[code].httpStatus, code]).toEqual([status, code]);
  if (told.get("content-type") === "application/problem+json") {
    expect(json).toMatchObject({
      type: `urn:queuefs:error:${code}`,
      status,
      title: ERROR_TABLE[code].meaning,
      retryable: ERROR_TABLE[code].retryable,
    });
    expect(Object.keys(json).sort()).toEqual(
      [...(json.error === undefined ? [] : ["error"]), "code", "detail", "retryable", "status", "title", "type"].sort(),
    );
  } else expect(json).toEqual({ error: expect.any(String), code });
}

const component = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom("q", "a%2Fb", "t", "missing", "a") },
  { weight: 2, arbitrary: anyText.map((text) => encodeURIComponent(text.replace(/[\ud800-\udfff]/g, "?"))) },
  { weight: 1, arbitrary: fc.stringMatching(/^[%a-f0-9./\\~!$&'()*+,;=:@-]{0,12}$/) },
);
const NUMBERS = ["limit", "delayMs", "offset", "size", "waitMs", "timeoutMs", "fromMs", "toMs"];
const NAMES = [
  "under",
  "after",
  "recursive",
  "path",
  "task",
  "queue",
  "queues",
  "type",
  "status",
  "resource",
  "fields",
  "name",
  "id",
  "receipt",
  "pattern",
  "heartbeatMs",
  ...NUMBERS,
];
const query = fc
  .array(
    fc.tuple(
      fc.oneof(fc.constantFrom(...NAMES), component),
      fc.oneof(component, fc.constantFrom("0", "1", "-1", "true", "false", "1e3", "99999999999999999999", "%2Fqueuefs%2Fq%2Fsize")),
    ),
    { maxLength: 4 },
  )
  // A long wait is no error, only long.
  .map((pairs) => pairs.filter(([name, value]) => !/^(?:waitMs|timeoutMs)$/.test(name) || /^[01]$/.test(value)))
  .map((pairs) => (pairs.length === 0 ? "" : `?${pairs.map((pair) => pair.join("=")).join("&")}`));

const nativeQuestion: fc.Arbitrary<Question> = fc.constantFrom(...ROUTES.filter(({ name }) => name !== "store.inspect")).chain((route) => {
  const json = route.body === undefined ? fc.constant(undefined) : ofSchema(SCHEMAS[route.body.schema], 7);
  const type = route.body?.types[0] ?? "application/json";
  const good = json.map((value) => (value === undefined ? undefined : Buffer.from(JSON.stringify(value))));
  const bad = spoilt(json).map((value) => (value === undefined ? undefined : Buffer.from(JSON.stringify(value) ?? "")));
  const framed = fc.tuple(spoilt(json), anyBytes, fc.nat({ max: 3 })).map(([value, bytes, cut]) => {
    const beside = new BytesBeside();
    beside.put(bytes);
    const frame = encodeFrame(value ?? null, beside);
    return frame.subarray(0, frame.byteLength - cut);
  });
  return fc.record({
    method: fc.oneof(
      { weight: 9, arbitrary: fc.constant<string>(route.method) },
      { weight: 1, arbitrary: fc.constantFrom("GET", "HEAD", "PUT", "POST", "PATCH", "DELETE", "OPTIONS", "BREW") },
    ),
    path: fc
      .tuple(component, fc.oneof({ weight: 2, arbitrary: fc.constant("") }, { weight: 1, arbitrary: query }))
      .map(([part, search]) => `/api/v1${route.path.replace(/\{\w+\}/, part)}${search}`),
    body: fc.oneof(
      { weight: 3, arbitrary: good },
      { weight: 4, arbitrary: bad },
      { weight: 1, arbitrary: anyBytes },
      { weight: 1, arbitrary: framed },
    ),
    type: fc.oneof(
      { weight: 6, arbitrary: fc.constant(type) },
      { weight: 1, arbitrary: fc.constantFrom(MESSAGES_TYPE, "application/x-ndjson", "text/plain", "") },
    ),
    headers,
    authorization,
  });
});

test("the native API answers any request by the table", async () => {
  await holdAsync<[Question]>([nativeQuestion], 12, ask);
});

const filePath = fc
  .oneof(
    fc
      .tuple(
        fc.constantFrom("/queuefs/q", "/queuefs/a/b", "/queuefs", "/", "", "/queuefs/missing", "/queuefs/.tasks"),
        fc.constantFrom(
          "",
          "/enqueue",
          "/dequeue",
          "/peek",
          "/size",
          "/status",
          "/messages",
          "/clear",
          "/ack",
          "/.nack",
          "/.extend",
          "/.dead",
          "/.stats",
          "/t",
          "/..",
          "/README",
          "//",
        ),
      )
      .map((parts) => parts.join("")),
    anyText.map((text) => text.replace(/[\ud800-\udfff]/g, "?")),
  )
  .map(encodeURIComponent);
const agfsBody = fc.oneof(
  anyBytes,
  spoilt(
    fc.record(
      {
        path: fc.constantFrom("/queuefs/q/size", "/queuefs", "/queuefs/q/peek"),
        pattern: fc.oneof(anyText, fc.constantFrom(".*", "(", "a{99999}", "(a+)+$")),
        recursive: fc.boolean(),
        case_insensitive: fc.boolean(),
        stream: fc.boolean(),
        algorithm: fc.constantFrom("md5", "xxh3", "sha256"),
        mode: fc.integer(),
        limit: fc.integer(),
      },
      { requiredKeys: [] },
    ),
  ).map((value) => Buffer.from(JSON.stringify(value) ?? "")),
);
const agfsQuestion: fc.Arbitrary<Question> = fc.constantFrom(...AGFS_ROUTES).chain((route) =>
  fc.record({
    method: fc.oneof(
      { weight: 9, arbitrary: fc.constantFrom(...route.methods) },
      { weight: 1, arbitrary: fc.constantFrom("GET", "HEAD", "PUT", "POST", "PATCH", "DELETE", "OPTIONS") },
    ),
    path: fc
      .tuple(
        fc.oneof({ weight: 5, arbitrary: filePath.map((path) => `?path=${path}`) }, { weight: 1, arbitrary: query }),
        fc.constantFrom(
          "",
          "&offset=0&size=5",
          "&offset=-1",
          "&size=99999999",
          "&recursive=true",
          "&mode=755",
          "&algorithm=md5",
          "&stream=true",
          "&raw=%zz",
        ),
      )
      .map(([search, more]) => `/api/v1${route.path.replace("*", "1")}${search}${more}`),
    body: fc.option(agfsBody, { nil: undefined }),
    type: fc.constantFrom("application/json", "application/octet-stream", "text/plain"),
    headers,
    authorization,
  }),
);

test("the AGFS file API answers any request by the table", async () => {
  await holdAsync<[Question]>([agfsQuestion], 8, ask);
});

const anyQuestion: fc.Arbitrary<Question> = fc.record({
  method: fc.oneof(
    fc.constantFrom("GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS"),
    fc.stringMatching(/^[A-Za-z!#$%&'*+.^_`|~-]{1,12}$/),
  ),
  path: fc.oneof(
    fc.array(component, { maxLength: 5 }).map((parts) => `/api/v1/${parts.join("/")}`),
    fc.constantFrom("/", "/docs", "/openapi.json", "/metrics", "/api/v1/health", "/api/v1/ready"),
    anyText.map((text) => `/${text}`),
    query,
  ),
  body: fc.option(anyBytes, { nil: undefined }),
  type: headerText,
  headers,
  authorization,
});

test("whatever else is asked is answered by the table, and the store is sound after all of it", async () => {
  await holdAsync<[Question]>([anyQuestion], 8, ask);
  expect((await app.backend.inspect()).filter(({ severity }) => severity === "error")).toEqual([]);
});
