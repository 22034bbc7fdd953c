/** The description of the native API (OpenAPI 3.1), made from the table of routes. */

import { ERROR_TABLE, type ErrorCode } from "../core/errors.ts";
import type { OptionTable } from "../core/options.ts";
import { API_PREFIX, PROBLEM_TYPE, REQUEST_HEADER, SESSION_HEADER } from "../core/wire.ts";
import { MESSAGES_TYPE } from "../core/wire-bytes.ts";
import type { Route } from "./route.ts";
import { SUBJECTS } from "./routes/table.ts";
import { optionSchema, SCHEMAS, type Schema, type SchemaName } from "./schemas.ts";
import { EVENTS_TYPE } from "./serve-route.ts";

/** Errors that any route may answer. */
export const GENERAL_ERRORS: readonly ErrorCode[] = [
  "invalid-argument",
  "unauthenticated",
  "forbidden",
  "message-too-large",
  "store-busy",
  "store-unreachable",
  "outcome-unknown",
  "store-read-only",
  "store-corrupt",
  "store-failed",
  "timed-out",
  "closed",
  "internal",
];

/** One operation of the description. */
export interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly tags: readonly string[];
  readonly parameters: readonly Schema[];
  readonly requestBody?: Schema;
  readonly responses: Readonly<Record<string, Schema>>;
}

/** The whole description. */
export interface OpenApiDocument {
  readonly openapi: "3.1.0";
  readonly info: Readonly<Record<string, unknown>>;
  readonly tags: readonly { readonly name: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: Readonly<Record<string, unknown>>;
  readonly security: readonly Schema[];
}

const PARAMETERS = {
  queue: "the name of a queue as one component: a slash in it is %2F",
  task: "the id of a task",
} as const;

const reference = (name: SchemaName): Schema => ({ $ref: `#/components/schemas/${name}` });

function pathParameters(path: string): Schema[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => ({
    name,
    in: "path",
    required: true,
    description: PARAMETERS[name as keyof typeof PARAMETERS],
    schema: { type: "string" },
  }));
}

function queryParameters(table: OptionTable = {}): Schema[] {
  return Object.entries(table).map(([name, row]) => ({
    name,
    in: "query",
    required: false,
    description: row.meaning,
    schema: optionSchema(row),
  }));
}

function headerParameters(route: Route): Schema[] {
  const header = (name: string, description: string): Schema => ({
    name,
    in: "header",
    required: false,
    description,
    schema: { type: "string" },
  });
  return [
    ...(route.name === "queue.enqueue"
      ? [header("Idempotency-Key", "gives messages without an id one, so that a repeat stores nothing twice")]
      : []),
    ...(route.remembered === true || route.name === "queue.dequeue"
      ? [
          header(SESSION_HEADER, "names the client, so that its repeats are known"),
          header(REQUEST_HEADER, "numbers its requests; the same number is the same request, and gets the same answer"),
        ]
      : []),
    ...(route.name === "events" ? [header("Last-Event-ID", "the last event that was heard, after which to go on")] : []),
  ];
}

function content(types: readonly string[], schema: SchemaName): Schema {
  return Object.fromEntries(
    types.map((type) => [
      type,
      type === "application/json" || type === EVENTS_TYPE
        ? { schema: reference(schema) }
        : type === "application/x-ndjson"
          ? { schema: reference("NewMessage") }
          : {},
    ]),
  );
}

/** Schemas of answers that hold messages, whose bytes may travel beside the JSON. */
const WITH_MESSAGES: ReadonlySet<SchemaName> = new Set(["ListedMessages", "Peeked", "Deliveries", "DeadLetters", "TaskFailures"]);

function responses(route: Route): Record<string, Schema> {
  const all: Record<string, Schema> = {};
  for (const [status, { description, schema, type = "application/json" }] of Object.entries(route.answers)) {
    const types = WITH_MESSAGES.has(schema) ? [type, MESSAGES_TYPE] : [type];
    all[status] = { description, content: content(types, schema) };
  }
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of new Set([...GENERAL_ERRORS, ...route.errors])) {
    const { httpStatus } = ERROR_TABLE[code];
    byStatus.set(httpStatus, [...(byStatus.get(httpStatus) ?? []), code]);
  }
  for (const [status, codes] of [...byStatus].sort(([left], [right]) => left - right)) {
    const description = codes.map((code) => `\`${code}\`: ${ERROR_TABLE[code].meaning}`).join("; ");
    all[String(status)] = { description, content: { [PROBLEM_TYPE]: { schema: reference("Problem") } } };
  }
  return all;
}

function operation(route: Route, subject: string): Operation {
  const { body } = route;
  return {
    operationId: route.name,
    summary: route.summary,
    ...(route.description === undefined ? {} : { description: route.description }),
    tags: [subject],
    parameters: [...pathParameters(route.path), ...queryParameters(route.query), ...headerParameters(route)],
    ...(body === undefined
      ? {}
      : { requestBody: { description: body.description, required: body.required, content: content(body.types, body.schema) } }),
    responses: responses(route),
  };
}

/** Describes the API of this version of the package. */
export function openApiDocument(version: string): OpenApiDocument {
  const paths: Record<string, Record<string, Operation>> = {};
  for (const [subject, routes] of Object.entries(SUBJECTS)) {
    for (const route of routes as readonly Route[]) {
      const path = API_PREFIX + route.path;
      paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(route, subject) };
    }
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "QueueFS",
      version,
      summary: "Durable work queues that answer exactly whether all work is done",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    tags: Object.keys(SUBJECTS).map((name) => ({ name })),
    paths,
    components: {
      schemas: SCHEMAS,
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer", description: "a token of the server, where it asks for one" },
        basic: { type: "http", scheme: "basic", description: "any user, with a token as password" },
      },
    },
    security: [{ bearer: [] }, { basic: [] }, {}],
  };
}
