/** All statements, prepared once per connection: preparing again costs more than running. */

import type { Statement } from "better-sqlite3";
import type { Database } from "./connection.ts";
import { statements } from "./statements.generated.ts";

/** The name of a statement in statements/*.sql. */
export type StatementName = keyof typeof statements;
/** A prepared statement; rows come as arrays in the order of its columns. */
export type Prepared = Statement<unknown[], unknown>;
/** Every statement of one connection. */
export type Statements = { readonly [Name in StatementName]: Prepared };

/** Prepares every statement; those that return rows do so as arrays, which costs less than objects. */
export function prepareStatements(database: Database): Statements {
  const prepared: Partial<Record<StatementName, Prepared>> = {};
  for (const [name, sql] of Object.entries(statements)) {
    const statement = database.prepare<unknown[], unknown>(sql);
    prepared[name as StatementName] = statement.reader ? statement.raw(true) : statement;
  }
  return prepared as Statements;
}
