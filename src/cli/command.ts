/** What every command of `queuefs` consists of. */

import type { Command } from "commander";
import type { Session } from "./session.ts";

/** An example of a command's help, which a test runs as it stands, in a shell, on a fresh store in an empty folder. */
export interface Example {
  /** What it shows. */
  readonly title: string;
  /** Lines of a POSIX shell. */
  readonly lines: readonly string[];
  /** Exit code of the whole; 0 if absent. Lines before the last must succeed. */
  readonly exitCode?: number;
  /** A file that must lie in the folder: `queue.db` of the reference layout. */
  readonly needs?: "reference-file";
}

/** Runs the work of a command in a session and keeps its exit code; no answer is 0. */
export type RunWork = (work: (session: Session) => Promise<number | undefined>) => Promise<void>;

/** One command. */
export interface CommandRow {
  readonly name: string;
  /** One line for the list of commands. */
  readonly summary: string;
  /** More for the command's own help. */
  readonly description?: string;
  readonly examples: readonly Example[];
  /** Adds arguments, options and the action to the command. */
  define(command: Command, run: RunWork): void;
}

/** Commands that have a first word in common, and do nothing without a second. */
export interface CommandGroup extends Omit<CommandRow, "define"> {
  readonly commands: readonly CommandRow[];
}
