/** The AGFS file API over one store: a request in, an answer out. */

import type { Backend } from "../../backend/contract.ts";
import { type Clock, systemClock } from "../../core/clock.ts";
import { isQueueFSError, QueueFSError } from "../../core/errors.ts";
import { DEFAULT_PLAIN_LEASE_MS, MAX_LEASE_MS, MAX_LONG_POLL_MS, MIN_LEASE_MS } from "../../core/limits.ts";
import { type OptionTable, readOptions } from "../../core/options.ts";
import type { LongPolls } from "../long-polls.ts";
import { errorAnswer } from "./answers.ts";
import type { AgfsCall, Step } from "./call.ts";
import { FormQuery } from "./form.ts";
import { type AgfsRoute, stepOf } from "./routes.ts";
import type { Service } from "./service.ts";
import { Tree } from "./tree.ts";

/** Options of {@link Agfs}. */
export interface AgfsOptions {
  /** Where in the tree that clients see the queues lie, an absolute path. Default `/queuefs`. */
  readonly mount?: string;
  /** How long a message read from `dequeue` may be held, in milliseconds. 10 ms to 7 days, default 900,000 (15 minutes). */
  readonly plainLeaseMs?: number;
}

/** Options of {@link Agfs}, as a table. */
export const AGFS_OPTIONS = {
  mount: { type: "text", default: "/queuefs", meaning: "where in the tree that AGFS clients see the queues lie, an absolute path" },
  plainLeaseMs: {
    type: "integer",
    minimum: MIN_LEASE_MS,
    maximum: MAX_LEASE_MS,
    default: DEFAULT_PLAIN_LEASE_MS,
    meaning: "how long a message that an AGFS client took may be held, in milliseconds; those clients cannot renew a lease",
  },
} as const satisfies OptionTable;

/** What the API needs of the server around it. */
export interface AgfsSurroundings {
  readonly backend: Backend;
  readonly polls: Pick<LongPolls, "run" | "drained">;
  /** The version of the package. */
  readonly version: string;
  /** How long the store may take for one request, in milliseconds. */
  readonly answerTimeoutMs: number;
  readonly clock?: Clock;
  /** Gets errors that no caller waits for. */
  readonly onError?: (error: unknown) => void;
}

/** An answer, and the error that it tells of, if it does. */
export interface AgfsAnswer {
  readonly response: Response;
  readonly error?: unknown;
}

/** The API. The store stays the caller's to close, after this. */
export class Agfs implements AsyncDisposable {
  readonly #service: Service;
  readonly #answerTimeoutMs: number;
  readonly #onError: ((error: unknown) => void) | undefined;

  /** @throws QueueFSError `invalid-argument` */
  constructor(surroundings: AgfsSurroundings, options: AgfsOptions = {}) {
    const { mount, plainLeaseMs } = readOptions("the AGFS file API", AGFS_OPTIONS, options);
    const { backend, polls, version, clock = systemClock, onError, answerTimeoutMs } = surroundings;
    const tree = new Tree(backend, { mount, leaseMs: plainLeaseMs, clock, ...(onError === undefined ? {} : { onError }) });
    this.#service = { tree, backend, polls, clock, version };
    this.#answerTimeoutMs = answerTimeoutMs;
    this.#onError = onError;
  }

  /** Answers one request; never rejects. */
  async handle(route: AgfsRoute, call: AgfsCall): Promise<AgfsAnswer> {
    let step: Step = route.step;
    try {
      const query = new FormQuery(call.search);
      step = stepOf(route, query);
      return { response: await this.#inTime(route, call, query) };
    } catch (error) {
      if (!isQueueFSError(error) && !call.signal.aborted) this.#onError?.(error);
      const told = call.signal.aborted && !isQueueFSError(error) ? new QueueFSError("aborted", "the client went away") : error;
      return { response: errorAnswer(told, step), error: told };
    }
  }

  /** Ends the file face, and waits for what goes on in the background. Requests are then answered with `closed`. */
  close(): Promise<void> {
    return this.#service.tree.close();
  }

  /** See {@link close}. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** The answer, unless the store takes too long. What it does later is not undone, but for a message that was taken: that is given back. */
  #inTime(route: AgfsRoute, call: AgfsCall, query: FormQuery): Promise<Response> {
    const { clock } = this.#service;
    // A read may wait for something to happen.
    const timeoutMs = this.#answerTimeoutMs + (route.step === "read" ? MAX_LONG_POLL_MS : 0);
    const listeners: (() => void)[] = [];
    let isLate = false;
    const onLost = (listener: () => void): void => {
      if (isLate) listener();
      else if (listeners.push(listener) === 1) call.onLost(() => lose());
    };
    const lose = (): void => {
      for (const listener of listeners.splice(0)) listener();
    };
    return new Promise((resolve, reject) => {
      const timer = clock.setTimer(() => {
        isLate = true;
        reject(
          new QueueFSError("timed-out", `the store took longer than ${timeoutMs} ms: what was asked for may or may not have happened`),
        );
        lose();
      }, timeoutMs);
      route
        .handle({ ...call, onLost }, query, this.#service)
        .then(resolve, reject)
        .finally(() => timer.cancel());
    });
  }
}
