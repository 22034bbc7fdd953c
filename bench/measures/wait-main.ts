/** A process that waits for a queue to be complete, and tells when it was told so. */

import { setTimeout as sleep } from "node:timers/promises";
import { QUEUE } from "../contenders/queuefs.ts";
import { loadBuiltLibrary } from "../library.ts";
import { openPlace, type Place } from "../stores.ts";

/** How long a wait is left alone until it surely waits, in milliseconds. */
const SETTLE_MS = 20;

const { waitComplete, ...library } = await loadBuiltLibrary();
const store = await openPlace({ waitComplete, ...library }, JSON.parse(process.argv[2] as string) as Place);

process.on("message", (message) => {
  if (message === "wait") void wait();
  else void store.close().then(() => process.disconnect());
});
process.send?.(0);

/** Tells 0 once it waits, and then when the wait was over, in milliseconds of the host's clock. */
async function wait(): Promise<void> {
  const waited = waitComplete(store, { queues: [QUEUE] }).then(() => Number(process.hrtime.bigint()) / 1_000_000);
  await sleep(SETTLE_MS);
  process.send?.(0);
  process.send?.(await waited);
}
