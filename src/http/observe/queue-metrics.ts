/** Numbers of queues for Prometheus, read from the store at each scrape: a bounded number of queues, at a bounded cost. */

import { Counter, Gauge, type Registry } from "prom-client";
import type { Backend } from "../../backend/contract.ts";
import { isQueueFSError } from "../../core/errors.ts";
import type { QueueStatus, Statistics } from "../../core/message.ts";
import type { QueueName } from "../../core/names.ts";

/** What metrics need of a store. */
export type MetricsBackend = Pick<Backend, "description" | "listQueues" | "statuses" | "statistics">;

/** Statistics that are read at once. */
const READS_AT_ONCE = 16;
/** How often a snapshot is tried again whose queues were removed meanwhile. */
const SNAPSHOT_TRIES = 5;
const PAGE = 1_000;

type Numbers = { [Name in keyof Statistics]-?: NonNullable<Statistics[Name]> extends number ? Name : never }[keyof Statistics];

/** What is a gauge, besides pending and processing: statistic, name, meaning, and what one unit of the statistic is. */
const GAUGES: readonly (readonly [Numbers, string, string, number])[] = [
  ["delayed", "queuefs_delayed_messages", "Pending messages whose time has not come", 1],
  ["dead", "queuefs_dead_messages", "Dead letters", 1],
  ["oldestPendingMs", "queuefs_oldest_pending_age_seconds", "Age of the oldest pending message; 0 when there is none", 1_000],
  ["oldestProcessingMs", "queuefs_oldest_processing_age_seconds", "Age of the oldest message in processing; 0 when there is none", 1_000],
];

/** What only grows, since the queue was made. */
const COUNTERS: readonly (readonly [Numbers, string, string])[] = [
  ["enqueued", "queuefs_enqueued_messages_total", "Messages stored"],
  ["delivered", "queuefs_deliveries_total", "Deliveries begun"],
  ["acked", "queuefs_acked_messages_total", "Messages acked"],
  ["returned", "queuefs_returned_deliveries_total", "Deliveries that ended with the message pending again: nacks, releases, recoveries"],
  ["deadLettered", "queuefs_dead_lettered_messages_total", "Messages moved to the dead letters"],
  ["cleared", "queuefs_cleared_messages_total", "Messages removed by clear, or because their task was cancelled"],
];

/** Keeps the numbers of queues in a registry up to date. */
export class QueueMetrics {
  readonly #backend: MetricsBackend;
  readonly #maximum: number;
  readonly #pending: Gauge<"queue">;
  readonly #processing: Gauge<"queue">;
  readonly #shown: Gauge;
  readonly #isComplete: Gauge;
  readonly #gauges: readonly (readonly [Numbers, Gauge<"queue">, number])[];
  readonly #counters: readonly (readonly [Numbers, Counter<"queue">])[];

  /** @param maximum queues that are shown, the first by name */
  constructor(backend: MetricsBackend, registry: Registry, maximum: number) {
    this.#backend = backend;
    this.#maximum = maximum;
    const registers = [registry];
    const labelNames = ["queue"] as const;
    const gauge = (name: string, help: string): Gauge<"queue"> => new Gauge({ name, help, labelNames, registers });
    this.#pending = gauge("queuefs_pending_messages", "Messages in nobody's hands, of one snapshot with those in processing");
    this.#processing = gauge("queuefs_processing_messages", "Messages in somebody's hands, of one snapshot with the pending ones");
    this.#shown = new Gauge({ name: "queuefs_queues_shown", help: "Queues that these metrics tell of", registers });
    this.#isComplete = new Gauge({
      name: "queuefs_queues_all_shown",
      help: "1 when these metrics tell of all queues, 0 when there are more than maxMetricQueues",
      registers,
    });
    this.#gauges = GAUGES.map(([statistic, name, help, unit]) => [statistic, gauge(name, help), unit]);
    this.#counters = COUNTERS.map(([statistic, name, help]) => [statistic, new Counter({ name, help, labelNames, registers })]);
  }

  /** Reads all numbers. @throws QueueFSError when the store cannot be read */
  async read(): Promise<void> {
    const { statuses, isAll } = await this.#snapshot();
    const statistics = await this.#statistics(statuses);
    // Without a pause from here on, so that no scrape sees half of it; and without what is there no more.
    for (const metric of [this.#pending, this.#processing]) metric.reset();
    for (const [, metric] of [...this.#gauges, ...this.#counters]) metric.reset();
    this.#shown.set(statuses.length);
    this.#isComplete.set(isAll ? 1 : 0);
    for (const { queue, pending, processing } of statuses) {
      this.#pending.set({ queue }, pending);
      this.#processing.set({ queue }, processing);
    }
    for (const [queue, values] of statistics) {
      for (const [statistic, metric, unit] of this.#gauges) metric.set({ queue }, (values[statistic] ?? 0) / unit);
      for (const [statistic, metric] of this.#counters) metric.inc({ queue }, values[statistic] ?? 0);
    }
  }

  /** Pending and processing of all queues that are shown, in one snapshot. */
  async #snapshot(): Promise<{ readonly statuses: readonly QueueStatus[]; readonly isAll: boolean }> {
    for (let attempt = 1; ; attempt += 1) {
      const { queues, isAll } = await this.#queues();
      try {
        return { statuses: queues.length === 0 ? [] : await this.#backend.statuses({ queues }), isAll };
      } catch (error) {
        if (!isQueueFSError(error, "queue-not-found") || attempt === SNAPSHOT_TRIES) throw error;
      }
    }
  }

  async #queues(): Promise<{ readonly queues: readonly QueueName[]; readonly isAll: boolean }> {
    const queues: QueueName[] = [];
    let after: string | undefined;
    while (queues.length < this.#maximum) {
      const limit = Math.min(PAGE, this.#maximum - queues.length);
      const page = await this.#backend.listQueues({ limit, ...(after === undefined ? {} : { after }) });
      queues.push(...page.items);
      if (page.next === undefined) return { queues, isAll: true };
      after = page.next;
    }
    return { queues, isAll: false };
  }

  async #statistics(statuses: readonly QueueStatus[]): Promise<ReadonlyMap<QueueName, Statistics>> {
    const read = new Map<QueueName, Statistics>();
    for (let at = 0; at < statuses.length; at += READS_AT_ONCE) {
      await Promise.all(
        statuses.slice(at, at + READS_AT_ONCE).map(async ({ queue }) => {
          try {
            read.set(queue, await this.#backend.statistics(queue));
          } catch (error) {
            if (!isQueueFSError(error, "queue-not-found")) throw error;
          }
        }),
      );
    }
    return read;
  }
}
