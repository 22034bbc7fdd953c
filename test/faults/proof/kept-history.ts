/** Histories that showed a violation, kept in a file and checked again. */

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { check } from "./check/check.ts";
import type { Report } from "./check/promises.ts";
import type { Fault, History, Operation } from "./operation.ts";
import { type ProofBackend, promisesOf } from "./place.ts";

/** Writes a history, a line for each operation and fault. */
export function keepHistory(path: string, backend: ProofBackend, { operations, faults, drained }: History): void {
  const lines = [{ backend, drained }, ...faults.map((fault) => ({ fault })), ...operations];
  mkdirSync(dirname(path), { recursive: true });
  // JSON has no Infinity; what has no end was never answered.
  writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
}

/** Reads a history that was kept, and checks it. */
export function checkKept(path: string): Report {
  const [first, ...lines] = readFileSync(path, "utf8")
    .trimEnd()
    .split("\n")
    .map((line): Record<string, unknown> => JSON.parse(line));
  const { backend, drained } = first as { readonly backend: ProofBackend; readonly drained: boolean };
  const faults = lines.flatMap(({ fault }) => (fault === undefined ? [] : [fault as Fault]));
  const operations = lines
    .filter(({ fault }) => fault === undefined)
    .map((line) => ({ ...line, end: line.end ?? Number.POSITIVE_INFINITY }) as unknown as Operation);
  return check({ operations, faults, drained }, promisesOf(backend));
}
