/** One request to the AGFS file API, as the server around it hands it over once it was let in. */

import type { Caller } from "../auth.ts";

/** A request that was let in. */
export interface AgfsCall {
  /** The query as it was sent, without the question mark. */
  readonly search: string;
  /** The media type of the body, in lower case, without parameters; empty when it has none. */
  readonly contentType: string;
  readonly caller: Pick<Caller, "needWrite" | "needQueue" | "needWholeStore">;
  /** Aborted when the client goes away. */
  readonly signal: AbortSignal;
  /** The body as it came. @throws QueueFSError `message-too-large`, `overloaded` */
  bytes(): Promise<Uint8Array>;
  /** Has `listener` called when the answer did not reach the client, as far as that can be known. */
  onLost(listener: () => void): void;
}

/**
 * What a repeat of a request does, which clients send by themselves after a lost or failed answer: nothing more (`read`, `repeatable`), or
 * the same once more (`once`).
 */
export type Step = "read" | "repeatable" | "once";
