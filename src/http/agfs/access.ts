/** What a caller needs for a path: the right to change, and the queue among those that its token is for. */

import type { AgfsCall } from "./call.ts";
import type { Target } from "./tree.ts";

/** What is to be done with a path. */
export type Way =
  /** Told that it is there; the directories above a queue are no secret. */
  "stat" | "list" | "read" | "write";

/** @throws RequestError `forbidden` */
export function needAccess({ caller }: Pick<AgfsCall, "caller">, target: Target, way: Way): void {
  if (way === "write") caller.needWrite();
  if (target.kind !== "inside") return;
  const { parsed } = target;
  // A read of `dequeue` takes a message.
  if (way === "read" && parsed.kind === "control" && parsed.file === "dequeue") caller.needWrite();
  if (parsed.kind === "root") {
    if (way !== "stat") caller.needQueue("");
  } else if ("name" in parsed) {
    caller.needQueue(parsed.name);
  } else if (parsed.kind === "tasks" || way === "write") {
    // Tasks span queues. Whoever knows the id of one may look at it and wait for it, as by the native API.
    caller.needWholeStore();
  }
}
