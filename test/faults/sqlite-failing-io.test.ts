/**
 * The n-th call of the C library fails, for every n that a whole scenario reaches, of each kind of call and with each error that makes sense.
 * Where there are many, a sample is tried that differs from run to run; QUEUEFS_FAULTS_ALL_CALLS=1 tries all, QUEUEFS_SEED repeats a sample.
 */

import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { SeededRandom } from "../../src/testing/index.ts";
import { type Child, childProcesses } from "../support/child-process.ts";
import { report } from "./report.ts";
import { fastFolder } from "./sqlite-io/fast-folder.ts";
import { type Action, buildFileCalls, type CallKind, prepareFileCalls } from "./sqlite-io/file-calls.ts";
import type { FileCallPrograms } from "./sqlite-io/programs.ts";
import { writeTemplate } from "./sqlite-io/scenario.ts";
import { givenSeed } from "./sqlite-io/seed.ts";

const children = childProcesses<FileCallPrograms>("test/faults/sqlite-io/programs.ts");
const SAMPLE = process.env.QUEUEFS_FAULTS_ALL_CALLS === "1" ? Number.POSITIVE_INFINITY : 12;
/** A number that no scenario reaches. */
const NEVER = 1_000_000_000;
let folder: string;
let template: string;
let library: string;

beforeAll(() => {
  folder = mkdtempSync(join(fastFolder() ?? tmpdir(), "queuefs-failing-io-"));
  mkdirSync(join(folder, "library"));
  library = buildFileCalls(join(folder, "library"));
  template = join(folder, "template.db");
  writeTemplate(template);
});

afterEach(() => children.end());
afterAll(() => rmSync(folder, { recursive: true }));

/** A process with the library loaded, and how to run the scenario in it. */
async function start(): Promise<{ child: Child<FileCallPrograms>; counted: string; outside: string }> {
  const place = mkdtempSync(join(folder, "run-"));
  const { environment } = prepareFileCalls(library, join(place, "counted"), place);
  return { child: await children.start({ environment }), counted: join(place, "counted"), outside: join(place, "outside") };
}

const FAULTS: readonly (readonly [CallKind, Action])[] = [
  ["read", "EIO"],
  ["read", "ESTALE"],
  ["write", "EIO"],
  ["write", "ENOSPC"],
  ["write", "half"],
  ["sync", "EIO"],
  ["sync", "ENOSPC"],
  ["truncate", "EIO"],
  ["truncate", "ENOSPC"],
  ["open", "EIO"],
  ["open", "EMFILE"],
  ["map", "EIO"],
  ["unlink", "EIO"],
  ["stat", "EIO"],
];

/** Numbers from 1 to `total`, all or a sample. */
function numbers(total: number, random: SeededRandom): number[] {
  const all = Array.from({ length: total }, (_none, index) => index + 1);
  while (all.length > SAMPLE) all.splice(Math.floor(random.fraction() * all.length), 1);
  return all;
}

describe.each([
  ["a new file", false],
  ["a file of the first schema", true],
])("with %s", (_what, isOld) => {
  it.each(FAULTS)("no %s that fails with %s makes a store lie, crash or lose anything", async (kind, action) => {
    const random = new SeededRandom(givenSeed());
    const { child, counted, outside } = await start();
    const run = (number: number, sticky: boolean) =>
      child.call("runOnce", counted, outside, { kind, action, number, sticky }, isOld ? template : undefined);
    const whole = await run(NEVER, false);
    expect(whole).toMatchObject({ struck: 0, codes: [], violations: [] });
    expect(whole.seen).toBeGreaterThan(0);
    const failures: string[] = [];
    const codes: Record<string, number> = {};
    let runs = 0;
    for (const sticky of [false, true]) {
      for (const number of numbers(whole.seen, random)) {
        const result = await run(number, sticky);
        runs += 1;
        expect(result.struck).toBeGreaterThan(0);
        for (const code of result.codes) codes[code] = (codes[code] ?? 0) + 1;
        for (const violation of result.violations) failures.push(`${kind} ${number} ${action}${sticky ? ", sticky" : ""}: ${violation}`);
      }
    }
    report(`${kind} ${action}: ${whole.seen} calls, ${runs} runs, ${JSON.stringify(codes)}`);
    expect(failures).toEqual([]);
  });
});

it("a page that cannot be read while a sound file is checked at open is not called damage, whichever it is", async () => {
  const { child, counted, outside } = await start();
  // Opening an old file makes fewer calls than this, and the check is the last of it.
  const failures: string[] = [];
  for (let number = 1; number <= 70; number += 1) {
    const fault = { kind: "read", action: "ESTALE", number, sticky: false } as const;
    failures.push(...(await child.call("runOnce", counted, outside, fault, template)).violations);
  }
  expect(failures).toEqual([]);
});

describe("what the checks are worth", () => {
  it("writes that are said to be done and are not are found out", async () => {
    const random = new SeededRandom(givenSeed());
    const { child, counted, outside } = await start();
    const run = (number: number) => child.call("runOnce", counted, outside, { kind: "write", action: "drop", number, sticky: false });
    const { seen } = await run(NEVER);
    let found = 0;
    let runs = 0;
    // Many of them are written again before anybody reads them.
    for (const number of numbers(seen, random)) {
      found += (await run(number)).violations.length > 0 ? 1 : 0;
      runs += 1;
    }
    report(`${runs} runs with a write left out, ${found} of them found out`);
    expect(found).toBeGreaterThan(0);
  });
});
