/** What a server tells Prometheus: its queues, its requests, and its process. Each server has a registry of its own. */

import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { RequestEnd } from "../exchange.ts";
import { type MetricsBackend, QueueMetrics } from "./queue-metrics.ts";

/** What the server counts itself, read at each scrape. */
export interface ServerCounts {
  readonly longPolls: () => number;
  readonly eventReaders: () => number;
  readonly eventGaps: () => number;
}

/** Seconds: from what a status takes to what a long poll does. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];

/** Methods by their own name; what clients make up would be one label each. */
const METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "PUT", "POST", "PATCH", "DELETE", "OPTIONS"]);

// Watching garbage collection and the event loop cannot be ended, so it is begun once, when somebody asks for it.
let ofProcess: Registry | undefined;
function processRegistry(): Registry {
  if (ofProcess === undefined) {
    ofProcess = new Registry();
    collectDefaultMetrics({ register: ofProcess });
  }
  return ofProcess;
}

/** The metrics of one server. */
export class Metrics {
  /** The media type of the text. */
  readonly contentType: string;
  readonly #registry = new Registry();
  readonly #queues: QueueMetrics;
  readonly #durations: Histogram<"route" | "method" | "status">;
  #running = 0;
  #connections: () => number = () => 0;
  #scraping: Promise<string> | undefined;

  constructor(backend: MetricsBackend, maxQueues: number, counts: ServerCounts, version: string) {
    const registers = [this.#registry];
    this.contentType = this.#registry.contentType;
    this.#queues = new QueueMetrics(backend, this.#registry, maxQueues);
    this.#durations = new Histogram({
      name: "queuefs_http_request_duration_seconds",
      help: "Until the answer was ready; time that a request asked to wait is included",
      labelNames: ["route", "method", "status"],
      buckets: BUCKETS,
      registers,
    });
    const gauge = (name: string, help: string, read: () => number): void => {
      new Gauge({
        name,
        help,
        registers,
        collect() {
          this.set(read());
        },
      });
    };
    gauge("queuefs_http_connections", "Connections that are open", () => this.#connections());
    gauge("queuefs_http_running_requests", "Requests whose answer is not ready", () => this.#running);
    gauge("queuefs_http_long_polls", "Requests that wait for something to happen", counts.longPolls);
    gauge("queuefs_http_event_readers", "Streams of events that are open", counts.eventReaders);
    new Counter({
      name: "queuefs_http_event_gaps_total",
      help: "How often a reader of events was told that it missed more than is remembered",
      registers,
      collect() {
        this.reset();
        this.inc(counts.eventGaps());
      },
    });
    const { kind } = backend.description;
    new Gauge({ name: "queuefs_info", help: "Which server and store this is", labelNames: ["version", "store"], registers }).set(
      { version, store: kind },
      1,
    );
  }

  /** Says where the number of connections comes from. */
  countConnections(count: () => number): void {
    this.#connections = count;
  }

  /** A request begins. */
  begin(): void {
    this.#running += 1;
  }

  /** Its answer is ready. */
  end({ route, method, status, durationMs }: RequestEnd): void {
    this.#running -= 1;
    this.#durations.observe({ route, method: METHODS.has(method) ? method : "other", status }, durationMs / 1_000);
  }

  /** All of it as text. Who asks while it is being read gets the same. @throws QueueFSError when the store cannot be read */
  scrape(): Promise<string> {
    this.#scraping ??= this.#read().finally(() => {
      this.#scraping = undefined;
    });
    return this.#scraping;
  }

  async #read(): Promise<string> {
    await this.#queues.read();
    return `${await this.#registry.metrics()}\n${await processRegistry().metrics()}`;
  }
}
