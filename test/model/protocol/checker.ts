/** Runs the model checker SPIN on one model: every interleaving of its processes, the shortest way to an error if there is one. */

import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** What became of one check. */
export interface Checked {
  /** The assertion that some interleaving violates, or `undefined` when none does. */
  readonly violated: string | undefined;
  /** What the processes did on the shortest way there, a line each. */
  readonly trail: readonly string[];
  /** How many states were looked at. */
  readonly states: number;
}

/** Which programs are missing, as a sentence that says what to install; `undefined` when all are there. */
export function missingPrograms(): string | undefined {
  const missing = [
    ["spin", "-V"],
    ["gcc", "--version"],
  ].filter(([program, flag]) => spawnSync(program as string, [flag as string], { stdio: "ignore" }).status !== 0);
  if (missing.length === 0) return undefined;
  const names = missing.map(([program]) => program).join(" and ");
  return `the model checker needs ${names} on the PATH; install (Debian, Ubuntu): apt-get install ${names.replace(" and ", " ")}`;
}

/**
 * Looks at every state of a model.
 *
 * @param model a file of this folder
 * @param variant what is defined for it, such as `["SNAPSHOT", "REACHABLE"]`
 * @throws when the model is malformed, or too large for a search of all states
 */
export function check(model: string, variant: readonly string[]): Checked {
  const defined = variant.map((name) => `-D${name}`);
  const source = join(import.meta.dirname, model);
  const folder = mkdtempSync(join(tmpdir(), "queuefs-spin-"));
  const run = (program: string, args: readonly string[]): string =>
    execFileSync(program, args, { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], timeout: 120_000 });
  try {
    run("spin", ["-a", ...defined, source]);
    // Breadth first, so that the way to an error is a shortest one.
    run("gcc", ["-O0", "-w", "-DSAFETY", "-DBFS", "-o", "pan", "pan.c"]);
    const report = run("./pan", ["-m100000"]);
    const errors = /errors: (\d+)/.exec(report)?.[1];
    const states = /(\d+) states, stored/.exec(report)?.[1];
    if (errors === undefined || states === undefined || /max search depth too small|out of memory/.test(report)) throw new Error(report);
    if (errors === "0") return { violated: undefined, trail: [], states: Number(states) };
    const violated = /assertion violated\s+(.*?) \(at depth/.exec(report)?.[1];
    if (violated === undefined) throw new Error(report);
    writeFileSync(join(folder, "way.trail"), readFileSync(join(folder, `${model}.trail`)));
    const lines = spawnSync("spin", ["-T", "-B", "-k", "way.trail", ...defined, source], { cwd: folder, encoding: "utf8" }).stdout.split(
      "\n",
    );
    return { violated, trail: lines.filter((line) => line !== "" && !line.startsWith("spin:")), states: Number(states) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
