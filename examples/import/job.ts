/** The two queues of the import, what their messages say, and what the processes tell one another. */

import { createHash } from "node:crypto";
import { type Backend, NamedQueue } from "../../src/index.ts";
import type { Section } from "./documents.ts";

/** A message of `import/parse`. */
export interface ParseJob {
  readonly document: string;
}

/** A message of `import/index`. */
export interface IndexJob {
  readonly document: string;
  readonly checksum: string;
  readonly sections: readonly Section[];
}

/** The queues, in the order in which a document passes them. */
export interface Queues {
  /** Documents that are to be read and split. */
  readonly parse: NamedQueue<ParseJob>;
  /** Documents that are split and are to be made searchable. */
  readonly index: NamedQueue<IndexJob>;
}

/** The queues of a store. */
export function queuesOf(store: Backend): Queues {
  return { parse: new NamedQueue(store, "import/parse"), index: new NamedQueue(store, "import/index") };
}

/** The id of a document's message, in either queue: always the same, so that a repeated call imports nothing twice. */
export function idOf(folder: string, document: string): string {
  return `document-${createHash("sha256").update(`${folder}\0${document}`).digest("hex").slice(0, 24)}`;
}

/** What a worker process needs to know. */
export interface WorkerSettings {
  /** The number that people see. */
  readonly number: number;
  /** Where the queues are, as `openStore` takes it. */
  readonly store: string;
  /** Where the documents are. */
  readonly folder: string;
  /** The file of the search index. */
  readonly index: string;
  /** How much longer each step takes, so that people can watch, in milliseconds. */
  readonly paceMs: number;
  /** In the middle of which of its steps it stands still, to be killed there, from 1. Absent: in none. */
  readonly holdAtStep?: number;
}

/** What a worker process is told: to begin, to go on although it should have stood still, to end after the present steps. */
export type Order = { readonly kind: "begin" } | { readonly kind: "go-on" } | { readonly kind: "end" };

/** What a worker process tells. */
export type Report =
  /** It can begin. */
  | { readonly kind: "ready" }
  /** It begins a message that was delivered before. */
  | { readonly kind: "again"; readonly queue: string; readonly document: string; readonly deliveryCount: number }
  /** It stands still in the middle of a step. */
  | { readonly kind: "holding"; readonly queue: string; readonly document: string }
  /** A document cannot be imported, however often it is tried. */
  | { readonly kind: "given-up"; readonly document: string; readonly reason: string }
  /** A step is acknowledged. */
  | { readonly kind: "acked" };
