import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { runCommand } from "../../../src/cli/work/run-command.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "queuefs-command-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

it("hears what was written in time although the event loop was kept busy until long after it", async () => {
  const written = join(folder, "written");
  const controller = new AbortController();
  const { signal } = controller;
  const removeListener = signal.removeEventListener.bind(signal);
  // Called as soon as the program is known to have ended. Busy until what it left running has written, and until nobody would listen any more.
  signal.removeEventListener = (...values: Parameters<typeof removeListener>): void => {
    removeListener(...values);
    setImmediate(() => {
      const begunMs = performance.now();
      while (!existsSync(written) || performance.now() - begunMs < 400);
    });
  };
  const output: string[] = [];
  const end = await runCommand(
    {
      command: "sh",
      commandArguments: ["-c", `(sleep 0.1; echo late; touch '${written}') & exit 0`],
      environment: process.env,
      killAfterMs: 1_000,
    },
    {
      input: [],
      environment: {},
      abort: signal,
      write: async (_stream, chunk) => void output.push(Buffer.from(chunk).toString()),
    },
  );
  expect(end).toMatchObject({ code: 0, outputError: undefined });
  expect(output.join("")).toBe("late\n");
});
