/** The command line in process: any arguments end in an exit code of the table, with words for people and never with a stack. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { COMMAND_NAMES } from "../../src/cli/commands/index.ts";
import { run } from "../../src/cli/program.ts";
import type { ProcessParts } from "../../src/cli/session.ts";
import { ERROR_TABLE, EXIT_CODE_EMPTY } from "../../src/core/errors.ts";
import { holdAsync } from "./fuzzing.ts";
import { anyBytes, anyText } from "./values.ts";

const SECRET = "Zq7Wx9Kv3Jp5Ym2Q";
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "queuefs-arguments-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs the program on streams of its own; nothing of this process is touched. */
async function runWith(
  words: readonly string[],
  input: Uint8Array,
): Promise<{ readonly exitCode: number; readonly output: string; readonly errors: string }> {
  const stdin = new PassThrough();
  const written: Record<"output" | "errors", Buffer[]> = { output: [], errors: [] };
  const sink = (parts: Buffer[]): PassThrough => new PassThrough().on("data", (part: Buffer) => void parts.push(part));
  stdin.end(input);
  const parts = {
    argv: ["node", "queuefs", ...words],
    env: { QUEUEFS_STORE: "memory:", QUEUEFS_TOKEN: SECRET, HOME: folder },
    stdin,
    stdout: sink(written.output),
    stderr: sink(written.errors),
    on: () => parts,
    off: () => parts,
    exit: (code: number) => expect.fail(`the process was ended with ${code}`),
  };
  const exitCode = await run(parts as unknown as ProcessParts);
  const text = (of: readonly Buffer[]): string => Buffer.concat(of).toString("utf8");
  return { exitCode, output: text(written.output), errors: text(written.errors) };
}

/** What these do goes on until they are told to end, or touches files. */
const ENDLESS = new Set(["serve", "work", "migrate"]);
const command = fc.constantFrom(...COMMAND_NAMES.filter((name) => !ENDLESS.has(name)), "help", "nonsense");
const OPTIONS = [
  "--json",
  "--under",
  "--limit",
  "--lease",
  "--delay",
  "--id",
  "--task",
  "--no-task",
  "--all",
  "--redrive",
  "--drop",
  "--reason",
  "--give-up",
  "--recursive",
  "--type",
  "--status",
  "--resource",
  "--from",
  "--to",
  "--lines",
  "--help",
  "--version",
  "--quiet",
  "--",
  "-",
  "-x",
  "--wait=0",
  "--timeout=0",
  "--max-deliveries",
];
const word = fc
  .oneof(
    fc.constantFrom(
      "q",
      "a/b",
      "/q/size",
      "/q/status",
      "r-1-1-1",
      "m-1",
      "0",
      "-1",
      "5s",
      "1e9",
      "list",
      "create",
      "show",
      "cancel",
      "all",
    ),
    fc.constantFrom(...OPTIONS),
    fc.tuple(fc.constantFrom(...OPTIONS), anyText).map((parts) => parts.join("=")),
    anyText,
  )
  // Other stores would be made, or waited for; and what waits or follows would do so for as long as it is told to.
  .filter((text) => !/^--(?:store|follow|watch|token|wait$|timeout$|wait=[^0]|timeout=[^0]|output|file)|^-[a-z]*[fw]/.test(text));

/** Exit codes that some row of the table has, and those that are no errors. */
const CODES = new Set<number>([0, EXIT_CODE_EMPTY, ...Object.values(ERROR_TABLE).map(({ exitCode }) => exitCode)]);

test("any arguments end in an exit code of the table", async () => {
  await holdAsync<[string, string[], Uint8Array]>([command, fc.array(word, { maxLength: 5 }), anyBytes], 4, async (name, words, input) => {
    const { exitCode, output, errors } = await runWith([name, ...words], input);
    expect(CODES, errors).toContain(exitCode);
    expect(exitCode, errors).not.toBe(ERROR_TABLE.internal.exitCode);
    expect(output + errors).not.toMatch(/\n\s+at .*:\d+:\d+|unexpected error|node_modules/);
    expect(output + errors).not.toContain(SECRET);
    if (exitCode !== 0 && exitCode !== EXIT_CODE_EMPTY) expect(errors.trim()).not.toBe("");
    if (!words.includes("--json")) return;
    for (const line of errors.split("\n").filter(Boolean)) expect(() => JSON.parse(line), line).not.toThrow();
  });
});
