/** A disk that loses power: from the record of what was written and synced, the files as it could have them afterwards. */

import { readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import type { Random } from "../../../src/core/clock.ts";
import { CALL_KINDS, type CallKind } from "./file-calls.ts";

/** Kind number of what the programs themselves append to the record. */
export const MARK = 100;
const HEAD_BYTES = 32;
const SECTOR_BYTES = 512;

/** One entry of the record. `offset` of a truncate is the new length, of an open whether it is a folder. */
export interface RecordedCall {
  readonly kind: CallKind | "mark";
  readonly inode: number;
  readonly offset: number;
  readonly data: Buffer;
}

/** Reads a record. */
export function readRecord(path: string): RecordedCall[] {
  const bytes = readFileSync(path);
  const calls: RecordedCall[] = [];
  for (let at = 0; at < bytes.length; ) {
    const [kind, inode, offset, length] = [0, 8, 16, 24].map((field) => Number(bytes.readBigInt64LE(at + field))) as [
      number,
      number,
      number,
      number,
    ];
    const data = bytes.subarray(at + HEAD_BYTES, at + HEAD_BYTES + length);
    calls.push({ kind: kind === MARK ? "mark" : (CALL_KINDS[kind] as CallKind), inode, offset, data });
    at += HEAD_BYTES + length;
  }
  return calls;
}

/** An entry for the record. */
export function encodeMark(value: unknown): Buffer {
  const data = Buffer.from(JSON.stringify(value));
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeBigInt64LE(BigInt(MARK));
  head.writeBigInt64LE(BigInt(data.length), 24);
  return Buffer.concat([head, data]);
}

interface StoredFile {
  durable: Buffer;
  /** Since the last sync of the file. */
  pending: RecordedCall[];
}

interface EntryChange {
  readonly name: string;
  /** `undefined`: removed. */
  readonly inode: number | undefined;
}

/** How much of what was not synced reaches the disk. */
const FATES = ["nothing", "everything", "a prefix", "some calls", "some sectors"] as const;

/** A copy of `content` with one call done to it; of a write, those sectors that `isKept`. */
function applied(content: Buffer, call: RecordedCall, isKept: () => boolean): Buffer {
  if (call.kind === "truncate") {
    if (call.offset <= content.length) return Buffer.from(content.subarray(0, call.offset));
    return Buffer.concat([content, Buffer.alloc(call.offset - content.length)]);
  }
  const end = call.offset + call.data.length;
  const result = end > content.length ? Buffer.concat([content, Buffer.alloc(end - content.length)]) : content;
  for (let at = 0; at < call.data.length; ) {
    const next = Math.min(call.data.length, at + SECTOR_BYTES - ((call.offset + at) % SECTOR_BYTES));
    if (isKept()) call.data.copy(result, call.offset + at, at, next);
    at = next;
  }
  return result;
}

/** Replays a record up to any point, and has the power fail there. */
export class Disk {
  readonly #files = new Map<number, StoredFile>();
  readonly #folders = new Set<number>();
  /** What the folder certainly has, what it has for running programs, and the changes between. */
  readonly #durableEntries = new Map<string, number>();
  readonly #entries = new Map<string, number>();
  #pendingEntries: EntryChange[] = [];

  /** Does one recorded call. */
  perform(call: RecordedCall): void {
    if (call.kind === "open") this.#opened(call);
    else if (call.kind === "unlink") this.#change({ name: basename(call.data.toString()), inode: undefined });
    else if (call.kind === "write" || call.kind === "truncate") this.#files.get(call.inode)?.pending.push(call);
    else if (call.kind === "sync") this.#synced(call.inode);
  }

  #opened({ inode, offset, data }: RecordedCall): void {
    if (offset === 1) {
      this.#folders.add(inode);
      return;
    }
    const name = basename(data.toString());
    // Shared memory is written without any call, and means nothing to the next boot.
    if (name.endsWith("-shm") || this.#entries.get(name) === inode) return;
    this.#files.set(inode, { durable: Buffer.alloc(0), pending: [] });
    this.#change({ name, inode });
  }

  #change(change: EntryChange): void {
    if (change.inode === undefined) this.#entries.delete(change.name);
    else this.#entries.set(change.name, change.inode);
    this.#pendingEntries.push(change);
  }

  #synced(inode: number): void {
    if (this.#folders.has(inode)) {
      for (const change of this.#pendingEntries.splice(0)) settle(this.#durableEntries, change);
      return;
    }
    const file = this.#files.get(inode);
    if (file === undefined) return;
    for (const call of file.pending.splice(0)) file.durable = applied(file.durable, call, () => true);
  }

  /** Writes the files into `folder` as the disk could have them if the power failed now. @returns what became of each, in words */
  losePower(folder: string, random: Random): string {
    const below = (bound: number): number => Math.floor(random.fraction() * bound);
    const entries = new Map(this.#durableEntries);
    for (const change of this.#pendingEntries.slice(0, below(this.#pendingEntries.length + 1))) settle(entries, change);
    const words: string[] = [];
    for (const [name, inode] of entries) {
      const { durable, pending } = this.#files.get(inode) as StoredFile;
      const fate = FATES[below(FATES.length)] as (typeof FATES)[number];
      let content: Buffer = Buffer.from(durable);
      const kept = fate === "nothing" ? 0 : fate === "a prefix" ? below(pending.length + 1) : pending.length;
      for (const call of pending.slice(0, kept)) {
        if (fate === "some calls" && below(2) === 0) continue;
        if (fate === "some sectors" && call.kind === "truncate" && below(2) === 0) continue;
        content = applied(content, call, () => fate !== "some sectors" || below(4) > 0);
      }
      const torn = pending[kept];
      if (fate === "a prefix" && torn !== undefined) content = applied(content, torn, () => below(2) > 0);
      writeFileSync(join(folder, name), content);
      words.push(`${name} ${fate} of ${pending.length}`);
    }
    return words.join(", ") || "no file";
  }
}

function settle(entries: Map<string, number>, { name, inode }: EntryChange): void {
  if (inode === undefined) entries.delete(name);
  else entries.set(name, inode);
}
