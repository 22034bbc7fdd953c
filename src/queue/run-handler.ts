/** Running a handler on one delivery, and settling the delivery by how that ended. */

import { type Backoff, backoffMs } from "../core/backoff.ts";
import { type Clock, type Random, systemClock, systemRandom } from "../core/clock.ts";
import { isQueueFSError, QueueFSError, quote } from "../core/errors.ts";
import type { Forward, NewMessage } from "../core/message.ts";
import type { QueueName } from "../core/names.ts";
import { rest } from "./availability.ts";
import { tell } from "./callback.ts";
import type { Delivery } from "./delivery.ts";
import { type EnqueueOptions, enqueueOptionsFor } from "./enqueue-options.ts";
import { errorText } from "./error-text.ts";
import { Forwardings } from "./forwarding.ts";
import type { Handler, HandlerContext, Verdict } from "./handler.ts";
import type { ForwardTarget } from "./named-queue.ts";
import { cancellationsOf } from "./task-watch.ts";
import type { Telemetry } from "./telemetry.ts";
import { isTracingLoading, tracing } from "./tracing.ts";

/**
 * What became of a delivery. `done`: acked. `retry`: pending again. `dead`: in the dead letters. `cancelled`: removed, since its task is being
 * cancelled. `lost`: it was no longer this consumer's when
 * it was to be settled, or could not be settled; the message is somebody else's, or will be when its lease ends.
 */
export type RunOutcome = "done" | "retry" | "dead" | "cancelled" | "lost";

/** How a handler is run. */
export interface RunOptions {
  readonly queue: QueueName;
  readonly telemetry: Telemetry;
  readonly clock?: Clock;
  readonly random?: Random;
  /** The handler's time, in milliseconds; none if absent. When it is over, the signal is aborted and the message given back. */
  readonly timeoutMs?: number;
  /** How retries wait. Default {@link DEFAULT_BACKOFF}. */
  readonly backoff?: Backoff;
  /** Aborted when the handler should come to an end because its worker does. */
  readonly stopping?: AbortSignal;
  /** Attempts at settling the delivery while the store does not answer, at most. Default 5; then its lease heals it. */
  readonly settleAttempts?: number;
  /** Called when the handler has ended and only settling is left. */
  readonly onHandled?: () => void;
  /** Told of every error, after the telemetry. */
  readonly onError?: (error: unknown, about: { readonly id: string; readonly attempt: number }) => void;
}

/** Waits of retries unless told otherwise: 1 s, doubled each time, up to 5 minutes, each with jitter. */
export const DEFAULT_BACKOFF: Backoff = { firstMs: 1_000, maximumMs: 300_000 };
/** Attempts at settling a delivery unless told otherwise. */
const SETTLE_ATTEMPTS = 5;
/** Waits between those. */
const SETTLE_BACKOFF: Backoff = { firstMs: 50, maximumMs: 2_000 };

type Ended = { readonly verdict: Verdict | undefined } | { readonly thrown: unknown } | "lost";

/** Runs the handler and settles the delivery. Never rejects: every failure is told by the outcome, the telemetry and `onError`. */
export function runHandler<Value>(handler: Handler<Value>, delivery: Delivery<Value>, options: RunOptions): Promise<RunOutcome> {
  const loading = isTracingLoading();
  if (loading !== undefined) return loading.then(() => runHandler(handler, delivery, options));
  const trace = tracing();
  if (trace === undefined) return runAndSettle(handler, delivery, options);
  return trace.process(options.queue, delivery, () => runAndSettle(handler, delivery, options));
}

async function runAndSettle<Value>(handler: Handler<Value>, delivery: Delivery<Value>, options: RunOptions): Promise<RunOutcome> {
  const run = new Run(handler, delivery, options);
  try {
    const ended = await run.handle();
    options.onHandled?.();
    return await run.settle(ended);
  } catch (error) {
    run.record(error);
    return "lost";
  } finally {
    delivery.abandon();
  }
}

class Run<Value> {
  readonly #handler: Handler<Value>;
  readonly #delivery: Delivery<Value>;
  readonly #options: RunOptions;
  readonly #clock: Clock;
  readonly #controller = new AbortController();
  readonly #forwardings = new Forwardings();
  readonly #forward = new Map<QueueName, NewMessage[]>();
  #ended = false;

  constructor(handler: Handler<Value>, delivery: Delivery<Value>, options: RunOptions) {
    this.#handler = handler;
    this.#delivery = delivery;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** Runs the handler until it ends, its time is over, or its lease is lost. */
  handle(): Promise<Ended> {
    const { timeoutMs, stopping } = this.#options;
    return new Promise<Ended>((resolve) => {
      const timer =
        timeoutMs === undefined ? undefined : this.#clock.setTimer(() => end({ thrown: this.#outOfTime(timeoutMs) }), timeoutMs);
      const onLost = (): void => end("lost");
      const onStop = (): void => this.#controller.abort(stopping?.reason);
      const unwatch = this.#watchTask();
      const end = (ended: Ended): void => {
        if (this.#ended) return;
        this.#ended = true;
        timer?.cancel();
        unwatch?.();
        this.#delivery.signal.removeEventListener("abort", onLost);
        stopping?.removeEventListener("abort", onStop);
        // A handler that has not returned is told to; its message is no longer its business.
        if (ended === "lost") this.#controller.abort(this.#delivery.signal.reason);
        else if ("thrown" in ended) this.#controller.abort(ended.thrown);
        resolve(ended);
      };
      this.#delivery.signal.addEventListener("abort", onLost);
      stopping?.addEventListener("abort", onStop);
      if (this.#delivery.signal.aborted) end("lost");
      else if (stopping?.aborted) onStop();
      // What was lost while it waited is not begun.
      if (this.#ended) return;
      this.#call().then(
        (verdict) => end({ verdict }),
        (thrown: unknown) => end({ thrown }),
      );
    });
  }

  /** A handler whose task is cancelled is told to end; its message stays its own until it does. */
  #watchTask(): (() => void) | undefined {
    const { task, backend } = this.#delivery;
    if (task === undefined) return undefined;
    return cancellationsOf(backend, this.#clock).add(task, (reason) => this.#controller.abort(reason));
  }

  async #call(): Promise<Verdict | undefined> {
    const { value } = this.#delivery;
    const verdict = (await this.#delivery.run(() => this.#handler(value, this.#context()))) ?? undefined;
    // Forwards that the handler did not await belong to the message all the same: an ack before them would lose them.
    await this.#forwardings.settled();
    return verdict;
  }

  #outOfTime(timeoutMs: number): QueueFSError {
    return new QueueFSError(
      "timed-out",
      `the handler of queue ${quote(this.#options.queue)} took longer than ${timeoutMs} ms; raise handlerTimeoutMs, or split the work`,
    );
  }

  #context(): HandlerContext {
    const { id, deliveryCount, enqueuedAtMs, task, backend } = this.#delivery;
    return {
      ...(task === undefined
        ? {}
        : {
            task: {
              id: task,
              update: async (change) => void (await backend.updateTask(task, change)),
            },
          }),
      id,
      deliveryCount,
      enqueuedAtMs,
      queue: this.#options.queue,
      signal: this.#controller.signal,
      forward: (target, value, options) => this.#forwardings.add(this.#addForward(target, value, options)),
    };
  }

  async #addForward<Target>(target: ForwardTarget<Target>, value: Target, options?: EnqueueOptions): Promise<void> {
    const [message] = await Promise.all([
      target.encode(value, options?.task === undefined ? enqueueOptionsFor(this.#delivery.task ?? null, options) : options),
      target.ensure(),
    ]);
    if (this.#ended)
      throw new QueueFSError(
        "not-in-processing",
        `message ${quote(this.#delivery.id)} is settled, so nothing can be forwarded with it; await forward before the handler returns`,
      );
    const messages = this.#forward.get(target.name);
    if (messages === undefined) this.#forward.set(target.name, [message]);
    else messages.push(message);
  }

  /** Acks, nacks or leaves the delivery. */
  async settle(ended: Ended): Promise<RunOutcome> {
    if (ended === "lost") {
      this.record(this.#delivery.signal.reason);
      return "lost";
    }
    if ("thrown" in ended) return this.#failed(ended.thrown);
    const { verdict } = ended;
    if (verdict === undefined) return this.#done();
    if (verdict.verdict === "give-up") {
      this.record(verdict.reason);
      return this.#giveBack(0, errorText(verdict.reason), true);
    }
    if (verdict.verdict === "retry") {
      const { delayMs = this.#retryDelayMs(), reason = "" } = verdict;
      return this.#orFailed(() => this.#giveBack(delayMs, reason === "" ? "" : errorText(reason), false));
    }
    return this.#failed(
      new QueueFSError("invalid-argument", `a handler must answer nothing, retryAfter(…) or giveUp(…), got ${quote(verdict)}`),
    );
  }

  #retryDelayMs(): number {
    const { backoff = DEFAULT_BACKOFF, random = systemRandom } = this.#options;
    return Math.round(backoffMs(backoff, this.#delivery.deliveryCount, random));
  }

  /** Gives the message back because of an error. */
  #failed(error: unknown): Promise<RunOutcome> {
    this.record(error);
    return this.#giveBack(this.#retryDelayMs(), errorText(error), false);
  }

  /** Settles; where the store refuses what it is asked (a queue to forward to is gone, a delay is none), that is a failure of the message. */
  async #orFailed(settle: () => Promise<RunOutcome>): Promise<RunOutcome> {
    try {
      return await settle();
    } catch (error) {
      if (isPassing(error) || isQueueFSError(error, "closed")) throw error;
      return this.#failed(error);
    }
  }

  #done(): Promise<RunOutcome> {
    const forward: Forward[] = [...this.#forward].map(([queue, messages]) => ({ queue, messages }));
    return this.#orFailed(async () => {
      const outcome = await this.#insist(() => this.#delivery.ack(forward.length === 0 ? {} : { forward }));
      return outcome === "acked" ? "done" : "lost";
    });
  }

  async #giveBack(delayMs: number, reason: string, giveUp: boolean): Promise<RunOutcome> {
    const answer = await this.#insist(() => this.#delivery.nack({ delayMs, reason, giveUp }));
    if (answer === "pending") return "retry";
    return answer === "stale" ? "lost" : answer;
  }

  /**
   * Settles, again and again while the store is away or full; the lease is kept meanwhile, and if it is lost, the store's next answer says
   * so. A repeat of a step that did happen answers stale.
   */
  async #insist<Answer>(settle: () => Promise<Answer>): Promise<Answer> {
    const { settleAttempts = SETTLE_ATTEMPTS, stopping, random = systemRandom } = this.#options;
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await settle();
      } catch (error) {
        if (!isPassing(error) || attempt >= settleAttempts || stopping?.aborted) throw error;
        this.record(error);
        // Timers of clocks let the process end, which must not happen between two attempts.
        const keepAlive = setInterval(() => {}, 2 ** 31 - 1);
        await rest(this.#clock, backoffMs(SETTLE_BACKOFF, attempt, random), stopping);
        clearInterval(keepAlive);
      }
    }
  }

  record(error: unknown): void {
    const { telemetry, onError } = this.#options;
    const about = { id: this.#delivery.id, attempt: this.#delivery.deliveryCount };
    telemetry.recordError(error, about);
    if (onError !== undefined) tell(() => onError(error, about));
  }
}

/** Whether another attempt may do better. Settling twice changes nothing, so an unknown outcome may be tried again too. */
function isPassing(error: unknown): boolean {
  return isQueueFSError(error) && (error.retryable || error.code === "outcome-unknown");
}
