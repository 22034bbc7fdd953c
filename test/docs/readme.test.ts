/**
 * Every block of README.md, docs/http.md and docs/tasks.md that looks like something to run is run as it stands, in a fresh folder for each page, against the
 * built package: programs are compiled and started, shell lines go to bash with `queuefs` on the PATH. A block of text after one is what it must
 * print.
 */

import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "..", "..");

interface Block {
  readonly language: string;
  readonly text: string;
  /** What it must print, if the page says so. */
  readonly output?: string;
  /** Why it is not run, if the page says so. */
  readonly notRun?: string;
  readonly title: string;
}

/** The fenced blocks of a page, in order. */
function blocksOf(page: string): Block[] {
  const blocks: Block[] = [];
  const text = readFileSync(join(root, page), "utf8");
  for (const match of text.matchAll(/(?:<!-- not run here: (.+) -->\n)?^```(\w*)\n([\s\S]*?)^```$/gm)) {
    const [, notRun, language, body] = match as unknown as [string, string | undefined, string, string];
    const last = blocks.at(-1);
    if (language === "text" && last !== undefined) {
      blocks[blocks.length - 1] = { ...last, output: body };
      continue;
    }
    const title = `${page}:${text.slice(0, match.index).split("\n").length} ${body.split("\n")[0]}`;
    blocks.push({ language, text: body, title, ...(notRun === undefined ? {} : { notRun }) });
  }
  return blocks;
}

const PAGES = ["README.md", "docs/http.md", "docs/tasks.md"];
const readme = blocksOf("README.md");
let folder = "";
let environment: NodeJS.ProcessEnv = {};

function makeFolder(): void {
  folder = mkdtempSync(join(tmpdir(), "queuefs-readme-"));
  for (const name of ["node_modules", "bin", "home"]) mkdirSync(join(folder, name));
  symlinkSync(root, join(folder, "node_modules", "queuefs"));
  symlinkSync(join(root, "node_modules", "@types"), join(folder, "node_modules", "@types"));
  symlinkSync(join(root, "dist", "cli", "main.js"), join(folder, "bin", "queuefs"));
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }\n');
  const { QUEUEFS_STORE: _store, ...rest } = process.env;
  const path = [join(folder, "bin"), rest.PATH].join(delimiter);
  environment = { ...rest, PATH: path, HOME: join(folder, "home"), XDG_DATA_HOME: join(folder, "home", "data"), NO_COLOR: "1" };
}

function start(
  program: string,
  args: readonly string[],
  input = "",
): { readonly status: number | null; readonly output: string; readonly errors: string } {
  const { status, stdout, stderr } = spawnSync(program, args, { cwd: folder, env: environment, input, encoding: "utf8" });
  return { status, output: stdout, errors: stderr };
}

describe("README.md", () => {
  it("leaves out of the run only the commands that install", () => {
    const left = readme.filter((block) => block.notRun !== undefined).flatMap((block) => block.text.trim().split("\n"));
    expect(left).toEqual(["npm ci && npm run demo", "npm ci && npm test", "npm install queuefs"]);
    const run = readme.filter((block) => block.notRun === undefined);
    expect(readme.filter((block) => !["ts", "sh", "text"].includes(block.language)).map((block) => block.title)).toEqual([]);
    expect(run.filter((block) => block.language === "ts").length).toBeGreaterThan(1);
    expect(run.filter((block) => block.language === "sh").length).toBeGreaterThan(0);
  });

  it("names only scripts that exist", () => {
    const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { scripts: Record<string, string> };
    const pages = ["README.md", "CONTRIBUTING.md"].map((page) => readFileSync(join(root, page), "utf8")).join("\n");
    const named = [...pages.matchAll(/npm (?:run ([\w:-]+)|(test)\b)/g)].map((match) => (match[1] ?? match[2]) as string);
    expect([...new Set(named)].filter((name) => scripts[name] === undefined)).toEqual([]);
  });
});

describe.each(PAGES)("%s", (page) => {
  const run = blocksOf(page).filter((block) => block.notRun === undefined);
  beforeAll(makeFolder);
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it.each(run.filter((block) => block.language === "ts"))("$title", ({ text, output }) => {
    writeFileSync(join(folder, "block.ts"), text);
    const compiler = join(root, "node_modules", "typescript", "bin", "tsc");
    const options = [
      "--noEmit",
      "--strict",
      "--target",
      "es2022",
      "--module",
      "nodenext",
      "--types",
      "node",
      "--skipLibCheck",
      "--noUncheckedIndexedAccess",
    ];
    expect(start(process.execPath, [compiler, ...options, "block.ts"])).toEqual({ status: 0, output: "", errors: "" });
    const done = start(process.execPath, ["--import", import.meta.resolve("tsx"), "block.ts"]);
    expect(done).toEqual({ status: 0, output: output ?? done.output, errors: "" });
  });

  it.each(run.filter((block) => block.language === "sh"))("$title", ({ text, output }) => {
    const done = start("bash", ["-e", "-u", "-o", "pipefail", "-s"], text);
    expect(done).toEqual({ status: 0, output: output ?? done.output, errors: done.errors });
  });
});
