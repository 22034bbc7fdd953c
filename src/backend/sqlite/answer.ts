/** What operations answer the writer with. */

import type { QueueFSError } from "../../core/errors.ts";

/** What an operation returns that did a part of its work and is to go on in another transaction, so that others get their turn. */
export const AGAIN = Symbol("again");

/** What became of one call. */
export type Answer<Value = unknown> = { readonly value: Value } | { readonly error: QueueFSError };
