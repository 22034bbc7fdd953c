/** Each import direction of CONTRIBUTING.md is broken once on purpose: biome must report it, that and nothing else, and pass the legal way. */

import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "..", "..");

/** Imports by the folder that has them: those that must be refused, and those that must pass. */
const DIRECTIONS: readonly { readonly file: string; readonly refused: readonly string[]; readonly legal: readonly string[] }[] = [
  {
    file: "src/core/fixture.ts",
    refused: ["node:fs", "node:fs/promises", "ioredis", "@hono/node-server", "../index.ts", "../backend/contract.ts", "../queue/worker.ts"],
    legal: ["./errors.ts"],
  },
  {
    file: "src/backend/contract.ts",
    refused: ["node:fs", "ioredis", "./memory/index.ts", "./sqlite/index.ts", "../queue/worker.ts", "../fs/index.ts"],
    legal: ["../core/errors.ts"],
  },
  {
    file: "src/backend/memory/fixture.ts",
    refused: [
      "../sqlite/index.ts",
      "../redis/index.ts",
      "../../queue/worker.ts",
      "../../fs/index.ts",
      "../../index.ts",
      "better-sqlite3",
      "ioredis",
    ],
    legal: ["./state.ts", "../contract.ts", "../../core/errors.ts", "node:os"],
  },
  {
    file: "src/backend/sqlite/fixture.ts",
    refused: ["../memory/index.ts", "../redis/index.ts", "../../queue/worker.ts", "../../store/open.ts", "../../index.ts", "ioredis"],
    legal: ["./state.ts", "../contract.ts", "../../core/errors.ts", "node:fs/promises", "better-sqlite3"],
  },
  {
    file: "src/backend/sqlite/deeper/fixture.ts",
    refused: ["../../memory/index.ts", "../../redis/index.ts", "../../../queue/worker.ts", "../../../index.ts"],
    legal: ["../state.ts", "../../contract.ts", "../../../core/errors.ts"],
  },
  {
    file: "src/backend/redis/fixture.ts",
    refused: ["../memory/index.ts", "../sqlite/index.ts", "../../queue/worker.ts", "../../cli/main.ts", "../../index.ts", "better-sqlite3"],
    legal: ["./state.ts", "../contract.ts", "../../core/errors.ts", "ioredis"],
  },
  {
    file: "src/backend/http/fixture.ts",
    refused: ["../memory/index.ts", "../sqlite/index.ts", "../../http/app.ts", "../../queue/worker.ts", "../../index.ts", "hono", "undici"],
    legal: ["./state.ts", "../contract.ts", "../../core/errors.ts", "node:http"],
  },
  {
    file: "src/store/fixture.ts",
    refused: ["../fs/index.ts", "../queue/worker.ts", "../cli/main.ts", "../index.ts", "better-sqlite3", "ioredis"],
    legal: ["../backend/contract.ts", "../backend/sqlite/index.ts", "../core/errors.ts", "node:path"],
  },
  {
    file: "src/migrate/fixture.ts",
    refused: ["../backend/sqlite/index.ts", "../queue/worker.ts", "../fs/index.ts", "../store/open.ts", "../cli/main.ts", "../index.ts"],
    legal: ["./record.ts", "../backend/contract.ts", "../core/errors.ts", "node:crypto", "better-sqlite3"],
  },
  {
    file: "src/queue/fixture.ts",
    refused: [
      "../backend/sqlite/index.ts",
      "../fs/index.ts",
      "../task/tasks.ts",
      "../store/open.ts",
      "../cli/main.ts",
      "../index.ts",
      "ioredis",
    ],
    legal: ["./worker.ts", "../backend/contract.ts", "../core/errors.ts"],
  },
  {
    file: "src/task/fixture.ts",
    refused: ["../backend/redis/index.ts", "../fs/index.ts", "../store/open.ts", "../index.ts"],
    legal: ["./tasks.ts", "../queue/worker.ts", "../backend/contract.ts", "../core/errors.ts"],
  },
  {
    file: "src/fs/fixture.ts",
    refused: ["../backend/memory/index.ts", "../store/open.ts", "../http/server.ts", "../cli/main.ts", "../index.ts", "hono"],
    legal: ["./port.ts", "../queue/worker.ts", "../task/tasks.ts", "../backend/contract.ts", "../core/errors.ts"],
  },
  {
    file: "src/http/fixture.ts",
    refused: [
      "../backend/sqlite/index.ts",
      "../backend/http/index.ts",
      "../store/open.ts",
      "../fuse/mount.ts",
      "../cli/main.ts",
      "../index.ts",
      "ioredis",
    ],
    legal: [
      "./server.ts",
      "../fs/port.ts",
      "../fs/index.ts",
      "../queue/wait.ts",
      "../task/wait.ts",
      "../backend/contract.ts",
      "../core/errors.ts",
      "node:http",
      "hono",
      "hono/sse",
      "@hono/node-server",
    ],
  },
  {
    file: "src/fuse/fixture.ts",
    refused: ["../fs/queue-fs.ts", "../queue/worker.ts", "../backend/contract.ts", "../http/server.ts", "../index.ts", "hono"],
    legal: ["./mount.ts", "../fs/port.ts", "../core/errors.ts"],
  },
  {
    file: "src/dashboard/fixture.ts",
    refused: ["../core/errors.ts", "../http/server.ts", "../fs/port.ts", "../index.ts", "node:fs"],
    legal: ["./page.ts", "preact", "preact/hooks", "uplot"],
  },
  {
    file: "src/testing/fixture.ts",
    refused: ["../backend/memory/index.ts", "../fs/index.ts", "../queue/worker.ts", "../index.ts", "vitest"],
    legal: ["./cases.ts", "../backend/contract.ts", "../core/errors.ts", "node:assert/strict"],
  },
  {
    file: "src/index.ts",
    refused: ["./backend/sqlite/index.ts", "./cli/main.ts", "./testing/index.ts", "./http/server.ts", "ioredis", "node:fs"],
    legal: ["./core/errors.ts", "./backend/contract.ts", "./store/open.ts", "./queue/worker.ts", "./task/tasks.ts", "./fs/index.ts"],
  },
  {
    file: "src/cli/fixture.ts",
    refused: [],
    legal: [
      "../index.ts",
      "../backend/sqlite/index.ts",
      "../fs/index.ts",
      "../http/server.ts",
      "../core/errors.ts",
      "commander",
      "node:fs",
    ],
  },
];

/** Other rules the repository lives by: a source that breaks it, and one that does not. */
const HABITS: readonly {
  readonly rule: string;
  readonly broken: string;
  readonly good: string;
  readonly helper?: [name: string, broken: string, good: string];
}[] = [
  { rule: "lint/suspicious/noExplicitAny", broken: "export const value: any = 1;\n", good: "export const value: unknown = 1;\n" },
  {
    rule: "lint/nursery/noFloatingPromises",
    broken: "async function later(): Promise<number> {\n  return 1;\n}\nlater();\nexport {};\n",
    good: "async function later(): Promise<number> {\n  return 1;\n}\nawait later();\nexport {};\n",
  },
  {
    rule: "lint/nursery/noMisusedPromises",
    broken: "async function later(): Promise<boolean> {\n  return true;\n}\nif (later()) process.exitCode = 1;\nexport {};\n",
    good: "async function later(): Promise<boolean> {\n  return true;\n}\nif (await later()) process.exitCode = 1;\nexport {};\n",
  },
  { rule: "lint/suspicious/noConsole", broken: 'console.log("here");\n', good: 'process.stdout.write("here");\n' },
  { rule: "lint/style/noNonNullAssertion", broken: "export const first = [1][0]!;\n", good: "export const first = [1][0] ?? 0;\n" },
  { rule: "lint/style/noDefaultExport", broken: "export default 1;\n", good: "export const one = 1;\n" },
  { rule: "lint/style/noEnum", broken: "export enum State {\n  Pending,\n}\n", good: 'export type State = "pending";\n' },
  {
    rule: "lint/style/noParameterProperties",
    broken: "export class Point {\n  constructor(readonly x: number) {}\n}\n",
    good: "export class Point {\n  readonly x: number;\n  constructor(x: number) {\n    this.x = x;\n  }\n}\n",
  },
  {
    rule: "lint/suspicious/noTsIgnore",
    broken: '// @ts-ignore\nexport const text: string = "";\n',
    good: 'export const text: string = "";\n',
  },
  {
    rule: "lint/style/useNodejsImportProtocol",
    broken: 'import { join } from "path";\nexport const path = join("a", "b");\n',
    good: 'import { join } from "node:path";\nexport const path = join("a", "b");\n',
  },
  {
    rule: "lint/correctness/useImportExtensions",
    broken: 'import { other } from "./use-import-extensions-broken-other";\nexport const value = other;\n',
    good: 'import { other } from "./use-import-extensions-good-other.ts";\nexport const value = other;\n',
    helper: ["other", "export const other = 1;\n", "export const other = 1;\n"],
  },
  {
    rule: "lint/suspicious/noImportCycles",
    broken: 'import { other } from "./no-import-cycles-broken-other.ts";\nexport const value = (): number => other() + 1;\n',
    good: 'import type { Other } from "./no-import-cycles-good-other.ts";\nexport type Value = Other | 1;\n',
    helper: [
      "other",
      'import { value } from "./no-import-cycles-broken.ts";\nexport const other = (): number => value() + 1;\n',
      "export type Other = 2;\n",
    ],
  },
  {
    rule: "lint/style/noExcessiveLinesPerFile",
    broken: Array.from({ length: 501 }, (_, line) => `export const value${line} = ${line};\n`).join(""),
    good: Array.from({ length: 499 }, (_, line) => `export const value${line} = ${line};\n`).join(""),
  },
  {
    rule: "lint/performance/noReExportAll",
    broken: 'export * from "node:path";\n',
    good: 'export { join } from "node:path";\n',
  },
  {
    rule: "lint/suspicious/noFocusedTests",
    broken: `import { it } from "vitest";\nit${"."}only("one", () => undefined);\n`,
    good: 'import { it } from "vitest";\nit("one", () => undefined);\n',
  },
  {
    rule: "lint/suspicious/noSkippedTests",
    broken: `import { it } from "vitest";\nit${"."}skip("one", () => undefined);\n`,
    good: 'import { it } from "vitest";\nit("one", () => undefined);\n',
  },
];

interface Diagnostic {
  readonly category: string;
  readonly location: { readonly path: string; readonly start: { readonly line: number } };
}

let folder = "";
let diagnostics: readonly Diagnostic[] = [];

/** The name of the fixture of a rule. */
function habitFile(rule: string, kind: "broken" | "good", suffix = ""): string {
  const name = (rule.split("/")[2] as string).replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  return `src/cli/${name}-${kind}${suffix}.ts`;
}

function write(file: string, text: string): void {
  mkdirSync(dirname(join(folder, file)), { recursive: true });
  writeFileSync(join(folder, file), text);
}

/** The lines of a file that biome reports, with the rule. */
function reported(file: string): readonly string[] {
  const ofFile = diagnostics.filter((diagnostic) => diagnostic.location.path === file);
  return ofFile
    .map((diagnostic) => `${diagnostic.location.start.line} ${diagnostic.category}`)
    .sort((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10));
}

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "queuefs-boundaries-"));
  const configuration = JSON.parse(readFileSync(join(root, "biome.json"), "utf8")) as Record<string, unknown>;
  // The fixtures are no repository and have no packages installed; all else is the configuration in use.
  const { $schema: _schema, vcs: _vcs, ...rest } = configuration;
  write("biome.json", JSON.stringify(rest));
  write("package.json", readFileSync(join(root, "package.json"), "utf8"));
  for (const { file, refused, legal } of DIRECTIONS) {
    write(file, [...refused, ...legal].map((specifier) => `import ${JSON.stringify(specifier)};\n`).join(""));
  }
  for (const { rule, broken, good, helper } of HABITS) {
    write(habitFile(rule, "broken"), broken);
    write(habitFile(rule, "good"), good);
    if (helper) {
      write(habitFile(rule, "broken", `-${helper[0]}`), helper[1]);
      write(habitFile(rule, "good", `-${helper[0]}`), helper[2]);
    }
  }
  write("src/cli/Wrong_Name.ts", "export const one = 1;\n");
  const biome = join(root, "node_modules", "@biomejs", "biome", "bin", "biome");
  const run = spawnSync(process.execPath, [biome, "lint", "--reporter=json", "--max-diagnostics=none", "src"], {
    cwd: folder,
    encoding: "utf8",
  });
  if (!run.stdout.startsWith("{")) throw new Error(`biome gave no report:\n${run.stdout}${run.stderr}`);
  diagnostics = (JSON.parse(run.stdout) as { diagnostics: Diagnostic[] }).diagnostics;
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("import directions", () => {
  it.each(DIRECTIONS)("of $file: $refused.length refused, $legal.length legal", ({ file, refused }) => {
    const restricted = reported(file).filter((line) => !line.endsWith("noUndeclaredDependencies"));
    expect(restricted).toEqual(refused.map((_, index) => `${index + 1} lint/style/noRestrictedImports`));
  });

  it("refuse a file name in other letters", () => {
    expect(reported("src/cli/Wrong_Name.ts")).toEqual(["0 lint/style/useFilenamingConvention"]);
  });

  it("hold for every folder of src/, the composition root alone excepted", () => {
    const folders = ["src", "src/backend"].flatMap((parent) =>
      readdirSync(join(root, parent), { withFileTypes: true })
        .filter((entry) => entry.isDirectory() && !["backend", "cli"].includes(entry.name))
        .map((entry) => `${parent}/${entry.name}/`),
    );
    for (const name of folders) {
      const tried = DIRECTIONS.some(({ file, refused }) => file.startsWith(name) && refused.length > 0);
      expect(tried, `${name} is a new layer: give it an override in biome.json and a fixture here`).toBe(true);
    }
  });

  it("stand for every layer of biome.json", () => {
    const configuration = JSON.parse(readFileSync(join(root, "biome.json"), "utf8")) as { overrides: { includes: string[] }[] };
    const layers = configuration.overrides.flatMap((override) => override.includes).filter((pattern) => pattern.startsWith("src/"));
    const tried = new Set(DIRECTIONS.map(({ file }) => file));
    for (const layer of layers) {
      const prefix = layer.replace(/\*.*$/, "");
      expect(
        [...tried].some((file) => file.startsWith(prefix)),
        `${layer} has no fixture`,
      ).toBe(true);
    }
  });
});

describe("rules", () => {
  it.each(HABITS)("$rule", ({ rule, helper }) => {
    const broken = [habitFile(rule, "broken"), ...(helper ? [habitFile(rule, "broken", `-${helper[0]}`)] : [])].flatMap(reported);
    const good = [habitFile(rule, "good"), ...(helper ? [habitFile(rule, "good", `-${helper[0]}`)] : [])].flatMap(reported);
    expect([...new Set(broken.map((line) => line.split(" ")[1]))]).toEqual([rule]);
    expect(good).toEqual([]);
  });
});
