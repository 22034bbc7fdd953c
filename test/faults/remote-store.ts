/** A store opened in a child process and used from here, as if it were a backend of this one. */

import type { Backend } from "../../src/backend/contract.ts";
import type { Child } from "../support/child-process.ts";
import type { FaultPrograms } from "./programs/main.ts";
import type { StoreSpec } from "./store-spec.ts";

/** What of a backend can be used from another process. */
export type RemoteStore = Pick<
  Backend,
  | "createQueue"
  | "configureQueue"
  | "removeQueue"
  | "enqueue"
  | "dequeue"
  | "ack"
  | "ackById"
  | "nack"
  | "release"
  | "extend"
  | "messages"
  | "clear"
  | "status"
  | "statuses"
  | "statistics"
  | "recover"
  | "deadLetters"
  | "inspect"
  | "close"
>;

/** Opens a store in a child. */
export async function openRemote(child: Child<FaultPrograms>, spec: StoreSpec): Promise<RemoteStore> {
  const number = await child.call("openShared", spec);
  return new Proxy({} as RemoteStore, {
    get: (_target, method: string) =>
      // An object with `then` would be taken for a promise.
      method === "then"
        ? undefined
        : (...values: unknown[]) =>
            method === "close" ? child.call("closeStore", number) : child.call("callStore", number, method, values),
  });
}
