/** Requests made of what the API describes, and then spoilt. */

import fc from "fast-check";
import { SCHEMAS, type Schema } from "../../src/http/schemas.ts";
import { anyJson, anyText } from "./values.ts";

/** Words that are found in the store under test, so that requests get further than "not found". */
const KNOWN = ["q", "a/b", "t", "m-1", "import", "done", "stage"];

/** Values of a shape of the API; `depth` bounds how far they nest. */
export function ofSchema(schema: Schema, depth = 4): fc.Arbitrary<unknown> {
  if (depth === 0) return fc.constant(null);
  if (typeof schema.$ref === "string") return ofSchema(SCHEMAS[schema.$ref.split("/").at(-1) as keyof typeof SCHEMAS], depth - 1);
  if (Array.isArray(schema.enum)) return fc.constantFrom(...(schema.enum as unknown[]));
  const choices = (schema.oneOf ?? schema.anyOf) as readonly Schema[] | undefined;
  if (choices !== undefined) return fc.oneof(...choices.map((choice) => ofSchema(choice, depth - 1)));
  switch (schema.type) {
    case "string":
      return fc.oneof(fc.constantFrom(...KNOWN), anyText);
    case "integer":
    case "number": {
      const minimum = typeof schema.minimum === "number" ? schema.minimum : 0;
      // What waits, waits no longer than this.
      return fc.oneof(fc.constant(minimum), fc.integer({ min: minimum, max: Math.max(minimum, 50) }));
    }
    case "boolean":
      return fc.boolean();
    case "array":
      return fc.array(ofSchema(schema.items as Schema, depth - 1), { maxLength: 3 });
    case "object": {
      const properties = Object.entries((schema.properties ?? {}) as Readonly<Record<string, Schema>>);
      const requiredKeys = ((schema.required ?? []) as readonly string[]).filter((name) => properties.some(([other]) => other === name));
      return fc.record(Object.fromEntries(properties.map(([name, each]) => [name, ofSchema(each, depth - 1)])), { requiredKeys });
    }
    default:
      return fc.jsonValue({ maxDepth: 2 });
  }
}

/** Names of properties that hold how long something waits: spoilt, they would only make the test slow. */
const WAITS = new Set(["waitMs", "timeoutMs"]);

function places(value: unknown, path: readonly (string | number)[] = []): (readonly (string | number)[])[] {
  if (typeof value !== "object" || value === null) return [path];
  return [
    path,
    ...Object.entries(value)
      .filter(([key]) => !WAITS.has(key))
      .flatMap(([key, inner]) => places(inner, [...path, key])),
  ];
}

function replaceAt(value: unknown, [key, ...rest]: readonly (string | number)[], by: unknown): unknown {
  if (key === undefined) return by;
  if (Array.isArray(value)) return value.map((item, index) => (String(index) === key ? replaceAt(item, rest, by) : item));
  return Object.fromEntries(
    Object.entries(value as object).map(([name, inner]) => [name, name === key ? replaceAt(inner, rest, by) : inner]),
  );
}

/** A value with up to two of its parts replaced by anything. */
export function spoilt(value: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  const spoils = fc.array(fc.tuple(fc.nat(), anyJson), { maxLength: 2 });
  return fc.tuple(value, spoils).map(([good, changes]) =>
    changes.reduce<unknown>((now, [which, by]) => {
      const all = places(now);
      return replaceAt(now, all[which % all.length] as readonly (string | number)[], by);
    }, good),
  );
}
