/** Searching files for a pattern, one after the other and message by message, without taking any. */

import { isQueueFSError } from "../../core/errors.ts";
import { nextTurn } from "../../core/turn.ts";
import type { FileStat, QueueFS } from "../../fs/index.ts";
import { readParts } from "./content.ts";
import { under } from "./mount.ts";
import { type RecordKind, records, type TextRecord } from "./records.ts";

/** A line, or a message of a listing, in which the pattern was found. */
export interface Match {
  /** The path as the client sees it. */
  readonly file: string;
  /** Which line; in `messages`, which message. */
  readonly line: number;
  readonly content: string;
}

/** Says where in a text something is found first; -1 when it is not. */
export type Finder = (text: string) => number;

/** Characters of a match that are shown, about what was found: a message may have millions. */
const SHOWN_CHARACTERS = 4_096;
/** Characters of them before what was found. */
const LEAD_CHARACTERS = 256;
/** Characters that are searched without a turn of the event loop. */
const TURN_CHARACTERS = 64 * 1024;
/** What a file of a queue may have to be searched with all others: any right to be read. */
const READABLE = 0o444;

/** Files that are left out where all in a directory are searched: a read of one would take a message, and the other is in `messages` too. */
const LEFT_OUT: ReadonlySet<string> = new Set(["dequeue", "peek"]);

/** Where the file face lies in the client's tree. */
export interface Searched {
  readonly files: QueueFS;
  /** The path of the file face's root as the client sees it. */
  readonly root: string;
  readonly signal: AbortSignal;
}

/** Searches one file. @param shown its path as the client sees it */
export async function* searchFile(searched: Searched, inner: string, shown: string, find: Finder): AsyncGenerator<Match> {
  const parts = readParts(searched.files, inner, { offset: 0 }, searched.signal);
  const kind: RecordKind = inner.endsWith("/messages") || inner.endsWith("/.dead") ? "messages" : "lines";
  yield* searchRecords(records(parts, kind), shown, find, searched.signal);
}

/** Searches what is there already. */
export async function* searchBytes(bytes: Uint8Array, shown: string, find: Finder, signal: AbortSignal): AsyncGenerator<Match> {
  yield* searchRecords(records(once(bytes), "lines"), shown, find, signal);
}

/** Searches all readable files in and under a directory. What is removed meanwhile is passed over. */
export async function* searchDirectory(searched: Searched, inner: string, find: Finder): AsyncGenerator<Match> {
  const entries = await unlessGone(searched.files.readdir(inner));
  for (const entry of entries ?? []) {
    searched.signal.throwIfAborted();
    const path = under(inner, entry.name);
    if (entry.kind === "directory") yield* searchDirectory(searched, path, find);
    else if (isSearched(entry)) yield* passOver(searchFile(searched, path, shownAt(searched.root, path), find));
  }
}

/** The path of something in the file face as the client sees it. */
export function shownAt(root: string, inner: string): string {
  return root === "/" ? inner : `${root}${inner}`;
}

function isSearched({ name, mode }: FileStat): boolean {
  return (mode & READABLE) !== 0 && !LEFT_OUT.has(name);
}

async function* searchRecords(texts: AsyncIterable<TextRecord>, file: string, find: Finder, signal: AbortSignal): AsyncGenerator<Match> {
  let found = 0;
  let searched = 0;
  for await (const { number, text } of texts) {
    searched += text.length + 1;
    if (searched > TURN_CHARACTERS) {
      searched = 0;
      await nextTurn();
      signal.throwIfAborted();
    }
    // One match a record; a later piece of it has none to add.
    if (number === found) continue;
    const start = find(text);
    if (start < 0) continue;
    found = number;
    yield { file, line: number, content: excerpt(text, start) };
  }
}

function excerpt(text: string, start: number): string {
  if (text.length <= SHOWN_CHARACTERS) return text;
  const from = Math.max(0, Math.min(start - LEAD_CHARACTERS, text.length - SHOWN_CHARACTERS));
  return text.slice(from, from + SHOWN_CHARACTERS);
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

async function* passOver(matches: AsyncGenerator<Match>): AsyncGenerator<Match> {
  try {
    yield* matches;
  } catch (error) {
    if (!isQueueFSError(error, "queue-not-found")) throw error;
  }
}

async function unlessGone<Result>(answer: Promise<Result>): Promise<Result | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (isQueueFSError(error, "queue-not-found")) return undefined;
    throw error;
  }
}
