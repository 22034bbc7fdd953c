/** What a program holds to work with queues. */

export type { WaitedStatus } from "./clear-watch.ts";
export { bytesCodec, type Codec, jsonCodec, type StandardSchema, textCodec } from "./codec.ts";
export type { ConsumeOptions } from "./consume.ts";
export type { Delivery, NackOptions } from "./delivery.ts";
export { type EnqueueOptions, enqueueOptionsFor } from "./enqueue-options.ts";
export { errorText } from "./error-text.ts";
export { giveUp, type Handler, type HandlerContext, type HandlerTask, retryAfter, type Verdict } from "./handler.ts";
export { type ForwardTarget, NamedQueue, type NamedQueueOptions, type NamedQueueStatus } from "./named-queue.ts";
export { type ManagedStatus, QueueManager } from "./queue-manager.ts";
export type { RateLimit } from "./rate-limit.ts";
export { DEFAULT_BACKOFF, type RunOutcome } from "./run-handler.ts";
export { type RepeatOptions, type Repetition, type Rhythm, repeat } from "./schedule.ts";
export { type SignalOptions, type Stoppable, stopOnSignals } from "./shutdown.ts";
export type { Stall, StallCause, StalledQueue } from "./stall.ts";
export { detached, runInTask, type TaskScope } from "./task-scope.ts";
export { cancellationsOf } from "./task-watch.ts";
export type { TelemetryCounts, TelemetryError } from "./telemetry.ts";
export {
  type Completion,
  isAllComplete,
  judgeComplete,
  type WaitedBackend,
  type WaitOptions,
  WaitTimeoutError,
  waitComplete,
} from "./wait.ts";
export { type StopReport, Worker, type WorkerHealth, type WorkerOptions } from "./worker.ts";
