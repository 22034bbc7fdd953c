/** Puts the commands together, runs the one that is asked for, and turns its end into an exit code. */

import { readFileSync } from "node:fs";
import { Command, CommanderError } from "commander";
import { ERROR_TABLE, isQueueFSError } from "../core/errors.ts";
import type { CommandGroup, CommandRow, Example } from "./command.ts";
import { loadCommands } from "./commands/index.ts";
import { Output, OutputClosedError, OutputFailedError } from "./output.ts";
import {
  type GlobalOptions,
  INTERRUPTING_SIGNALS,
  InterruptedError,
  type InterruptingSignal,
  type ProcessParts,
  Session,
} from "./session.ts";
import { STORE_VARIABLE, TOKEN_VARIABLE } from "./store-option.ts";
import { visibleJson, visibleLines } from "./visible.ts";

function version(): string {
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return String((JSON.parse(text) as { readonly version: unknown }).version);
}

/** Examples as the help shows them. */
export function exampleText(examples: readonly Example[]): string {
  const blocks = examples.map((example) => [`  # ${example.title}`, ...example.lines.map((line) => `  ${line}`)].join("\n"));
  return `\n${examples.length === 1 ? "Example" : "Examples"}:\n${blocks.join("\n\n")}\n`;
}

interface Run {
  readonly parts: ProcessParts;
  readonly output: Output;
  readonly signal: AbortSignal;
  exitCode: number;
  /** Whether the command ends in its own time once it is asked to, however often. */
  endsInOwnTime: boolean;
}

/** The program with all commands. */
async function buildProgram(run: Run, onText: (text: string) => void, onComplaint: (text: string) => void): Promise<Command> {
  const program = new Command("queuefs")
    .description("A durable work queue shaped like a file system: queues are directories, and completion is exact.")
    .version(version(), "--version", "print the version")
    .option(
      "--store <location>",
      `memory:, sqlite:FILE, redis://… or http://… (default: $${STORE_VARIABLE}, else a file in your data folder)`,
    )
    .option("--token <secret>", `token of an http:// store; others of this host see it, unlike $${TOKEN_VARIABLE}, the default`)
    .option("--json", "write JSON lines instead of text for people")
    .helpOption("-h, --help", "print help")
    .helpCommand("help [command]", "print help for a command")
    .showSuggestionAfterError(true)
    .exitOverride()
    .configureHelp({ helpWidth: run.output.isTerminal ? Math.min(run.output.columns, 110) : 100, showGlobalOptions: true })
    .configureOutput({ writeOut: onText, writeErr: onComplaint, outputError: (text, write) => write(text) })
    .addHelpText(
      "after",
      "\nExit codes: 0 done, 1 output not written, 2 wrong usage, 3 nothing to take, 4 not found, 5 stale receipt, 8 timed out, 22 and 23 the task that was waited for failed or was cancelled; all in docs/errors.md\n",
    );
  const options = (): GlobalOptions => program.opts<GlobalOptions>();
  for (const row of await loadCommands(run.parts.argv.slice(2))) {
    if ("commands" in row) addGroup(program, row, options, run);
    else addCommand(program, row, options, run);
  }
  return program;
}

function addGroup(program: Command, row: CommandGroup, options: () => GlobalOptions, run: Run): void {
  const group = describeCommand(program, row).helpCommand("help [command]", "print help for a command");
  for (const each of row.commands) addCommand(group, each, options, run);
}

/** A command with its help, which does nothing yet. */
function describeCommand(parent: Command, row: CommandRow | CommandGroup): Command {
  const command = parent.command(row.name).summary(row.summary);
  const sentence = `${row.summary.charAt(0).toUpperCase()}${row.summary.slice(1)}.`;
  command.description(row.description === undefined ? sentence : `${sentence} ${row.description}`);
  return command.addHelpText("after", exampleText(row.examples));
}

function addCommand(parent: Command, row: CommandRow, options: () => GlobalOptions, run: Run): void {
  row.define(describeCommand(parent, row), async (work) => {
    const session = new Session(run.parts, run.output, options(), run.signal, () => {
      run.endsInOwnTime = true;
    });
    let failed = false;
    try {
      run.exitCode = (await work(session)) ?? 0;
      await run.output.flush();
    } catch (error) {
      failed = true;
      throw error;
    } finally {
      // What broke the command says more than what may break in closing after it.
      await session.close().catch((error: unknown) => {
        if (!failed) throw error;
      });
    }
  });
}

/** Exit code when standard output cannot be written; what the command was to do has been done, or was taken back. */
const EXIT_CODE_OUTPUT_FAILED = 1;

/** What is told of an error, and the exit code it ends in. */
interface Ending {
  readonly exitCode: number;
  readonly code?: string;
  readonly message?: string;
}

function endingOf(error: unknown, complaint: string): Ending {
  if (error instanceof OutputClosedError) return { exitCode: 0 };
  if (error instanceof OutputFailedError) return { exitCode: EXIT_CODE_OUTPUT_FAILED, code: "output-failed", message: error.message };
  if (error instanceof InterruptedError) return { exitCode: error.exitCode };
  if (isQueueFSError(error)) return { exitCode: error.exitCode, code: error.code, message: error.message };
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return { exitCode: 0 };
    const words =
      error.code === "commander.help"
        ? `name a command; ${/^Usage: (queuefs(?: [a-z]+)*)/.exec(complaint)?.[1] ?? "queuefs"} --help lists them`
        : complaint.trim().replace(/^error: /, "") || error.message;
    return { exitCode: ERROR_TABLE["invalid-argument"].exitCode, code: "invalid-argument", message: words };
  }
  const words = error instanceof Error ? error.message : String(error);
  return { exitCode: ERROR_TABLE.internal.exitCode, code: "internal", message: `unexpected error: ${words}` };
}

/** Tells the end of a command that went wrong. */
function tell(parts: ProcessParts, ending: Ending, error: unknown): void {
  if (ending.message === undefined) return;
  // Options after "--" are not options; but an error should rather be JSON without need than text where JSON is read.
  if (parts.argv.includes("--json")) {
    parts.stderr.write(
      `${visibleJson(JSON.stringify({ error: { code: ending.code, message: ending.message, exitCode: ending.exitCode } }))}\n`,
    );
    return;
  }
  parts.stderr.write(`queuefs: ${visibleLines(ending.message)}\n`);
  if (ending.code === "internal" && error instanceof Error && error.stack) parts.stderr.write(`${visibleLines(error.stack)}\n`);
}

/**
 * Runs the command that the arguments of a process ask for.
 *
 * @param parts the process
 * @returns its exit code
 */
export async function run(parts: ProcessParts): Promise<number> {
  const output = new Output(parts.stdout);
  parts.stderr.on("error", () => {});
  const controller = new AbortController();
  const state: Run = { parts, output, signal: controller.signal, exitCode: 0, endsInOwnTime: false };
  const onSignal = (name: InterruptingSignal): void => {
    const reason = new InterruptedError(name);
    // A second signal means: now. But a terminal that is closed may say so twice.
    if (controller.signal.aborted && name !== "SIGHUP" && !state.endsInOwnTime) parts.exit(reason.exitCode);
    controller.abort(reason);
  };
  const signals = Object.keys(INTERRUPTING_SIGNALS) as InterruptingSignal[];
  for (const signal of signals) parts.on(signal, onSignal);
  // Timers and sockets of a store let a process end; a command must not end in the middle because nothing else holds it.
  const keepAlive = setInterval(() => {}, 2 ** 31 - 1);
  let text = "";
  let complaint = "";
  try {
    const program = await buildProgram(
      state,
      (part) => (text += part),
      (part) => (complaint += part),
    );
    await program.parseAsync(parts.argv);
  } catch (error) {
    const ending = endingOf(error, complaint);
    state.exitCode = ending.exitCode;
    if (text !== "")
      await output
        .text(text)
        .then(() => output.flush())
        .catch(() => {});
    if (!(error instanceof OutputClosedError)) await output.flush().catch(() => {});
    tell(parts, ending, error);
    // Opening a store, or a read of the terminal, may be in the air still and is waited for by nobody.
    if (error instanceof InterruptedError) parts.exit(state.exitCode);
  } finally {
    clearInterval(keepAlive);
    for (const signal of signals) parts.off(signal, onSignal);
  }
  return state.exitCode;
}
