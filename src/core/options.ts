/** Options are rows of tables: type, unit, bounds and default stand in one place, and unknown options are refused by name. */

import { QueueFSError, quote } from "./errors.ts";

/** One option that is a whole number. */
export interface IntegerOption {
  readonly type: "integer";
  readonly minimum: number;
  readonly maximum: number;
  readonly default?: number;
  readonly meaning: string;
}

/** One option that is one of a few words. */
export interface ChoiceOption<Choice extends string = string> {
  readonly type: "choice";
  readonly choices: readonly Choice[];
  readonly default?: Choice;
  readonly meaning: string;
}

/** One option that is on or off. */
export interface BooleanOption {
  readonly type: "boolean";
  readonly default?: boolean;
  readonly meaning: string;
}

/** One option that is text. */
export interface TextOption {
  readonly type: "text";
  readonly default?: string;
  readonly meaning: string;
}

/** One option that is an object with methods (a clock, a client), passed through as it is. */
export interface ObjectOption {
  readonly type: "object";
  readonly meaning: string;
}

/** One option that is any JSON value; whoever writes it down checks it. */
export interface JsonOption {
  readonly type: "json";
  readonly meaning: string;
}

/** One row of an option table. */
export type OptionRow = IntegerOption | ChoiceOption | BooleanOption | TextOption | ObjectOption | JsonOption;
/** The options of one function, by name. */
export type OptionTable = Readonly<Record<string, OptionRow>>;

/** The type of an option's value. */
type Value<Row> = Row extends { type: "integer" }
  ? number
  : Row extends ChoiceOption<infer Choice>
    ? Choice
    : Row extends { type: "boolean" }
      ? boolean
      : Row extends { type: "text" }
        ? string
        : unknown;

/** The values of a table after {@link readOptions}: those with a default are always there. */
export type OptionValues<Table extends OptionTable> = {
  readonly [Name in keyof Table as Table[Name] extends { default: unknown } ? Name : never]: Value<Table[Name]>;
} & {
  readonly [Name in keyof Table as Table[Name] extends { default: unknown } ? never : Name]?: Value<Table[Name]>;
};

/**
 * Checks given options against a table and fills in the defaults. An option given as `undefined` counts as not given.
 *
 * @param what whose options they are, for the message, such as `openSqlite`
 * @throws QueueFSError `invalid-argument` for an unknown option, a wrong type or a value out of bounds
 */
export function readOptions<const Table extends OptionTable>(what: string, table: Table, given: unknown): OptionValues<Table> {
  if (given !== undefined && (typeof given !== "object" || given === null)) {
    throw new QueueFSError("invalid-argument", `options of ${what} must be an object, got ${quote(given)}`);
  }
  const values: Record<string, unknown> = {};
  for (const [name, row] of Object.entries(table)) {
    if ("default" in row) values[name] = row.default;
  }
  for (const [name, value] of Object.entries(given ?? {})) {
    const row = Object.hasOwn(table, name) ? table[name] : undefined;
    if (row === undefined) {
      throw new QueueFSError("invalid-argument", `${what} has no option ${quote(name)}; it has ${Object.keys(table).join(", ")}`);
    }
    if (value !== undefined) values[name] = checkOption(`${what}: option ${name}`, row, value);
  }
  return values as OptionValues<Table>;
}

/** Checks one value against its row and returns it. @throws QueueFSError `invalid-argument` */
export function checkOption(what: string, row: OptionRow, value: unknown): unknown {
  switch (row.type) {
    case "integer":
      return checkInteger(what, value, row.minimum, row.maximum);
    case "choice":
      if (typeof value === "string" && row.choices.includes(value)) return value;
      throw new QueueFSError("invalid-argument", `${what} must be one of ${row.choices.join(", ")}, got ${quote(value)}`);
    case "boolean":
    case "text":
      if (typeof value === (row.type === "text" ? "string" : "boolean")) return value;
      throw new QueueFSError(
        "invalid-argument",
        `${what} must be ${row.type === "text" ? "a text" : "true or false"}, got ${quote(value)}`,
      );
    case "json":
      return value;
    case "object":
      if ((typeof value === "object" || typeof value === "function") && value !== null) return value;
      throw new QueueFSError("invalid-argument", `${what} must be an object, got ${quote(value)}`);
  }
}

/** Checks that `value` is a whole number within bounds, and returns it. @throws QueueFSError `invalid-argument` */
export function checkInteger(what: string, value: unknown, minimum: number, maximum: number): number {
  if (typeof value === "number" && Number.isInteger(value) && value >= minimum && value <= maximum) return value;
  throw new QueueFSError(
    "invalid-argument",
    `${what} must be a whole number from ${minimum} to ${maximum}, got ${typeof value === "number" ? String(value) : quote(value)}`,
  );
}
