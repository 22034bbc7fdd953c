/** Calls of scripts, in the form in which they are sent. */

import { encodeArgument } from "./bytes.ts";
import type { Argument, MakeRawCommand, OwnClient } from "./client.ts";
import type { Call, Connection } from "./connection.ts";
import type { Program } from "./programs.ts";

/** The keys of a call, in the protocol of Redis. */
export interface EncodedKeys {
  readonly count: number;
  readonly bytes: Buffer;
}

/** A value of a call, or several that are the same in many calls. */
export type Value = Argument | EncodedKeys;

/** Keys, or other texts, in the protocol of Redis. */
export function encodeKeys(keys: readonly string[]): EncodedKeys {
  return { count: keys.length, bytes: Buffer.concat(keys.map(encodeArgument)) };
}

/** Several groups of keys, one after the other. */
export function joinKeys(groups: readonly EncodedKeys[]): EncodedKeys {
  let count = 0;
  for (const group of groups) count += group.count;
  return { count, bytes: Buffer.concat(groups.map((group) => group.bytes)) };
}

function decodeKeys({ bytes }: EncodedKeys): string[] {
  const keys: string[] = [];
  for (let at = 0; at < bytes.length; ) {
    const line = bytes.indexOf("\r\n", at);
    const length = Number(bytes.toString("latin1", at + 1, line));
    keys.push(bytes.toString("utf8", line + 2, line + 2 + length));
    at = line + 2 + length + 2;
  }
  return keys;
}

const LINE_END = 0x0a0d;
/** Length and line ends around a value, at most. */
const ROOM_AROUND_BYTES = 16;

/** What stands before the values of a call, which is the same in all calls of a script on the same keys. */
export class CallStart {
  readonly program: Program;
  readonly keys: EncodedKeys;
  readonly #values: number;
  #bytes: Buffer | undefined;

  /** @param values how many values follow */
  constructor(program: Program, keys: EncodedKeys, values: number) {
    this.program = program;
    this.keys = keys;
    this.#values = values;
  }

  /** Its bytes in the protocol of the server. @param whole with the whole script, not only its name */
  encode(whole: boolean): Buffer {
    if (whole) return this.#encode("EVAL", this.program.text);
    this.#bytes ??= this.#encode("EVALSHA", this.program.sha);
    return this.#bytes;
  }

  #encode(command: string, script: string): Buffer {
    const { count, bytes } = this.keys;
    const lines = [
      `*${3 + count + this.#values}`,
      `$${command.length}`,
      command,
      `$${script.length}`,
      script,
      `$${String(count).length}`,
      count,
    ];
    // The script is ASCII: its bytes are as many as its characters.
    return Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n`, "latin1"), bytes]);
  }
}

/** A command of the server in its protocol, made in one piece of memory. */
export function encodeScriptCall(start: Buffer, values: readonly Value[]): Buffer {
  let size = start.length;
  for (const value of values) size += sizeOf(value);
  const buffer = Buffer.allocUnsafe(size);
  let at = start.copy(buffer);
  for (const value of values) {
    if (typeof value === "object" && "count" in value) {
      at += value.bytes.copy(buffer, at);
      continue;
    }
    at += buffer.write(`$${lengthOf(value)}\r\n`, at, "latin1");
    at += typeof value === "string" ? buffer.write(value, at) : value.copy(buffer, at);
    at = buffer.writeUInt16LE(LINE_END, at);
  }
  return at === size ? buffer : buffer.subarray(0, at);
}

function lengthOf(value: Argument): number {
  return typeof value === "string" ? Buffer.byteLength(value) : value.length;
}

/** Bytes that a value takes at most. */
function sizeOf(value: Value): number {
  return typeof value === "object" && "count" in value ? value.bytes.length : lengthOf(value) + ROOM_AROUND_BYTES;
}

/** In the last byte of a header (scripts/frame.lua): its call was sent before, and that copy may still be under way. */
export const IS_REPEAT = 2;

/** One call of a script. */
export class ScriptCall implements Call {
  readonly changes: boolean;
  readonly #start: CallStart;
  readonly #values: readonly Value[];
  readonly #makeRaw: MakeRawCommand;
  #isRepeat = false;

  constructor(start: CallStart, changes: boolean, values: readonly Value[], makeRaw: MakeRawCommand) {
    this.changes = changes;
    this.#start = start;
    this.#values = values;
    this.#makeRaw = makeRaw;
  }

  /** Whether it was sent again while an earlier copy may still have been under way. */
  get isRepeat(): boolean {
    return this.#isRepeat;
  }

  send(client: OwnClient, whole: boolean, isRepeat: boolean): Promise<unknown> {
    const [header] = this.#values;
    if (isRepeat && Buffer.isBuffer(header)) {
      this.#isRepeat = true;
      header[header.length - 1] = (header.at(-1) ?? 0) | IS_REPEAT;
    }
    try {
      return this.#send(client, whole);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #send(client: OwnClient, whole: boolean): Promise<unknown> {
    const { program, keys } = this.#start;
    if (client.isCluster) {
      const script = whole ? program.text : program.sha;
      const values = this.#values.flatMap((value) => (typeof value === "object" && "count" in value ? decodeKeys(value) : [value]));
      return client.callBuffer(whole ? "eval" : "evalsha", script, String(keys.count), ...decodeKeys(keys), ...values);
    }
    const command = this.#makeRaw(whole ? "eval" : "evalsha", encodeScriptCall(this.#start.encode(whole), this.#values));
    // The client rejects the promise of the command itself where it cannot send it.
    client.sendCommand(command);
    return command.promise;
  }
}

/** Runs scripts that change nothing, or that are safe to repeat. */
export class ScriptRunner {
  readonly connection: Connection;
  readonly makeRaw: MakeRawCommand;

  constructor(connection: Connection, makeRaw: MakeRawCommand) {
    this.connection = connection;
    this.makeRaw = makeRaw;
  }

  /** Runs a script that changes nothing. */
  read(program: Program, keys: EncodedKeys, values: readonly Argument[] = []): Promise<unknown> {
    return this.connection.run(new ScriptCall(new CallStart(program, keys, values.length), false, values, this.makeRaw));
  }

  /** Runs a plain command that changes nothing, or whose repeat does no harm. */
  command(name: string, ...values: Argument[]): Promise<unknown> {
    return this.connection.run({ changes: false, send: (client) => client.callBuffer(name, ...values) });
  }
}
