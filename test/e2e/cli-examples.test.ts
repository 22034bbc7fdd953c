/** The examples of every command's help run as they stand. */

import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { COMMAND_NAMES, loadCommands } from "../../src/cli/commands/index.ts";
import { exampleText } from "../../src/cli/program.ts";
import { type CommandLine, openCommandLine } from "../support/command-line.ts";
import { oldRecord, writeOldFile } from "../support/reference-file.ts";

const commands = await loadCommands([]);
/** All that has a help of its own, with the words that lead to it. */
const helps = commands.flatMap((row) => [
  [row.name, row] as const,
  ...("commands" in row ? row.commands.map((each) => [`${row.name} ${each.name}`, each] as const) : []),
]);

let cli: CommandLine;
beforeEach(() => {
  cli = openCommandLine();
});
afterEach(() => cli.dispose());

it("covers all commands, each under its own name", () => {
  expect(COMMAND_NAMES).toEqual(commands.map((command) => command.name));
  expect(COMMAND_NAMES).toEqual(
    expect.arrayContaining([
      ...[
        "mkdir",
        "ls",
        "rm",
        "enqueue",
        "dequeue",
        "peek",
        "ack",
        "nack",
        "release",
        "extend",
        "status",
        "size",
        "messages",
        "clear",
        "dead",
      ],
      ...["wait", "task", "cat", "write", "doctor", "migrate"],
    ]),
  );
  for (const [words, command] of helps) expect(command.examples.length, words).toBeGreaterThan(0);
  for (const words of ["create", "show", "list", "wait", "cancel", "retry", "update", "seal", "remove"])
    expect(helps.map(([each]) => each)).toContain(`task ${words}`);
});

describe.each(helps)("queuefs %s --help", (words, command) => {
  it("shows usage and its examples", async () => {
    const { exitCode, output, errors } = await cli.run([...words.split(" "), "--help"]);
    expect(exitCode).toBe(0);
    expect(errors).toBe("");
    expect(output).toContain(`Usage: queuefs ${words}`);
    expect(output).toContain(exampleText(command.examples));
    expect(output).toContain("--store");
  });

  it.each(command.examples.map((example) => [example.title, example] as const))("%s", async (_, example) => {
    if (example.needs === "reference-file") {
      writeOldFile(join(cli.folder, "queue.db"), {
        queues: ["jobs"],
        messages: [{ queue: "jobs", id: "1", record: oldRecord("1", "hello") }],
      });
    }
    const shell = cli.shell(example.lines);
    shell.process.stdin.end();
    const { exitCode, errors } = await shell.ended;
    expect({ exitCode, errors }).toEqual({ exitCode: example.exitCode ?? 0, errors: expect.any(String) });
  });
});
