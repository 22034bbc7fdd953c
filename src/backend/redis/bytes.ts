/** Reading and writing of the packed texts that go to the scripts and come from them: numbers big end first, as Lua's struct has them. */

import { assert } from "../../core/errors.ts";

const SMALLEST = 256;

/** Bytes that grow at their end. */
export class ByteWriter {
  #buffer: Buffer;
  length = 0;

  constructor(capacity = SMALLEST) {
    this.#buffer = Buffer.allocUnsafe(capacity);
  }

  #reserve(bytes: number): void {
    const needed = this.length + bytes;
    if (needed <= this.#buffer.length) return;
    const larger = Buffer.allocUnsafe(Math.max(needed, this.#buffer.length * 2));
    this.#buffer.copy(larger, 0, 0, this.length);
    this.#buffer = larger;
  }

  u8(value: number): void {
    this.#reserve(1);
    this.#buffer[this.length++] = value;
  }

  u16(value: number): void {
    this.#reserve(2);
    this.length = this.#buffer.writeUInt16BE(value, this.length);
  }

  u32(value: number): void {
    this.#reserve(4);
    this.length = this.#buffer.writeUInt32BE(value, this.length);
  }

  u48(value: number): void {
    this.#reserve(6);
    this.length = this.#buffer.writeUIntBE(value, this.length, 6);
  }

  bytes(value: Uint8Array): void {
    this.#reserve(value.length);
    this.#buffer.set(value, this.length);
    this.length += value.length;
  }

  /** Writes text as UTF-8 and answers with the number of its bytes. */
  text(value: string): number {
    // Three bytes per UTF-16 unit are enough for any text.
    this.#reserve(value.length * 3);
    const written = this.#buffer.write(value, this.length);
    this.length += written;
    return written;
  }

  /** Writes a text of at most 255 bytes after its length. */
  shortText(value: string): void {
    const lengthAt = this.length;
    this.u8(0);
    this.setU8(lengthAt, this.text(value));
  }

  setU8(at: number, value: number): void {
    this.#buffer[at] = value;
  }

  setU16(at: number, value: number): void {
    this.#buffer.writeUInt16BE(value, at);
  }

  setU32(at: number, value: number): void {
    this.#buffer.writeUInt32BE(value, at);
  }

  /** What was written from `start` to `end`; shares memory. */
  view(start = 0, end = this.length): Buffer {
    return this.#buffer.subarray(start, end);
  }
}

/** Reads packed bytes from their begin to their end. */
export class ByteReader {
  readonly #buffer: Buffer;
  #at: number;
  readonly #end: number;

  constructor(buffer: Buffer, start = 0, end = buffer.length) {
    this.#buffer = buffer;
    this.#at = start;
    this.#end = end;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#end;
  }

  /** Bytes not yet read. */
  get left(): number {
    return this.#end - this.#at;
  }

  #take(bytes: number): number {
    const at = this.#at;
    this.#at = at + bytes;
    assert(this.#at <= this.#end, "an answer of a script is shorter than it says");
    return at;
  }

  u8(): number {
    return this.#buffer[this.#take(1)] as number;
  }

  u16(): number {
    return this.#buffer.readUInt16BE(this.#take(2));
  }

  u32(): number {
    return this.#buffer.readUInt32BE(this.#take(4));
  }

  u48(): number {
    return this.#buffer.readUIntBE(this.#take(6), 6);
  }

  text(bytes: number): string {
    const at = this.#take(bytes);
    return this.#buffer.toString("utf8", at, at + bytes);
  }

  /** A copy of its own, a plain Uint8Array. */
  copy(bytes: number): Uint8Array {
    const at = this.#take(bytes);
    const copy = new Uint8Array(bytes);
    copy.set(this.#buffer.subarray(at, at + bytes));
    return copy;
  }

  /** The rest, as text. */
  rest(): string {
    return this.text(this.#end - this.#at);
  }

  /** A reader of the next bytes, which are skipped here. */
  part(bytes: number): ByteReader {
    const at = this.#take(bytes);
    return new ByteReader(this.#buffer, at, at + bytes);
  }
}

/** One argument of a command in the protocol of Redis. */
export function encodeArgument(value: string | Buffer): Buffer {
  const bytes = typeof value === "string" ? Buffer.from(value) : value;
  return Buffer.concat([Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from("\r\n")]);
}
