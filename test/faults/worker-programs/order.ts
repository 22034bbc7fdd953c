/** What the worker programs are asked, and what they tell: plain data, as it goes between processes. */

import type { StoreSpec } from "../store-spec.ts";

/** A store as any process can open it, from the sources or, with `library`, from a built package. */
export interface StoreOrder {
  /** URL of the module to be used as the library; the sources if absent. */
  readonly library?: string;
  readonly location: string;
  readonly sweepIntervalMs?: number;
}

/** A worker to be run. */
export interface WorkOrder extends StoreOrder {
  readonly queue: string;
  readonly leaseMs?: number;
  readonly concurrency?: number;
  readonly prefetch?: number;
  readonly handlerTimeoutMs?: number;
  readonly pollIntervalMs?: number;
  readonly graceMs?: number;
}

/**
 * What a worker tells. `started`: it runs (told by programs of their own only). `begun`: a handler begins. `settled`: a delivery ended so. `error`: the worker reported one. Times are of the monotonic
 * clock that all processes share, in milliseconds.
 */
export type Told =
  | { readonly kind: "started" }
  | { readonly kind: "begun"; readonly text: string; readonly id: string; readonly deliveryCount: number; readonly atMs: number }
  | { readonly kind: "settled"; readonly id: string; readonly outcome: string; readonly atMs: number }
  | { readonly kind: "error"; readonly text: string }
  | { readonly kind: "stopped"; readonly finished: number; readonly released: number; readonly atMs: number };

/** The location of a store of the fault tests. */
export function locationOf(spec: StoreSpec): string {
  return spec.kind === "sqlite" ? `sqlite:${spec.path}` : `${spec.url}?namespace=${spec.namespace}`;
}
