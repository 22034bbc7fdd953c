/**
 * The session of one open store: it numbers every script call that changes something, so that the server knows a repeat after a lost
 * reply and gives the first answer again (scripts/frame.lua). A session has a few lanes; each has one call in the air at a time.
 */

import type { Argument } from "./client.ts";
import { frameKeys, type Keys } from "./keys.ts";
import type { RedisSettings } from "./options.ts";
import type { Program } from "./programs.ts";
import { CallStart, type EncodedKeys, encodeKeys, IS_REPEAT, joinKeys, ScriptCall, type ScriptRunner } from "./script-call.ts";

/** How long the server keeps the answers of a session that has fallen silent, in milliseconds: far longer than a call is repeated. */
export const SESSION_KEPT_MS = 10 * 60 * 1000;
/** How often that time is started anew, in milliseconds. */
const RENEW_MS = 60_000;

/** One sequence of calls, one at a time. */
export interface Lane {
  readonly index: number;
  number: number;
}

/** Header, id of the store and channel: the values with which every call of a session begins. */
const FRAME_VALUES = 3;

/** A call of a general script. */
export interface General {
  readonly program: Program;
  readonly store: string;
  readonly keys: EncodedKeys;
  readonly values: readonly Argument[];
}

/** The reply to a call that was first made in the plain form. */
export interface PlainReply {
  readonly reply: Buffer;
  /** Whether the plain script answered, whose reply is the bare answer of its one operation. */
  readonly wasPlain: boolean;
  /** Entries that the plain script answered beside it. */
  readonly entries?: readonly Buffer[];
}

/** The session of one open store. */
export class Session {
  readonly #runner: ScriptRunner;
  readonly #settings: RedisSettings;
  readonly #sessionKey: EncodedKeys;
  readonly #ownKeys: EncodedKeys;
  readonly #key: string;
  readonly #channel: string;
  /** What the calls of a plain script on one queue begin with, by its keys: most of their bytes, made once. */
  readonly #plainStarts = new WeakMap<EncodedKeys, CallStart>();
  /** The last id of the store, with the channel behind it. */
  #told: { readonly store: string; readonly bytes: EncodedKeys } | undefined;
  #renewedMs = Number.NEGATIVE_INFINITY;
  #isUsed = false;

  constructor(runner: ScriptRunner, settings: RedisSettings, keys: Keys) {
    this.#runner = runner;
    this.#settings = settings;
    this.#key = keys.session + settings.random.token().toString(36) + settings.random.token().toString(36);
    this.#sessionKey = encodeKeys([this.#key]);
    this.#ownKeys = encodeKeys(frameKeys(this.#key, keys));
    this.#channel = keys.changes;
  }

  /** Makes a lane. Index 0 to 255. */
  newLane(index: number): Lane {
    return { index, number: 0 };
  }

  /** Runs a script that begins with the frame, as the next call of a lane that has none in the air. */
  async run(lane: Lane, program: Program, store: string, keys: EncodedKeys, values: readonly Argument[]): Promise<Buffer> {
    lane.number += 1;
    return this.#runGeneral(lane, { program, store, keys, values }, false);
  }

  /**
   * Runs one of the plain scripts as the next call of a lane. An empty answer means that nothing happened: then `otherwise` is run, as
   * the same call of the session.
   *
   * @param keys the very same object for all calls of this script on this queue
   */
  async runPlain(
    lane: Lane,
    plain: Program,
    store: string,
    keys: EncodedKeys,
    body: Buffer,
    otherwise: () => General,
  ): Promise<PlainReply> {
    lane.number += 1;
    let start = this.#plainStarts.get(keys);
    if (start === undefined) {
      start = new CallStart(plain, joinKeys([this.#sessionKey, keys]), FRAME_VALUES + 1);
      this.#plainStarts.set(keys, start);
    }
    const { call, answered } = this.#send(lane, start, store, [body], false);
    const reply: Buffer | Buffer[] = await answered;
    if (Array.isArray(reply)) return { reply: reply.pop() as Buffer, wasPlain: true, entries: reply };
    if (reply.length > 0) return { reply, wasPlain: true };
    return { reply: await this.#runGeneral(lane, otherwise(), call.isRepeat), wasPlain: false };
  }

  #runGeneral(lane: Lane, { program, store, keys, values }: General, isRepeat: boolean): Promise<Buffer> {
    const start = new CallStart(program, joinKeys([this.#ownKeys, keys]), FRAME_VALUES + values.length);
    return this.#send(lane, start, store, values, isRepeat).answered as Promise<Buffer>;
  }

  #send(
    lane: Lane,
    start: CallStart,
    store: string,
    values: readonly Argument[],
    isRepeat: boolean,
  ): { readonly call: ScriptCall; readonly answered: Promise<Buffer | Buffer[]> } {
    const { connection, makeRaw } = this.#runner;
    const now = connection.instant();
    const renew = now.monotonicMs - this.#renewedMs >= RENEW_MS;
    const header = Buffer.allocUnsafe(18);
    header[0] = lane.index;
    header.writeUIntBE(lane.number, 1, 6);
    header.writeUIntBE(this.#settings.rememberMs, 7, 6);
    header.writeUInt32BE(SESSION_KEPT_MS, 13);
    header[17] = (renew ? 1 : 0) | (isRepeat ? IS_REPEAT : 0);
    this.#isUsed = true;
    if (this.#told?.store !== store) this.#told = { store, bytes: encodeKeys([store, this.#channel]) };
    const call = new ScriptCall(start, true, [header, this.#told.bytes, ...values], makeRaw);
    // All scripts with the frame answer with bytes, a plain one also with a list of them; their readers assert that there are as many as they say.
    const answered = connection.run(call, now) as Promise<Buffer | Buffer[]>;
    return { call, answered: renew ? this.#renewed(answered, now.monotonicMs) : answered };
  }

  // Where it fails the next call renews.
  async #renewed<Reply>(answered: Promise<Reply>, nowMs: number): Promise<Reply> {
    const reply = await answered;
    this.#renewedMs = nowMs;
    return reply;
  }

  /** Forgets the answers kept on the server. Best effort: they vanish by themselves. */
  async end(): Promise<void> {
    if (this.#isUsed) await this.#runner.command("unlink", this.#key);
  }
}
