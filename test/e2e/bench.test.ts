/** `npm run bench` as a process, on the part of it whose figures are the same in every run: bytes on disk. Their aims are held here. */

import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "..", "..");
let folder = "";

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "queuefs-bench-test-"));
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Written {
  readonly suites: Record<
    string,
    { readonly measures: Record<string, { readonly contenders: Record<string, { readonly rounds: number[] }> }> }
  >;
  readonly aims: readonly { readonly aim: string; readonly measured: number; readonly isMet: boolean }[];
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

  it("refuses a suite that there is not, and names those that there are", () => {
    const { status, stderr } = spawnSync("npm", ["run", "--silent", "bench", "--", "--only", "nothing"], { cwd: root, encoding: "utf8" });
    expect(status).toBe(1);
    expect(stderr).toContain("--only takes one of sqlite, sqlite-storage, sqlite-depth, sqlite-processes, memory, redis");
  });
});
