/** Reading standard input and files, bounded by what one message may have. */

import { QueueFSError, quote } from "../core/errors.ts";
import type { Session } from "./session.ts";

const LINE_END = 10;

function tooLarge(what: string, maxBytes: number): QueueFSError {
  return new QueueFSError(
    "message-too-large",
    `${what} has more than ${maxBytes} bytes, which is the limit of one message; store the content elsewhere and enqueue a reference`,
  );
}

/** Pieces of standard input as they come, until its end or until the command is to end. */
export async function* inputPieces(session: Session): AsyncGenerator<Uint8Array, void, void> {
  const { input, signal } = session;
  const stop = (): void => {
    input.destroy();
  };
  signal.addEventListener("abort", stop, { once: true });
  try {
    signal.throwIfAborted();
    if (input.isTTY) session.note("reading from the terminal; end with Ctrl-D on a line of its own");
    for await (const piece of input) yield piece as Uint8Array;
    signal.throwIfAborted();
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/** All of standard input, byte for byte. @throws QueueFSError `message-too-large` without having read more than the limit */
export async function readInput(session: Session, maxBytes: number): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of inputPieces(session)) {
    bytes += piece.byteLength;
    if (bytes > maxBytes) throw tooLarge("standard input", maxBytes);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

/**
 * The lines of pieces, without their line feeds and otherwise byte for byte; a carriage return before the line feed stays. What follows
 * the last line feed is a line if it is not empty. After each piece comes `undefined`: more is not at hand yet.
 *
 * @throws QueueFSError `message-too-large` for a line over the limit
 */
export async function* splitLines(pieces: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<Uint8Array | undefined, void, void> {
  let parts: Uint8Array[] = [];
  let bytes = 0;
  let number = 1;
  const keep = (part: Uint8Array): void => {
    bytes += part.byteLength;
    if (bytes > maxBytes) throw tooLarge(`line ${number}`, maxBytes);
    if (part.byteLength > 0) parts.push(part);
  };
  const take = (): Uint8Array => {
    const line = parts.length === 1 ? (parts[0] as Uint8Array) : Buffer.concat(parts);
    parts = [];
    bytes = 0;
    number += 1;
    return line;
  };
  for await (const piece of pieces) {
    let start = 0;
    for (let end = piece.indexOf(LINE_END); end >= 0; end = piece.indexOf(LINE_END, start)) {
      keep(piece.subarray(start, end));
      yield take();
      start = end + 1;
    }
    keep(piece.subarray(start));
    yield undefined;
  }
  if (bytes > 0) yield take();
}

/** The bytes of a file. @throws QueueFSError `path-not-found`, `is-a-directory`, `message-too-large`, `invalid-argument` */
export async function readMessageFile(path: string, maxBytes: number): Promise<Uint8Array> {
  const { open } = await import("node:fs/promises");
  try {
    const handle = await open(path, "r");
    try {
      const stats = await handle.stat();
      if (stats.isDirectory()) throw new QueueFSError("is-a-directory", `${quote(path)} is a directory; name files`);
      if (stats.size > maxBytes) throw tooLarge(`file ${quote(path)}`, maxBytes);
      const data = await handle.readFile();
      if (data.byteLength > maxBytes) throw tooLarge(`file ${quote(path)}`, maxBytes);
      return data;
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (error instanceof QueueFSError) throw error;
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "ENOENT") throw new QueueFSError("path-not-found", `there is no file ${quote(path)}`, { cause: error });
    throw new QueueFSError("invalid-argument", `file ${quote(path)} cannot be read (${code ?? String(error)})`, { cause: error });
  }
}
