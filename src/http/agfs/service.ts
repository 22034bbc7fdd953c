/** What all requests to the AGFS file API share. */

import type { Backend } from "../../backend/contract.ts";
import type { Clock } from "../../core/clock.ts";
import type { LongPolls } from "../long-polls.ts";
import type { Tree } from "./tree.ts";

/** What all requests share. */
export interface Service {
  readonly tree: Tree;
  readonly backend: Pick<Backend, "listQueues">;
  readonly polls: Pick<LongPolls, "run" | "drained">;
  readonly clock: Clock;
  /** The version of the package. */
  readonly version: string;
}
