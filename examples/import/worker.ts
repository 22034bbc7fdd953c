/**
 * A worker process of the import. A handler that comes to its end has its message acknowledged, and what it forwards is stored in that very
 * step; if the process dies before, the message is still in the store and comes back to another worker. Nothing here names the task of the
 * import: what a handler forwards belongs to the task of its message.
 */

import { isUtf8 } from "node:buffer";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { giveUp, type HandlerContext, openStore, Worker, type WorkerOptions } from "../../src/index.ts";
import { checksumOf, NOT_TEXT, sectionsOf } from "./documents.ts";
import { idOf, type Order, queuesOf, type Report, type WorkerSettings } from "./job.ts";
import { SearchIndex } from "./search-index.ts";

const settings = JSON.parse(process.argv[2] as string) as WorkerSettings;
const store = await openStore(settings.store);
const searchIndex = new SearchIndex(settings.index);
const queues = queuesOf(store);
let stepsBegun = 0;
/** Aborted when another worker was killed, so that this one need not stand still. */
const hold = new AbortController();

const options: WorkerOptions = {
  backoff: { firstMs: 100, maximumMs: 1_000 },
  // The handlers are short: no second thread is needed to renew leases meanwhile.
  keepLeasesWhileBusy: false,
  onSettled: (outcome) => {
    if (outcome === "done") tell({ kind: "acked" });
  },
  onError: (error) => {
    // A document that is given up on is told of where that is decided.
    if (error !== NOT_TEXT) console.error(`worker ${settings.number}: ${String(error)}`);
  },
};

/** Reads a document and splits it, and hands it on to `import/index`. One that is no text stays none, however often it is tried. */
const parser = new Worker(
  queues.parse,
  async ({ document }, context) => {
    const bytes = readFileSync(join(settings.folder, document));
    if (!isUtf8(bytes)) {
      tell({ kind: "given-up", document, reason: NOT_TEXT });
      return giveUp(NOT_TEXT);
    }
    const sections = sectionsOf(document, bytes.toString("utf8"));
    await takeTime(document, context);
    await context.forward(queues.index, { document, checksum: checksumOf(bytes), sections }, { id: idOf(settings.folder, document) });
    return undefined;
  },
  options,
);

/** Makes a document searchable. Doing it twice leaves one result, so a death between the result and the ack does no harm. */
const indexer = new Worker(
  queues.index,
  async (job, context) => {
    await takeTime(job.document, context);
    searchIndex.store(context.id, job);
  },
  options,
);

process.on("message", ({ kind }: Order) => {
  if (kind === "begin") {
    parser.start();
    indexer.start();
  } else if (kind === "go-on") {
    hold.abort();
  } else {
    void end();
  }
});
// Whoever started this process is gone.
process.on("disconnect", () => void end());
tell({ kind: "ready" });

/** Makes a step take as long as people need to watch, and stands still in the middle of the one in which this process is to be killed. */
async function takeTime(document: string, { queue, deliveryCount }: HandlerContext): Promise<void> {
  stepsBegun += 1;
  const isToHold = stepsBegun === settings.holdAtStep;
  if (deliveryCount > 1) tell({ kind: "again", queue, document, deliveryCount });
  if (settings.paceMs > 0) await sleep(settings.paceMs);
  if (!isToHold || hold.signal.aborted) return;
  tell({ kind: "holding", queue, document });
  await once(hold.signal, "abort");
}

async function end(): Promise<void> {
  await Promise.all([parser.stop(), indexer.stop()]);
  searchIndex.close();
  await store.close();
  if (process.connected) process.disconnect();
}

function tell(report: Report): void {
  if (process.connected) process.send?.(report);
}
