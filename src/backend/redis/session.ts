/**
 * The session of one open store: it numbers every script call that changes something, so that the server knows a repeat after a lost
 * reply and gives the first answer again (scripts/frame.lua). A session has a few lanes; each has one call in the air at a time.
 */

import { assert } from "../../core/errors.ts";
import { encodeArgument } from "./bytes.ts";
import type { Argument } from "./client.ts";
import type { Keys } from "./keys.ts";
import type { RedisSettings } from "./options.ts";
import type { Program } from "./programs.ts";
import { type EncodedKeys, joinKeys, ScriptCall, type ScriptRunner } from "./script-call.ts";

/** How long the server keeps the answers of a session that has fallen silent, in milliseconds: far longer than a call is repeated. */
export const SESSION_KEPT_MS = 10 * 60 * 1000;
/** How often that time is started anew, in milliseconds. */
const RENEW_MS = 60_000;

/** One sequence of calls, one at a time. */
export interface Lane {
  readonly index: number;
  number: number;
}

/** The session of one open store. */
export class Session {
  readonly #runner: ScriptRunner;
  readonly #settings: RedisSettings;
  readonly #ownKeys: EncodedKeys;
  readonly #key: string;
  readonly #channel: string;
  #renewedMs = Number.NEGATIVE_INFINITY;
  #isUsed = false;

  constructor(runner: ScriptRunner, settings: RedisSettings, keys: Keys) {
    this.#runner = runner;
    this.#settings = settings;
    this.#key = keys.session + settings.random.token().toString(36) + settings.random.token().toString(36);
    this.#ownKeys = { count: 2, bytes: Buffer.concat([encodeArgument(this.#key), encodeArgument(keys.wake)]) };
    this.#channel = keys.changes;
  }

  /** Makes a lane. Index 0 to 255. */
  newLane(index: number): Lane {
    return { index, number: 0 };
  }

  /** Runs a script that begins with the frame, as the next call of a lane that has none in the air. */
  async run(lane: Lane, program: Program, store: string, keys: EncodedKeys, values: readonly Argument[]): Promise<Buffer> {
    lane.number += 1;
    const header = Buffer.allocUnsafe(18);
    header[0] = lane.index;
    header.writeUIntBE(lane.number, 1, 6);
    header.writeUIntBE(this.#settings.rememberMs, 7, 6);
    header.writeUInt32BE(SESSION_KEPT_MS, 13);
    const now = this.#settings.clock.monotonicMs();
    const renew = now - this.#renewedMs >= RENEW_MS;
    header[17] = renew ? 1 : 0;
    this.#isUsed = true;
    const call = new ScriptCall(
      program,
      true,
      joinKeys([this.#ownKeys, keys]),
      [header, store, this.#channel, ...values],
      this.#runner.makeRaw,
    );
    const reply = await this.#runner.connection.run(call);
    if (renew) this.#renewedMs = now;
    assert(Buffer.isBuffer(reply), "a script answers with bytes");
    return reply;
  }

  /** Forgets the answers kept on the server. Best effort: they vanish by themselves. */
  async end(): Promise<void> {
    if (this.#isUsed) await this.#runner.command("unlink", this.#key);
  }
}
