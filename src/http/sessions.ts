/**
 * What makes repeats safe after lost replies: per client session, the answers to its last changing requests. A session is a sequence with one
 * request in the air at a time, and the same number is the same request: it is not done again, and gets the first answer, for which it waits
 * if it has to.
 */

import type { Clock } from "../core/clock.ts";
import { QueueFSError } from "../core/errors.ts";
import { MAX_REMEMBERED_ANSWER_BYTES, MAX_REMEMBERED_ANSWERS, MAX_REMEMBERED_SESSIONS, REMEMBER_SESSION_MS } from "../core/limits.ts";

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
  readonly answers: number;
  readonly bytes: number;
  readonly idleMs: number;
}

const LIMITS: SessionLimits = {
  sessions: MAX_REMEMBERED_SESSIONS,
  answers: MAX_REMEMBERED_ANSWERS,
  bytes: MAX_REMEMBERED_ANSWER_BYTES,
  idleMs: REMEMBER_SESSION_MS,
};

/** A session that has asked something within this time is not forgotten to make room for new ones, in milliseconds. */
const SAFE_MS = 60_000;

interface Entry {
  /** Method and target: another request with the same number is a mistake of the client. */
  readonly request: string;
  /** Nothing when the step was not done after all. */
  readonly answer: Promise<KeptAnswer | undefined>;
  /** Bytes of the answer; `undefined` while the step runs. */
  bytes: number | undefined;
}

interface ClientSession {
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
   * @throws QueueFSError `id-conflict` for another request with the same number, `outcome-unknown` for a number that was forgotten,
   *   `overloaded` when no session more can be remembered
   */
  async run(session: string, number: number, request: string, step: () => Promise<StepAnswer>): Promise<KeptAnswer> {
    for (;;) {
      const earlier = this.#touch(session).entries.get(number);
      if (earlier === undefined) break;
      if (earlier.request !== request)
        throw new QueueFSError("id-conflict", `request ${number} of this session was another one; give each request a number of its own`);
      const answer = await earlier.answer;
      if (answer !== undefined) return answer;
    }
    const own = this.#touch(session);
    if (number < own.highest || number <= own.forgotten)
      throw new QueueFSError(
        "outcome-unknown",
        `request ${number} of this session is out of turn, or its answer was forgotten: whether it was done is not known`,
      );
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
        this.#bytes += entry.bytes;
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

  /** The session, as the one that asked last. */
  #touch(name: string): ClientSession {
    const nowMs = this.#clock.monotonicMs();
    const known = this.#sessions.get(name);
    this.#sessions.delete(name);
    this.#forgetIdle(nowMs);
    const session = known ?? { entries: new Map(), highest: -1, forgotten: -1, lastMs: nowMs };
    session.lastMs = nowMs;
    this.#sessions.set(name, session);
    return session;
  }

  #forgetIdle(nowMs: number): void {
    for (const [name, session] of this.#sessions) {
      const idleMs = nowMs - session.lastMs;
      const isFull = this.#sessions.size >= this.#limits.sessions;
      if (idleMs < this.#limits.idleMs && !isFull) return;
      if (idleMs < Math.min(SAFE_MS, this.#limits.idleMs))
        throw new QueueFSError("overloaded", "the server remembers as many client sessions as it can; try again later");
      this.#sessions.delete(name);
      for (const entry of session.entries.values()) this.#bytes -= entry.bytes ?? 0;
      session.entries.clear();
    }
  }

  /** Forgets answers that are too many: of this session, then of those that asked longest ago. */
  #shrink(own: ClientSession): void {
    if (own.entries.size > this.#limits.answers) this.#forgetFirst(own);
    for (const session of this.#sessions.values()) {
      while (this.#bytes > this.#limits.bytes && this.#forgetFirst(session));
      if (this.#bytes <= this.#limits.bytes) return;
    }
  }

  /** Forgets the first answer that is there; those of steps that run are not. */
  #forgetFirst(session: ClientSession): boolean {
    for (const [number, { bytes }] of session.entries) {
      if (bytes === undefined) continue;
      this.#bytes -= bytes;
      session.entries.delete(number);
      session.forgotten = Math.max(session.forgotten, number);
      return true;
    }
    return false;
  }
}
