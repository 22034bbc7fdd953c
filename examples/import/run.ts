/**
 * Imports a folder of documents through two queues: `import/parse` reads and splits, `import/index` makes searchable. Two worker processes do
 * the work; one of them is killed in the middle of a step. This process enqueues, watches, and at the end proves that nothing was lost.
 *
 *     npm run demo                                    the documents and sources of this repository
 *     npm run demo -- FOLDER [--pace MS] [--keep]
 *
 * Exit code 0: every document is imported, and that is proven. 1: it is not, and the output says why.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { openStore, type QueueName, type QueueStatus, type Statistics, waitComplete } from "../../src/index.ts";
import { Crew } from "./crew.ts";
import { findDocuments } from "./documents.ts";
import { idOf, queuesOf } from "./job.ts";
import { Screen } from "./screen.ts";
import { SearchIndex } from "./search-index.ts";
import { type Check, verifyImport } from "./verify.ts";

/** What of this repository is imported when no folder is named. */
const OWN_PARTS = ["README.md", "CONTRIBUTING.md", "docs", "src"];
/** With fewer documents the middle of the work is also its begin or end. */
const FEWEST_DOCUMENTS = 4;
/** How long the import takes longer so that people can watch, in milliseconds, unless `--pace` says otherwise. */
const WATCHING_MS = 2_500;
/** Which part of the work is done, more or less, when one worker is killed. */
const KILL_AT = 0.4;
/** An import that takes longer has failed, in milliseconds. */
const TIMEOUT_MS = 300_000;
/** Words that are searched for, those that are found first, and how much is shown of what is found. */
const WORDS = ["snapshot", "receipt", "lease", "recovery", "import", "license", "error", "the"];
const SHOWN_WORDS = 3;
const SHOWN_HITS = 3;

const { values, positionals } = parseArgs({ allowPositionals: true, options: { pace: { type: "string" }, keep: { type: "boolean" } } });
const repository = join(dirname(fileURLToPath(import.meta.url)), "..", "..");
const folder = resolve(positionals[0] ?? repository);
const place = mkdtempSync(join(tmpdir(), "queuefs-import-"));
const screen = new Screen(process.stdout);
const ending = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => ending.abort(new Error(`ended by ${signal}`)));

try {
  process.exitCode = (await runImport()) ? 0 : 1;
} catch (error) {
  screen.clear();
  console.error(`the import failed: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
} finally {
  if (values.keep === true) screen.line(`\nKept in ${place}; look with: npx queuefs --store sqlite:${join(place, "queues.db")} status`);
  else rmSync(place, { recursive: true, force: true });
}

async function runImport(): Promise<boolean> {
  const { documents, skipped } = findDocuments(folder, folder === repository ? OWN_PARTS : undefined);
  if (documents.length < FEWEST_DOCUMENTS) {
    throw new Error(`${folder} has ${documents.length} documents; the import needs at least ${FEWEST_DOCUMENTS}, choose another folder`);
  }
  const paceMs = values.pace === undefined ? Math.floor((2 * WATCHING_MS) / documents.length) : Number(values.pace);
  if (!Number.isInteger(paceMs) || paceMs < 0) throw new Error(`--pace takes whole milliseconds, got ${values.pace}`);
  screen.line(`Importing ${documents.length} documents of ${folder}${skipped > 0 ? ` (${skipped} other files are not text)` : ""}`);
  screen.line(`  through   import/parse (read, split), then import/index (make searchable), in a fresh SQLite store`);
  screen.line(`  by        2 worker processes, each step slowed down by ${paceMs} ms so that you can watch (--pace 0: full speed)`);
  screen.line();

  const location = `sqlite:${join(place, "queues.db")}`;
  const store = await openStore(location);
  const searchIndex = new SearchIndex(join(place, "index.db"));
  const crew = new Crew(store, { store: location, folder, index: join(place, "index.db"), paceMs }, screen, (error) => ending.abort(error));
  try {
    const { parse, index } = queuesOf(store);
    await index.ensure();
    const ids = await parse.enqueueMany(
      documents.map((document) => ({ document })),
      ({ document }) => ({ id: idOf(document) }),
    );
    screen.event(`${new Set(ids).size} documents enqueued into import/parse`);
    // One of two workers does at least half of the steps, so one of them comes to this one.
    await crew.start(2, Math.ceil(documents.length * KILL_AT));

    const watched = [parse.name, index.name];
    const seen = { snapshots: 0, nonePending: 0 };
    const total = documents.length * watched.length;
    const onProgress = (statuses: readonly QueueStatus[]): void => {
      const done = total - stepsLeft(statuses);
      seen.snapshots += 1;
      if (done < total && statuses.every(({ pending }) => pending === 0)) seen.nonePending += 1;
      screen.show(statuses, { done, total }, done === total);
    };
    const final = await waitComplete(store, { queues: watched }, { timeoutMs: TIMEOUT_MS, signal: ending.signal, onProgress });
    screen.clear();
    screen.event("complete: one snapshot of both queues says that nothing is pending and nothing in processing");
    await crew.end();

    const statistics = new Map<QueueName, Statistics>();
    for (const queue of watched) statistics.set(queue, await store.statistics(queue));
    const checks = [...verifyImport({ folder, documents, index: searchIndex, statistics }), crew.checkKilled()];
    printProof(checks, seen);
    printSearches(searchIndex);
    printStatus(final, checks);
    return checks.every(({ passed }) => passed);
  } finally {
    await crew.kill();
    searchIndex.close();
    await store.close();
  }
}

/** Steps that are not done, by one snapshot: a message of the first queue has two before it, one of the second queue the last. */
function stepsLeft(statuses: readonly QueueStatus[]): number {
  return statuses.reduce((sum, { pending, processing }, position) => sum + (pending + processing) * (statuses.length - position), 0);
}

function printProof(checks: readonly Check[], seen: { readonly snapshots: number; readonly nonePending: number }): void {
  screen.line("\nProof");
  for (const { passed, text } of checks) screen.line(`  ${passed ? "ok  " : "FAIL"}  ${text}`);
  if (seen.nonePending === 0) return;
  screen.line(`  note  ${seen.nonePending} of the ${seen.snapshots} snapshots had nothing pending while work was in hand:`);
  screen.line("        who counts pending alone says done too early");
}

function printSearches(index: SearchIndex): void {
  screen.line("\nSearch");
  const found = WORDS.map((word) => ({ word, hits: index.search(word) })).filter(({ hits }) => hits.length > 0);
  for (const { word, hits } of found.slice(0, SHOWN_WORDS)) {
    const shown = hits.slice(0, SHOWN_HITS);
    const width = Math.max(...shown.map(({ document }) => document.length));
    screen.line(`  "${word}" is in ${hits.length} ${hits.length === 1 ? "document" : "documents"}`);
    for (const { document, excerpt } of shown) screen.line(`    ${document.padEnd(width)}  ${excerpt}`);
  }
}

function printStatus(final: readonly QueueStatus[], checks: readonly Check[]): void {
  screen.line("\nFinal status");
  for (const { queue, pending, processing } of final) screen.line(`  ${queue.padEnd(14)} ${JSON.stringify({ pending, processing })}`);
  const failed = checks.filter(({ passed }) => !passed).length;
  screen.line(failed === 0 ? `\nNothing was lost. ${screen.seconds} in all.` : `\n${failed} of ${checks.length} checks FAILED.`);
}
