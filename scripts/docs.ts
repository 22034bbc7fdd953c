/**
 * Writes the tables of docs/ from the tables of the sources, so that each fact stands in one place. A page holds lines
 * `<!-- table NAME -->` and `<!-- end -->`; what lies between is replaced. `--check` writes nothing and exits 1 when a page is not fresh.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { CONTROL_FILES, type ControlFile } from "../src/core/control-files.ts";
import { ERROR_TABLE, EXIT_CODE_EMPTY } from "../src/core/errors.ts";
import { MESSAGE_EVENTS, MESSAGE_STATES, nextState } from "../src/core/life-cycle.ts";
import type { OptionRow } from "../src/core/options.ts";
import { AGFS_ROUTES } from "../src/http/agfs/routes.ts";
import { ROUTES } from "../src/http/routes/table.ts";
import { findOptionTables } from "./option-tables.ts";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");

function cell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("\n", " ");
}

function code(text: string | number): string {
  return `\`${text}\``;
}

function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => "---"), ...rows].map((row) => `| ${row.map(cell).join(" | ")} |`).join("\n");
}

function errorTable(): string {
  const rows = Object.entries(ERROR_TABLE).map(([name, row]) => {
    return [code(name), code(row.errno), String(row.httpStatus), String(row.exitCode), row.retryable ? "yes" : "no", row.meaning];
  });
  return markdownTable(["code", "errno", "HTTP status", "exit code", "same call may succeed later", "meaning"], rows);
}

function exitCodeTable(): string {
  const meanings = new Map<number, string[]>([
    [0, ["success"]],
    [EXIT_CODE_EMPTY, ["the queue had nothing to give (no error)"]],
  ]);
  for (const [name, { exitCode }] of Object.entries(ERROR_TABLE)) meanings.set(exitCode, [...(meanings.get(exitCode) ?? []), code(name)]);
  return markdownTable(
    ["exit code", "means"],
    [...meanings].sort(([left], [right]) => left - right).map(([exitCode, names]) => [String(exitCode), names.join(", ")]),
  );
}

function controlFileTable(): string {
  const rows = Object.entries(CONTROL_FILES).map(([name, file]: [string, ControlFile]) => {
    return [code(name), `0${file.mode.toString(8)}`, file.read ?? "-", file.write ?? "-"];
  });
  return markdownTable(["file", "mode", "a read gives", "a write does"], rows);
}

function agfsRouteTable(): string {
  const rows = AGFS_ROUTES.map(({ methods, path, summary }) => [methods.join(", "), code(path), summary]);
  return markdownTable(["method", "path", "does"], rows);
}

function httpRouteTable(): string {
  const rows = ROUTES.map(({ method, path, summary }) => [method, code(path), summary]);
  return markdownTable(["method", "path", "does"], rows);
}

function lifeCycleTable(): string {
  const rows = (Object.keys(MESSAGE_EVENTS) as (keyof typeof MESSAGE_EVENTS)[]).map((event) => {
    return [event, ...MESSAGE_STATES.map((state) => nextState(state, event) ?? "-")];
  });
  return markdownTable(["event", ...MESSAGE_STATES.map((state) => `in ${state}`)], rows);
}

async function limitTable(): Promise<string> {
  const path = join(root, "src", "core", "limits.ts");
  const limits = (await import(pathToFileURL(path).href)) as Record<string, number>;
  const found = [...readFileSync(path, "utf8").matchAll(/^\/\*\* (.+) \*\/\nexport const (\w+) =/gm)] as unknown as [
    string,
    string,
    string,
  ][];
  if (found.length !== Object.keys(limits).length) throw new Error("src/core/limits.ts: each limit needs a doc comment of one line");
  return markdownTable(
    ["limit", "value", "meaning"],
    found.map(([, meaning, name]) => [code(name), (limits[name] as number).toLocaleString("en-US"), meaning]),
  );
}

function bounds(row: OptionRow): string {
  if (row.type === "integer") return `${row.minimum.toLocaleString("en-US")} to ${row.maximum.toLocaleString("en-US")}`;
  return row.type === "choice" ? row.choices.map(code).join(", ") : "-";
}

function defaultOf(row: OptionRow): string {
  if (!("default" in row) || row.default === undefined) return "-";
  if (typeof row.default === "number") return row.default.toLocaleString("en-US");
  return row.default === "" ? "empty" : code(String(row.default));
}

async function optionTables(): Promise<string> {
  const sections = (await findOptionTables()).map(({ title, table }) => {
    const rows = Object.entries(table).map(([name, row]) => [code(name), row.type, bounds(row), defaultOf(row), row.meaning]);
    return `### ${title}\n\n${markdownTable(["option", "type", "bounds", "default", "meaning"], rows)}`;
  });
  return sections.join("\n\n");
}

const TABLES: Record<string, () => string | Promise<string>> = {
  errors: errorTable,
  "exit-codes": exitCodeTable,
  "control-files": controlFileTable,
  "agfs-routes": agfsRouteTable,
  "http-routes": httpRouteTable,
  "life-cycle": lifeCycleTable,
  limits: limitTable,
  options: optionTables,
};

const REGION = /(<!-- table ([a-z-]+) -->\n)[\s\S]*?(<!-- end -->)/g;
const check = process.argv.includes("--check");
const used = new Set<string>();
for (const page of readdirSync(join(root, "docs")).filter((file) => file.endsWith(".md"))) {
  const path = join(root, "docs", page);
  const before = readFileSync(path, "utf8");
  let after = "";
  let end = 0;
  for (const region of before.matchAll(REGION)) {
    const [whole, open, name, close] = region as unknown as [string, string, string, string];
    const table = TABLES[name];
    if (table === undefined) throw new Error(`docs/${page}: there is no table "${name}"; there are ${Object.keys(TABLES).join(", ")}`);
    used.add(name);
    after += `${before.slice(end, region.index)}${open}\n${await table()}\n\n${close}`;
    end = region.index + whole.length;
  }
  after += before.slice(end);
  if (after === before) continue;
  if (check) {
    console.error(`docs/${page} is not fresh; run npm run docs`);
    process.exitCode = 1;
  } else {
    writeFileSync(path, after);
  }
}
for (const name of Object.keys(TABLES)) {
  if (used.has(name)) continue;
  console.error(`no page of docs/ shows the table "${name}"; add <!-- table ${name} --> and <!-- end --> where it belongs`);
  process.exitCode = 1;
}
