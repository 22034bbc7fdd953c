/**
 * The session of one open store: it numbers every script call that changes something, so that the server knows a repeat after a lost
 * reply and gives the first answer again (scripts/frame.lua). A session has a few lanes; each has one call in the air at a time.
 */

import type { Argument } from "./client.ts";
import { frameKeys, type Keys } from "./keys.ts";
import type { RedisSettings } from "./options.ts";
import type { Program } from "./programs.ts";
import { type EncodedKeys, encodeKeys, IS_REPEAT, joinKeys, ScriptCall, type ScriptRunner } from "./script-call.ts";

/** How long the server keeps the answers of a session that has fallen silent, in milliseconds: far longer than a call is repeated. */
export const SESSION_KEPT_MS = 10 * 60 * 1000;
/** How often that time is started anew, in milliseconds. */
const RENEW_MS = 60_000;

/** One sequence of calls, one at a time. */
export interface Lane {
  readonly index: number;
  number: number;
}

/** A call of a general script. */
export type General = () => {
  readonly program: Program;
  readonly store: string;
  readonly keys: EncodedKeys;
  readonly values: readonly Argument[];
};

/** The reply to a call that was first made in the plain form. */
export interface PlainReply {
  readonly reply: Buffer;
  /** Whether the plain script answered, whose reply is the bare answer of its one operation. */
  readonly wasPlain: boolean;
}

/** The session of one open store. */
export class Session {
  readonly #runner: ScriptRunner;
  readonly #settings: RedisSettings;
  readonly #sessionKey: EncodedKeys;
  readonly #ownKeys: EncodedKeys;
  readonly #key: string;
  readonly #channel: string;
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
    return (await this.#send(lane, program, store, joinKeys([this.#ownKeys, keys]), values)).reply;
  }

  /**
   * Runs one of the plain scripts as the next call of a lane. An empty answer means that nothing happened: then `otherwise` is run, as
   * the same call of the session.
   */
  async runPlain(
    lane: Lane,
    plain: Program,
    life: { store: string },
    keys: EncodedKeys,
    body: Buffer,
    otherwise: General,
  ): Promise<PlainReply> {
    lane.number += 1;
    const { reply, wasRepeated } = await this.#send(lane, plain, life.store, joinKeys([this.#sessionKey, keys]), [body]);
    if (reply.length > 0) return { reply, wasPlain: true };
    const { program, store, keys: generalKeys, values } = otherwise();
    const general = await this.#send(lane, program, store, joinKeys([this.#ownKeys, generalKeys]), values, wasRepeated);
    return { reply: general.reply, wasPlain: false };
  }

  async #send(
    lane: Lane,
    program: Program,
    store: string,
    keys: EncodedKeys,
    values: readonly Argument[],
    isRepeat = false,
  ): Promise<{ readonly reply: Buffer; readonly wasRepeated: boolean }> {
    const header = Buffer.allocUnsafe(18);
    header[0] = lane.index;
    header.writeUIntBE(lane.number, 1, 6);
    header.writeUIntBE(this.#settings.rememberMs, 7, 6);
    header.writeUInt32BE(SESSION_KEPT_MS, 13);
    const now = this.#settings.clock.monotonicMs();
    const renew = now - this.#renewedMs >= RENEW_MS;
    header[17] = (renew ? 1 : 0) | (isRepeat ? IS_REPEAT : 0);
    this.#isUsed = true;
    const call = new ScriptCall(program, true, keys, [header, store, this.#channel, ...values], this.#runner.makeRaw);
    const reply = await this.#runner.connection.run(call);
    // Where it fails the next call renews.
    if (renew) this.#renewedMs = now;
    // All scripts with the frame answer with bytes; their readers assert that there are as many as they say.
    return { reply: reply as Buffer, wasRepeated: call.isRepeat };
  }

  /** Forgets the answers kept on the server. Best effort: they vanish by themselves. */
  async end(): Promise<void> {
    if (this.#isUsed) await this.#runner.command("unlink", this.#key);
  }
}
