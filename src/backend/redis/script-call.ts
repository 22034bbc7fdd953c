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

/** Keys in the protocol of Redis. */
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

/** A command of the server in its protocol, made in one piece of memory. */
export function encodeScriptCall(program: Program, whole: boolean, keys: EncodedKeys, values: readonly Argument[]): Buffer {
  const script = whole ? program.text : program.sha;
  const keyCount = String(keys.count);
  // The script is ASCII: its bytes are as many as its characters.
  let head = `*${3 + keys.count + values.length}\r\n${whole ? "$4\r\nEVAL" : "$7\r\nEVALSHA"}\r\n$${script.length}\r\n${script}\r\n$${keyCount.length}\r\n${keyCount}\r\n`;
  let size = head.length + keys.bytes.length;
  for (const value of values) size += (typeof value === "string" ? Buffer.byteLength(value) : value.length) + 16;
  const buffer = Buffer.allocUnsafe(size);
  let at = buffer.write(head, 0, "latin1");
  at += keys.bytes.copy(buffer, at);
  for (const value of values) {
    head = `$${typeof value === "string" ? Buffer.byteLength(value) : value.length}\r\n`;
    at += buffer.write(head, at, "latin1");
    if (typeof value === "string") at += buffer.write(value, at);
    else at += value.copy(buffer, at);
    at = buffer.writeUInt16LE(LINE_END, at);
  }
  return buffer.subarray(0, at);
}

/** In the last byte of a header (scripts/frame.lua): its call was sent before, and that copy may still be under way. */
export const IS_REPEAT = 2;

/** One call of a script. */
export class ScriptCall implements Call {
  readonly changes: boolean;
  readonly #program: Program;
  readonly #keys: EncodedKeys;
  readonly #values: readonly Argument[];
  readonly #makeRaw: MakeRawCommand;
  #isRepeat = false;

  constructor(program: Program, changes: boolean, keys: EncodedKeys, values: readonly Argument[], makeRaw: MakeRawCommand) {
    this.changes = changes;
    this.#program = program;
    this.#keys = keys;
    this.#values = values;
    this.#makeRaw = makeRaw;
  }

  /** Whether it was sent again while an earlier copy may still have been under way. */
  get isRepeat(): boolean {
    return this.#isRepeat;
  }

  send(client: OwnClient, whole: boolean, isRepeat: boolean): Promise<unknown> {
    const [header] = this.#values;
    if (isRepeat && typeof header === "object") {
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
    if (client.isCluster) {
      const script = whole ? this.#program.text : this.#program.sha;
      return client.callBuffer(whole ? "eval" : "evalsha", script, String(this.#keys.count), ...decodeKeys(this.#keys), ...this.#values);
    }
    const command = this.#makeRaw(whole ? "eval" : "evalsha", encodeScriptCall(this.#program, whole, this.#keys, this.#values));
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
    return this.connection.run(new ScriptCall(program, false, keys, values, this.makeRaw));
  }

  /** Runs a plain command that changes nothing, or whose repeat does no harm. */
  command(name: string, ...values: Argument[]): Promise<unknown> {
    return this.connection.run({ changes: false, send: (client) => client.callBuffer(name, ...values) });
  }
}
