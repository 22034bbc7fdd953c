/**
 * What makes repeats safe after lost replies: per client session, the answers to its last changing requests. A session is a sequence with one
 * request in the air at a time, and the same number is the same request: it is not done again, and gets the first answer, for which it waits
 * if it has to. Sessions belong to tokens, each of which has room of its own: what one needs is never taken from another.
 */

import type { Clock } from "../core/clock.ts";
import { QueueFSError } from "../core/errors.ts";
import {
  MAX_REMEMBERED_ANSWER_BYTES,
  MAX_REMEMBERED_ANSWERS,
  MAX_REMEMBERED_SESSIONS,
  MAX_REMEMBERED_TOKEN_BYTES,
  MAX_REMEMBERED_TOKEN_SESSIONS,
  REMEMBER_SESSION_MS,
} from "../core/limits.ts";

/** An answer as it is sent. */
export interface KeptAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array<ArrayBuffer>;
}

/** An answer, and whether it is the one that a repeat must get too: not when nothing was done. */
export interface StepAnswer {
  readonly answer: KeptAnswer;
  readonly isFinal: boolean;
}

/** Bounds of what is remembered. */
export interface SessionLimits {
  readonly sessions: number;
  readonly tokenSessions: number;
  readonly answers: number;
  readonly bytes: number;
  readonly tokenBytes: number;
  readonly idleMs: number;
}

const LIMITS: SessionLimits = {
  sessions: MAX_REMEMBERED_SESSIONS,
  tokenSessions: MAX_REMEMBERED_TOKEN_SESSIONS,
  answers: MAX_REMEMBERED_ANSWERS,
  bytes: MAX_REMEMBERED_ANSWER_BYTES,
  tokenBytes: MAX_REMEMBERED_TOKEN_BYTES,
  idleMs: REMEMBER_SESSION_MS,
};

/** A session that has asked something within this time is not forgotten to make room for new ones, in milliseconds. */
const SAFE_MS = 60_000;

/**
 * How large an answer will be is known only when its step is done, and it is then kept although there is no room: so many times what is
 * remembered before steps are refused is never exceeded.
 */
const AT_MOST = 2;

interface Entry {
  /** Method and target: another request with the same number is a mistake of the client. */
  readonly request: string;
  /** Nothing when the step was not done after all. */
  readonly answer: Promise<KeptAnswer | undefined>;
  /** Bytes of the answer; `undefined` while the step runs. */
  bytes: number | undefined;
}

/** The sessions of one token, the one that asked longest ago first. */
interface Holder {
  readonly name: string;
  readonly sessions: Map<string, ClientSession>;
  bytes: number;
}

interface ClientSession {
  readonly name: string;
  readonly holder: Holder;
  readonly entries: Map<number, Entry>;
  /** The highest number so far: a lower one that is not among the entries was forgotten, or comes so late that its client has given it up. */
  highest: number;
  /** The highest number whose answer was forgotten: it must not be taken for a new one. */
  forgotten: number;
  lastMs: number;
}

/** The answers of all sessions. */
export class Sessions {
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #limits: SessionLimits;
  /** The one that asked longest ago comes first. */
  readonly #sessions = new Map<string, ClientSession>();
  readonly #holders = new Map<string, Holder>();
  #bytes = 0;

  constructor(clock: Pick<Clock, "monotonicMs">, limits: Partial<SessionLimits> = {}) {
    this.#clock = clock;
    this.#limits = { ...LIMITS, ...limits };
  }

  /** How many sessions and bytes are remembered. */
  get size(): { readonly sessions: number; readonly bytes: number } {
    return { sessions: this.#sessions.size, bytes: this.#bytes };
  }

  /**
   * Does a step, unless this number of this session has done it.
   *
   * @param request what is asked, to tell a repeat from a mistake
   * @param token whose session it is
   * @throws QueueFSError `id-conflict` for another request with the same number, `outcome-unknown` for a number that was forgotten,
   *   `overloaded` when no session or answer more can be remembered
   */
  async run(session: string, number: number, request: string, step: () => Promise<StepAnswer>, token = ""): Promise<KeptAnswer> {
    const name = `${token}:${session}`;
    for (;;) {
      const earlier = this.#touch(name, token).entries.get(number);
      if (earlier === undefined) break;
      if (earlier.request !== request)
        throw new QueueFSError("id-conflict", `request ${number} of this session was another one; give each request a number of its own`);
      const answer = await earlier.answer;
      if (answer !== undefined) return answer;
    }
    const own = this.#touch(name, token);
    if (number < own.highest || number <= own.forgotten)
      throw new QueueFSError(
        "outcome-unknown",
        `request ${number} of this session is out of turn, or its answer was forgotten: whether it was done is not known`,
      );
    this.#makeRoom(own);
    own.highest = number;
    return this.#begin(own, number, request, step);
  }

  async #begin(own: ClientSession, number: number, request: string, step: () => Promise<StepAnswer>): Promise<KeptAnswer> {
    let settle: (answer: KeptAnswer | undefined) => void = () => {};
    const entry: Entry = { request, answer: new Promise((resolve) => (settle = resolve)), bytes: undefined };
    own.entries.set(number, entry);
    try {
      const { answer, isFinal } = await step();
      // A session that asked nothing else meanwhile may have been forgotten with its entries.
      if (isFinal && own.entries.get(number) === entry) {
        entry.bytes = typeof answer.body === "string" ? Buffer.byteLength(answer.body) : answer.body.byteLength;
        this.#count(own.holder, entry.bytes);
        settle(answer);
        this.#shrink(own);
      } else {
        own.entries.delete(number);
        settle(isFinal ? answer : undefined);
      }
      return answer;
    } catch (error) {
      own.entries.delete(number);
      settle(undefined);
      throw error;
    }
  }

  #count(holder: Holder, bytes: number): void {
    holder.bytes += bytes;
    this.#bytes += bytes;
  }

  /** The session, as the one that asked last. */
  #touch(name: string, token: string): ClientSession {
    const nowMs = this.#clock.monotonicMs();
    const known = this.#sessions.get(name);
    if (known !== undefined) {
      this.#sessions.delete(name);
      known.holder.sessions.delete(name);
    }
    this.#forgetIdle(nowMs);
    const holder = this.#holders.get(token) ?? known?.holder ?? { name: token, sessions: new Map(), bytes: 0 };
    if (known === undefined) this.#makeRoomForOne(holder, nowMs);
    const session = known ?? { name, holder, entries: new Map(), highest: -1, forgotten: -1, lastMs: nowMs };
    session.lastMs = nowMs;
    this.#sessions.set(name, session);
    holder.sessions.set(name, session);
    this.#holders.set(token, holder);
    return session;
  }

  #forgetIdle(nowMs: number): void {
    for (const session of this.#sessions.values()) {
      if (nowMs - session.lastMs < this.#limits.idleMs) return;
      this.#forget(session);
    }
  }

  #forget({ name, holder, entries }: ClientSession): void {
    this.#sessions.delete(name);
    holder.sessions.delete(name);
    for (const { bytes = 0 } of entries.values()) this.#count(holder, -bytes);
    entries.clear();
    if (holder.sessions.size === 0) this.#holders.delete(holder.name);
  }

  /** Makes room for a session more, of a token that has asked nothing for a while. */
  #makeRoomForOne(holder: Holder, nowMs: number): void {
    const { sessions, tokenSessions } = this.#limits;
    if (this.#sessions.size < sessions && holder.sessions.size < tokenSessions) return;
    const [first] = holder.sessions.values();
    if (first === undefined || !this.#isIdle(first, nowMs))
      throw new QueueFSError("overloaded", "the server remembers as many client sessions as it can; try again later");
    this.#forget(first);
  }

  #isIdle({ lastMs }: ClientSession, nowMs: number): boolean {
    return nowMs - lastMs >= Math.min(SAFE_MS, this.#limits.idleMs);
  }

  /** Whether there are too many bytes, of a token or in all. */
  #isFull(holder: Holder, times = 1): boolean {
    return holder.bytes >= this.#limits.tokenBytes * times || this.#bytes >= this.#limits.bytes * times;
  }

  /**
   * Makes room for the answer of a new request: what its client has heard, since it goes on, then what others of the same token have heard,
   * then sessions of that token that have asked nothing for a while.
   */
  #makeRoom(own: ClientSession): void {
    const { holder } = own;
    if (!this.#isFull(holder)) return;
    while (this.#forgetFirst(own, 0));
    for (const session of holder.sessions.values()) {
      if (!this.#isFull(holder)) return;
      while (this.#forgetFirst(session, 1));
    }
    const nowMs = this.#clock.monotonicMs();
    for (const session of holder.sessions.values()) {
      if (!this.#isFull(holder)) return;
      if (session === own || !this.#isIdle(session, nowMs)) break;
      while (this.#forgetFirst(session, 0));
    }
    if (this.#isFull(holder))
      throw new QueueFSError("overloaded", "the server remembers as many bytes of answers for repeats as it can; try again later");
  }

  /** Forgets answers that are too many: of this session, then of those of its token that asked longest ago. */
  #shrink(own: ClientSession): void {
    if (own.entries.size > this.#limits.answers) this.#forgetFirst(own, 0);
    for (const session of own.holder.sessions.values()) {
      while (this.#isFull(own.holder, AT_MOST) && this.#forgetFirst(session, 0));
      if (!this.#isFull(own.holder, AT_MOST)) return;
    }
  }

  /** Forgets the first answer that is there, while more than so many entries are; those of steps that run are not forgotten. */
  #forgetFirst(session: ClientSession, keep: number): boolean {
    if (session.entries.size <= keep) return false;
    for (const [number, { bytes }] of session.entries) {
      if (bytes === undefined) continue;
      this.#count(session.holder, -bytes);
      session.entries.delete(number);
      session.forgotten = Math.max(session.forgotten, number);
      return true;
    }
    return false;
  }
}
