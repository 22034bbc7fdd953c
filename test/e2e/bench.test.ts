/**
 * `npm run bench` as a process: the part of it whose figures are the same in every run, bytes on disk, whose aims are held here; and all of
 * it with sizes so small that the figures mean nothing, with the page and the pictures that it writes.
 */

import { execFile, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "..", "..");
let folder = "";

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "queuefs-bench-test-"));
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** How long a run of everything may take on a machine that is busy with other tests. */
const WHOLE_RUN_MS = 600_000;

interface Written {
  readonly suites: Record<
    string,
    { readonly measures: Record<string, { readonly contenders: Record<string, { readonly rounds: number[] }> }> }
  >;
  readonly seconds: Record<string, number>;
  readonly aims: readonly { readonly aim: string; readonly measured: number; readonly isMet: boolean }[];
}

/** All parts of a run. */
const SUITES = [
  "sqlite",
  "sqlite-storage",
  "sqlite-depth",
  "sqlite-processes",
  "memory",
  "redis",
  "tasks",
  "depth",
  "callers",
  "payload",
  "growth",
  "event-loop",
  "waits",
  "start-up",
  "idle",
  "http",
];

/** What aims are about that need no peer to be judged. */
const AIMS = [
  "SQLite normal: enqueue x64 / raw batches",
  "two processes / one",
  "log bytes per cycle",
  "three PINGs",
  "memory: cycle x1",
  "Redis: status at",
  "SQLite: snapshot of",
  "memory: ack, 100,000 in processing",
  "beyond its payload",
  "SQLite: last ack to the return of who waits, between processes",
  "Redis: what an idle worker adds",
  "messages with tasks / without",
  "SQLite: heap at the end",
  "over HTTP / in the process",
  "an empty handler's single calls",
];

const PICTURES = [
  "sqlite.svg",
  "sqlite-processes.svg",
  "memory.svg",
  "redis.svg",
  "depth-status.svg",
  "depth-enqueue.svg",
  "depth-take.svg",
  "callers.svg",
  "payload.svg",
  "growth.svg",
];

/** What is wrong with a page of results and its pictures: tables that are not square, figures without a ratio, pictures that cannot be shown. */
function faultsOfPage(docs: string): string[] {
  const page = readFileSync(join(docs, "benchmarks.md"), "utf8");
  const [head = "", aims = "", ...sections] = page.split("\n## ");
  const faults: string[] = [];
  const check = (isFine: boolean, fault: string): void => {
    if (!isFine) faults.push(fault);
  };
  check(/^# Benchmarks\n/.test(head), "the page has no title");
  check(/^- \d{4}-\d\d-\d\d, \d+ cores \(.+\), \d+ GiB of memory, /m.test(head), "the page does not say when and where");
  check(/^- Node\.js \d/m.test(head) && /SQLite \d/.test(head) && /Redis server \d/.test(head), "the page does not say which versions");
  check(aims.startsWith("Aims\n") && /\| (?:met|MISSED) \|$/m.test(aims), "the page has no table of aims");
  check(sections.length > 0, "the page has no results");
  for (const section of sections) {
    const title = section.slice(0, section.indexOf("\n"));
    const rows = section.match(/^\|.*\|$/gm)?.map((row) => row.slice(2, -2).split(" | ")) ?? [];
    check(rows.length >= 3, `${title}: no table`);
    check(new Set(rows.map(({ length }) => length)).size === 1, `${title}: rows of different lengths`);
    for (const [side, ...cells] of rows.slice(2)) {
      for (const cell of cells) check(/^(?:|-|\S+ \((?:-|[\d.]+)\))$/.test(cell.trim()), `${title}, ${side}: ${cell} has no ratio`);
    }
  }
  const named = [...page.matchAll(/!\[[^\]]+\]\((benchmarks\/[\w-]+\.svg)\)/g)].map(([, path]) => path as string);
  const there = readdirSync(join(docs, "benchmarks")).map((name) => `benchmarks/${name}`);
  check(JSON.stringify([...named].sort()) === JSON.stringify([...there].sort()), `named: ${named.join()}, there: ${there.join()}`);
  for (const path of there) {
    const picture = readFileSync(join(docs, path), "utf8");
    check(/^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg" [^>]*>\n<title>[^<]+<\/title>\n/.test(picture), `${path}: no head`);
    check(picture.endsWith("</svg>\n"), `${path}: no end`);
    check(!/NaN|undefined|Infinity/.test(picture), `${path}: a number that is none`);
    check(!/background|<style|#fff|#000|white|black/i.test(picture), `${path}: chosen for one background`);
    check(picture.split("\n").every(isElement), `${path}: a line that is no element`);
  }
  return faults;
}

/** Whether a line of a picture is whole: one empty element, one with text, or the begin or end of the picture, with no stray mark in texts. */
function isElement(line: string): boolean {
  return /^(?:<svg [^<>]*| {2}[^<>]*>|<(\w+)(?: [\w-]+="[^"<>]*")*(?:\/>|>[^<>]*<\/\1>)|<\/svg>|)$/.test(line);
}

describe("npm run bench", () => {
  it("measures what a message and a cycle write to SQLite, within the aims, and writes it as table and as JSON", () => {
    const path = join(folder, "bench.json");
    const options = ["--quick", "--only", "sqlite-storage", "--gate", "--json", path];
    const { status, stdout, stderr } = spawnSync("npm", ["run", "--silent", "bench", "--", ...options], { cwd: root, encoding: "utf8" });
    expect(status, stdout + stderr).toBe(0);
    expect(stdout).toMatch(/^QueueFS, normal +\d+ \(1\.00\) +[\d,]+ \(1\.00\) +[\d,]+ \(1\.00\)$/m);
    expect(stdout).toMatch(/^per call, normal +\d+ \(\d/m);

    const { suites, aims } = JSON.parse(readFileSync(path, "utf8")) as Written;
    expect(aims.map(({ aim, isMet }) => [aim, isMet])).toEqual([
      ["SQLite: log bytes per cycle", true],
      ["SQLite: bytes per stored message beyond its payload", true],
    ]);
    const log = suites["sqlite-storage"]?.measures["log bytes per cycle x1"]?.contenders ?? {};
    const own = log["QueueFS, normal"]?.rounds[0] ?? Number.NaN;
    // Half of what a transaction per call of the reference layout writes, and no more than the statements themselves need.
    expect(own).toBeLessThan(0.6 * (log["per call, normal"]?.rounds[0] ?? Number.NaN));
    expect(own).toBeLessThan(1.05 * (log["raw batches, normal"]?.rounds[0] ?? Number.NaN));
  });

  it("runs every suite, and writes a page with pictures", { timeout: WHOLE_RUN_MS }, async () => {
    const path = join(folder, "whole.json");
    const docs = join(folder, "docs");
    mkdirSync(docs);
    const options = ["run", "--silent", "bench", "--", "--tiny", "--json", path, "--docs", docs];
    await promisify(execFile)("npm", options, { cwd: root, maxBuffer: 64 * 1024 * 1024 });

    const { suites, seconds, aims } = JSON.parse(readFileSync(path, "utf8")) as Written;
    expect(Object.keys(seconds).sort()).toEqual([...SUITES].sort());
    const unusable = Object.entries(suites).flatMap(([suite, { measures }]) => {
      const figures = Object.entries(measures).flatMap(([measure, { contenders }]) =>
        Object.entries(contenders).flatMap(([contender, { rounds }]) => rounds.map((value) => ({ measure, contender, value }))),
      );
      if (figures.length === 0) return [`${suite} measured nothing`];
      return figures
        .filter(({ value }) => !Number.isFinite(value))
        .map(({ measure, contender }) => `${suite}: ${measure}, ${contender} is no number`);
    });
    expect(unusable).toEqual([]);
    // One aim of each row of the table of aims: what was measured is judged.
    const judged = aims.map(({ aim }) => aim);
    for (const part of AIMS)
      expect(
        judged.some((aim) => aim.includes(part)),
        `an aim about ${part}`,
      ).toBe(true);
    expect(faultsOfPage(docs)).toEqual([]);
    expect(readdirSync(join(docs, "benchmarks")).sort()).toEqual([...PICTURES].sort());
  });

  it("wrote the page of the repository, once there is one, which is whole", () => {
    const docs = join(root, "docs");
    expect(existsSync(join(docs, "benchmarks.md")) ? faultsOfPage(docs) : []).toEqual([]);
  });

  it("refuses a suite that there is not, and names those that there are", () => {
    const { status, stderr } = spawnSync("npm", ["run", "--silent", "bench", "--", "--only", "nothing"], { cwd: root, encoding: "utf8" });
    expect(status).toBe(1);
    expect(stderr).toContain(
      "--only takes one of memory, sqlite, sqlite-storage, sqlite-depth, sqlite-processes, redis, tasks, depth, callers",
    );
  });
});
