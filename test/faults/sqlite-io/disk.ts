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
  durable: Content;
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

/** Bytes of a file, with room to grow. */
class Content {
  #bytes: Buffer;
  #length: number;

  constructor(bytes: Buffer, length: number, room: number) {
    this.#bytes = Buffer.alloc(length + room);
    bytes.copy(this.#bytes, 0, 0, length);
    this.#length = length;
  }

  copy(room: number): Content {
    return new Content(this.#bytes, this.#length, room);
  }

  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  #resize(length: number): void {
    if (length > this.#bytes.length) this.#bytes = Buffer.concat([this.#bytes, Buffer.alloc(length)]);
    // What is given up and comes back reads as zeros.
    if (length < this.#length) this.#bytes.fill(0, length, this.#length);
    this.#length = length;
  }

  /** Does one call; of a write, those sectors that `isKept`. */
  apply(call: RecordedCall, isKept: () => boolean): void {
    if (call.kind === "truncate") {
      this.#resize(call.offset);
      return;
    }
    this.#resize(Math.max(this.#length, call.offset + call.data.length));
    for (let at = 0; at < call.data.length; ) {
      const next = Math.min(call.data.length, at + SECTOR_BYTES - ((call.offset + at) % SECTOR_BYTES));
      if (isKept()) call.data.copy(this.#bytes, call.offset + at, at, next);
      at = next;
    }
  }
}

/** Room that a copy is given for what is applied to it, in bytes; it grows by itself beyond. */
const ROOM_BYTES = 256 * 1024;

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
    this.#files.set(inode, { durable: new Content(Buffer.alloc(0), 0, ROOM_BYTES), pending: [] });
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
    for (const call of file.pending.splice(0)) file.durable.apply(call, () => true);
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
      const content = durable.copy(ROOM_BYTES);
      const kept = fate === "nothing" ? 0 : fate === "a prefix" ? below(pending.length + 1) : pending.length;
      for (const call of pending.slice(0, kept)) {
        if (fate === "some calls" && below(2) === 0) continue;
        if (fate === "some sectors" && call.kind === "truncate" && below(2) === 0) continue;
        content.apply(call, () => fate !== "some sectors" || below(4) > 0);
      }
      const torn = pending[kept];
      if (fate === "a prefix" && torn !== undefined) content.apply(torn, () => below(2) > 0);
      writeFileSync(join(folder, name), content.bytes);
      words.push(`${name} ${fate} of ${pending.length}`);
    }
    return words.join(", ") || "no file";
  }
}

function settle(entries: Map<string, number>, { name, inode }: EntryChange): void {
  if (inode === undefined) entries.delete(name);
  else entries.set(name, inode);
}
