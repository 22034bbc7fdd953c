/** The tables of docs/ say what the tables of the code say, read back from the pages as a reader would: both ways, cell for cell. */

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { findOptionTables } from "../../scripts/option-tables.ts";
import { CONTROL_FILES, type ControlFile } from "../../src/core/control-files.ts";
import { ERROR_TABLE, EXIT_CODE_EMPTY } from "../../src/core/errors.ts";
import { MESSAGE_EVENTS, MESSAGE_STATES } from "../../src/core/life-cycle.ts";
import * as limits from "../../src/core/limits.ts";
import { RESERVED_COMPONENTS } from "../../src/core/names.ts";
import { AGFS_ROUTES } from "../../src/http/agfs/routes.ts";
import { ROUTES } from "../../src/http/routes/table.ts";

const root = join(import.meta.dirname, "..", "..");

function page(name: string): string {
  return readFileSync(join(root, "docs", name), "utf8");
}

/** The rows of the first table after `heading`, without its head; code marks are taken off cells that are code and nothing else. */
function rowsAfter(text: string, heading: string): string[][] {
  const start = text.indexOf(`${heading}\n`);
  if (start < 0) throw new Error(`the page has no ${heading}`);
  const lines = text.slice(start).split("\n");
  const first = lines.findIndex((line) => line.startsWith("| "));
  const end = lines.findIndex((line, index) => index > first && !line.startsWith("| "));
  return lines.slice(first + 2, end).map((line) =>
    line
      .slice(2, -2)
      .split(/(?<!\\) \| /)
      .map((cell) => cell.replaceAll("\\|", "|").replace(/^`([^`]*)`$/, "$1")),
  );
}

function number(text: string | undefined): number {
  return Number(text?.replaceAll(",", ""));
}

/** What the cells of an option say: type, bounds, default, meaning. */
function readOption([type, bounds, standard, meaning]: readonly string[]): Record<string, unknown> {
  const shown: Record<string, unknown> = { type, meaning };
  if (type === "integer") [shown.minimum, shown.maximum] = (bounds as string).split(" to ").map(number);
  if (type === "choice") shown.choices = bounds?.replaceAll("`", "").split(", ");
  if (standard === "-") return shown;
  if (type === "integer") shown.default = number(standard);
  else if (type === "boolean") shown.default = standard === "true";
  else shown.default = standard === "empty" ? "" : standard;
  return shown;
}

describe("docs/guarantees.md", () => {
  it("names only tests that are there", () => {
    const named = [...page("guarantees.md").matchAll(/`((?:test|src)\/[^`]+)`/g)].map((match) => match[1] as string);
    expect(named.length).toBeGreaterThan(20);
    expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });
});

describe("docs/agfs.md", () => {
  it("lists every route of the AGFS file API, in order, and no other", () => {
    const rows = rowsAfter(page("agfs.md"), "## Endpoints").map(([methods, path, summary]) => ({
      methods: methods?.split(", "),
      path,
      summary,
    }));
    expect(rows).toEqual(AGFS_ROUTES.map(({ methods, path, summary }) => ({ methods, path, summary })));
  });
});

describe("docs/http.md", () => {
  it("lists every route of the native API, in order, and no other", () => {
    const rows = rowsAfter(page("http.md"), "## Routes").map(([method, path, summary]) => ({ method, path, summary }));
    expect(rows).toEqual(ROUTES.map(({ method, path, summary }) => ({ method, path, summary })));
  });
});

describe("docs/errors.md", () => {
  it("lists every error, in order, and no other", () => {
    const rows = rowsAfter(page("errors.md"), "## Codes").map(([code, errno, httpStatus, exitCode, retryable, meaning]) => {
      return [code, { errno, httpStatus: number(httpStatus), exitCode: number(exitCode), retryable: retryable === "yes", meaning }];
    });
    expect(rows).toEqual(Object.entries(ERROR_TABLE));
  });

  it("explains every exit code, and no other", () => {
    const codes = rowsAfter(page("errors.md"), "## Exit codes of the command line").map(([exitCode]) => number(exitCode));
    const used = new Set([0, EXIT_CODE_EMPTY, ...Object.values(ERROR_TABLE).map((row) => row.exitCode)]);
    expect(codes).toEqual([...used].sort((left, right) => left - right));
  });
});

describe("the error table", () => {
  it("keeps exit codes where a shell can tell them from its own: 1 to 125, the empty queue apart", () => {
    for (const [code, { exitCode }] of Object.entries(ERROR_TABLE)) {
      expect(exitCode > 1 && exitCode <= 125 && exitCode !== EXIT_CODE_EMPTY, code).toBe(true);
    }
  });

  it("lets repeat only what changed nothing and may pass, on HTTP as 4xx or 5xx", () => {
    for (const [code, row] of Object.entries(ERROR_TABLE)) {
      expect(row.httpStatus >= 400 && row.httpStatus <= 599, code).toBe(true);
      if (row.retryable) expect(row.httpStatus >= 500, code).toBe(true);
    }
    expect(ERROR_TABLE["outcome-unknown"].retryable).toBe(false);
  });
});

describe("docs/files.md", () => {
  it("lists every control file with its mode, what a read gives and what a write does", () => {
    const rows = rowsAfter(page("files.md"), "## Control files");
    const expected = Object.entries(CONTROL_FILES).map(([name, file]: [string, ControlFile]) => {
      return [name, `0${file.mode.toString(8)}`, file.read ?? "-", file.write ?? "-"];
    });
    expect(rows).toEqual(expected);
  });

  it("names errors by their own codes and errno", () => {
    const rows = rowsAfter(page("files.md"), "## Errors");
    for (const [, errno, codes] of rows) {
      for (const [, code] of (codes as string).matchAll(/`?([a-z-]+)`?/g)) {
        expect(ERROR_TABLE[code as keyof typeof ERROR_TABLE]?.errno, `${code}`).toBe(errno);
      }
    }
  });
});

describe("control files", () => {
  it("have a mode that fits what they can do, and only those without a dot take names away", () => {
    for (const [name, file] of Object.entries(CONTROL_FILES) as [string, ControlFile][]) {
      expect([file.read !== undefined, file.write !== undefined], name).toEqual([(file.mode & 0o444) !== 0, (file.mode & 0o222) !== 0]);
    }
    expect(Object.keys(CONTROL_FILES).filter((name) => !name.startsWith("."))).toEqual([...RESERVED_COMPONENTS]);
  });
});

describe("docs/names.md", () => {
  it("names all reserved components and the limits in force", () => {
    const text = page("names.md");
    const row = text.split("\n").find((line) => line.includes("is not the name of a control file")) as string;
    expect([...row.matchAll(/`(\w+)`/g)].map((match) => match[1])).toEqual([...RESERVED_COMPONENTS]);
    expect(text).toContain(`one to ${limits.MAX_NAME_DEPTH} components`);
    expect(text).toContain(`1 to ${limits.MAX_NAME_COMPONENT_BYTES} bytes of valid UTF-8`);
    expect(text).toContain(`1 to ${limits.MAX_ID_BYTES} bytes, no white space`);
  });
});

describe("docs/life-cycle.md", () => {
  it("shows which event leads from where to where", () => {
    const rows = rowsAfter(page("life-cycle.md"), "# The life of a message");
    const shown = rows.map(([event, ...cells]) => {
      const steps = MESSAGE_STATES.flatMap((state, index) => (cells[index] === "-" ? [] : [[state, cells[index]]]));
      return [event, Object.fromEntries(steps)];
    });
    expect(Object.fromEntries(shown)).toEqual(MESSAGE_EVENTS);
  });
});

describe("docs/options.md", () => {
  it("shows every option table of the sources, and no other", async () => {
    const tables = await findOptionTables();
    expect(tables.length).toBeGreaterThan(3);
    const headings = [...page("options.md").matchAll(/^### (.+)$/gm)].map((match) => match[1]);
    expect(headings).toEqual(tables.map(({ title }) => title));
    expect(new Set(headings).size).toBe(headings.length);
  });

  it("shows every option with its type, bounds, default and meaning", async () => {
    for (const { title, table } of await findOptionTables()) {
      const rows = rowsAfter(page("options.md"), `### ${title}`).map(([name, ...cells]) => [name, readOption(cells)]);
      const expected = Object.entries(table).map(([name, { type, meaning, ...row }]) => {
        const bounds = "minimum" in row ? { minimum: row.minimum, maximum: row.maximum } : "choices" in row ? { choices: row.choices } : {};
        const standard = "default" in row && row.default !== undefined ? { default: row.default } : {};
        return [name, { type, meaning, ...bounds, ...standard }];
      });
      expect(rows, title).toEqual(expected);
    }
  });

  it("shows every limit", () => {
    const rows = rowsAfter(page("options.md"), "## Limits").map(([name, value]) => [name, number(value)]);
    expect(Object.fromEntries(rows)).toEqual({ ...limits });
  });
});

describe("every page", () => {
  const pages = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", ...readdirSync(join(root, "docs")).map((name) => `docs/${name}`)].filter(
    (name) => name.endsWith(".md"),
  );

  it.each(pages)("%s links to what exists", (name) => {
    const text = readFileSync(join(root, name), "utf8");
    const links = [...text.matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)]
      .map((match) => match[1] as string)
      .filter((link) => !/^[a-z]+:/.test(link));
    expect(links.filter((link) => !existsSync(join(root, dirname(name), link)))).toEqual([]);
  });
});
