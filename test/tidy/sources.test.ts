/** The habits of the repository that no linter knows: each is a property of the tracked text, checked on every file. */

import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { hostname } from "node:os";
import { dirname, extname, join } from "node:path";
import { describe, expect, it } from "vitest";
import config from "../../vitest.config.ts";

const root = join(import.meta.dirname, "..", "..");

/** What a reader of the repository gets: tracked files, and new ones that no rule ignores. A copy without git (a tarball) has all its files. */
function repositoryFiles(): string[] {
  if (existsSync(join(root, ".git"))) {
    const listed = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], { cwd: root, encoding: "utf8" });
    return listed.split("\0").filter((file) => file !== "" && existsSync(join(root, file)));
  }
  const kept = readdirSync(root).filter((name) => !["node_modules", "dist", "coverage", "test-results"].includes(name));
  const entries = kept.flatMap((name) => [name, ...(extname(name) === "" ? tree(name) : [])]);
  return entries.filter((file) => extname(file) !== "");
}

function tree(folder: string): string[] {
  try {
    return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).map((file) => join(folder, file));
  } catch {
    return [];
  }
}

const files = repositoryFiles();
const sources = files.filter((file) => file.startsWith("src/") && file.endsWith(".ts"));
const handwritten = sources.filter((file) => !file.endsWith(".generated.ts"));
const texts = new Map(files.map((file) => [file, readFileSync(join(root, file), "utf8")]));

function linesOf(file: string): string[] {
  return (texts.get(file) as string).split("\n");
}

/** `FILE:LINE` of every exported declaration of a module that no doc comment explains. */
function undocumented(file: string): string[] {
  const lines = linesOf(file);
  const found: string[] = [];
  const seen = new Set<string>();
  for (const [index, line] of lines.entries()) {
    const name = /^export (?:declare |abstract |async )*(?:function\*?|class|interface|type|const|let|namespace) (\w+)/.exec(line)?.[1];
    if (name === undefined) continue;
    // Overloads, and a type named like its value, share the comment of the first.
    const before = lines.slice(0, index).filter((earlier) => !/^(?:\/\/ biome-ignore |@)/.test(earlier));
    if (!before.at(-1)?.trimEnd().endsWith("*/") && !seen.has(name)) found.push(`${file}:${index + 1} ${name}`);
    seen.add(name);
  }
  return found;
}

describe("sources", () => {
  it("exist, or these tests would pass on nothing", () => {
    expect(sources.length).toBeGreaterThan(10);
    expect(files).toContain("package.json");
  });

  it("explain everything they export", () => {
    expect(handwritten.flatMap(undocumented)).toEqual([]);
  });

  it("explain each module at its head", () => {
    expect(handwritten.filter((file) => !/^(?:#!.*\n)?\/\*\*/.test(texts.get(file) as string))).toEqual([]);
  });

  it("stay short enough to be read at one sitting: 500 lines", () => {
    expect(handwritten.filter((file) => linesOf(file).length > 500)).toEqual([]);
  });

  it("switch off no type check", () => {
    expect(sources.filter((file) => /@ts-(?:ignore|expect-error|nocheck)/.test(texts.get(file) as string))).toEqual([]);
  });

  it("reach other layers by import statements, which the linter sees, never by import() in a type", () => {
    const restricted = handwritten.filter((file) => !file.startsWith("src/cli/"));
    expect(restricted.filter((file) => /(?<!await |=> |return )\bimport\("\./.test(texts.get(file) as string))).toEqual([]);
  });

  it("keep a generated module only beside what it is generated from", () => {
    const orphans = sources.filter(
      (file) => file.endsWith(".generated.ts") && !existsSync(join(root, file.replace(/\.generated\.ts$/, ""))),
    );
    expect(orphans).toEqual([]);
  });
});

describe("tests", () => {
  const testFiles = files.filter((file) => file.startsWith("test/") && file.endsWith(".ts"));

  it("all run: none is skipped, focused or put off", () => {
    const notRun = /\b(?:it|test|describe)(?:\.\w+)*\.(?:skip|todo|only)\b|\bx(?:it|describe)\(/;
    expect(testFiles.filter((file) => notRun.test(texts.get(file) as string))).toEqual([]);
  });

  it("all belong to a project of vitest.config.ts", () => {
    const projects = (config.test?.projects ?? []) as { test: { name: string } }[];
    const folders = new Set(projects.map(({ test }) => test.name));
    expect(folders.size).toBeGreaterThan(5);
    expect(testFiles.filter((file) => file.endsWith(".test.ts") && !folders.has(file.split("/")[1] as string))).toEqual([]);
  });
});

describe("the repository", () => {
  it("names no place or registry of those who work on it", () => {
    const traces = new Set<string>();
    // The folder it lies in, unless that is a word like any other.
    if (root.split("/").length > 2) traces.add(`${root}/`);
    if (dirname(root).length > 1 && hostname().length > 8) traces.add(hostname());
    const registry = execFileSync("npm", ["config", "get", "registry"], { cwd: root, encoding: "utf8" }).trim();
    if (URL.canParse(registry) && new URL(registry).hostname !== "registry.npmjs.org") traces.add(new URL(registry).hostname);
    const found = files.flatMap((file) =>
      [...traces].filter((trace) => texts.get(file)?.includes(trace)).map((trace) => `${file}: ${trace}`),
    );
    expect(found).toEqual([]);
    const homes = /(?:^|[\s"'`(=:])\/(?:home|Users|root)\/[\w.-]+/m;
    expect(files.filter((file) => homes.test(texts.get(file) as string))).toEqual([]);
  });

  it("locks packages by version and hash, not by where they were fetched", () => {
    const lock = JSON.parse(texts.get("package-lock.json") as string) as {
      packages: Record<string, { resolved?: string; integrity?: string }>;
    };
    const entries = Object.entries(lock.packages).filter(([path]) => path !== "");
    expect(entries.length).toBeGreaterThan(50);
    expect(entries.filter(([, entry]) => entry.resolved !== undefined).map(([path]) => path)).toEqual([]);
    expect(entries.filter(([, entry]) => entry.integrity === undefined).map(([path]) => path)).toEqual([]);
  });

  it("has no folder or file for things without a home", () => {
    expect(files.filter((file) => /(?:^|\/)(?:utils?|helpers?|common|misc)(?:\/|\.\w+$)/.test(file))).toEqual([]);
  });
});
