/** Where the messages of a command come from: its arguments, files, lines of standard input, or all of that as one message. */

import type { Command } from "commander";
import { durationOption, usageError } from "./arguments.ts";
import { inputPieces, readInput, readMessageFile, splitLines } from "./input.ts";
import type { Session } from "./session.ts";

/** Options that say what the messages are. */
export interface SourceOptions {
  readonly lines?: boolean;
  readonly file?: readonly string[];
  /** Before which time none of them is to be delivered, in milliseconds from now. */
  readonly delay?: number;
}

/** Adds the argument and the options of {@link SourceOptions} to a command. */
export function takeMessages(command: Command): Command {
  return command
    .argument("[message...]", "messages; standard input if there are none")
    .option("--lines", "one message for each line of standard input")
    .option("--file <file...>", "one message for each file")
    .option("--delay <duration>", "not to be delivered before, such as 30s or 2h", durationOption);
}

/** Refuses more than one source. @throws QueueFSError `invalid-argument` */
export function checkSources(texts: readonly string[], options: SourceOptions): void {
  const sources = [texts.length > 0, options.lines === true, options.file !== undefined].filter(Boolean).length;
  if (sources > 1) throw usageError("give messages as arguments, with --file or with --lines: one of the three");
}

/** Whether there may be more than one message. */
export function mayBeMany(texts: readonly string[], options: SourceOptions): boolean {
  return texts.length > 1 || options.lines === true || (options.file?.length ?? 0) > 1;
}

/**
 * The bytes of the messages, as they come; `undefined` where more is not at hand yet.
 *
 * @throws QueueFSError `message-too-large`, `path-not-found`, `is-a-directory`, `invalid-argument`
 * @throws the reason of the session's signal
 */
export async function* readMessages(
  session: Session,
  maxMessageBytes: number,
  texts: readonly string[],
  options: SourceOptions,
): AsyncGenerator<Uint8Array | undefined, void, void> {
  if (options.lines === true) {
    yield* splitLines(inputPieces(session), maxMessageBytes);
  } else if (options.file !== undefined) {
    for (const path of options.file) {
      session.signal.throwIfAborted();
      yield await readMessageFile(path, maxMessageBytes);
    }
  } else if (texts.length > 0) {
    for (const text of texts) yield new TextEncoder().encode(text);
  } else {
    yield await readInput(session, maxMessageBytes);
  }
}
