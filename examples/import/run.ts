/**
 * Imports a folder of documents as one task through two queues: `import/parse` reads and splits, `import/index` makes searchable. Two worker
 * processes do the work; one of them is killed in the middle of a step. This process makes the task, waits for its end, and proves that nothing
 * was lost. Then it imports a few documents once more, with one that is broken, and proves that this task fails, and names that document.
 *
 *     npm run demo                                    the documents and sources of this repository
 *     npm run demo -- FOLDER [--pace MS] [--keep]
 *
 * Exit code 0: every document is imported and the broken one is reported, and that is proven. 1: it is not, and the output says why.
 */

import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { type Backend, openStore, Tasks } from "../../src/index.ts";
import { findDocuments, NOT_TEXT } from "./documents.ts";
import { type Imported, importFolder } from "./import-folder.ts";
import type { ParseJob } from "./job.ts";
import { Screen } from "./screen.ts";
import { SearchIndex } from "./search-index.ts";
import { type Check, verifyImport, verifyResults } from "./verify.ts";
import { checkCompleted, checkFailed, type Failure } from "./verify-task.ts";

/** What of this repository is imported when no folder is named. */
const OWN_PARTS = ["README.md", "CONTRIBUTING.md", "docs", "src"];
/** With fewer documents the middle of the work is also its begin or end. */
const FEWEST_DOCUMENTS = 4;
/** How long the import takes longer so that people can watch, in milliseconds, unless `--pace` says otherwise. */
const WATCHING_MS = 2_500;
/** Which part of the work is done, more or less, when one worker is killed. */
const KILL_AT = 0.4;
/** How many documents are imported once more, beside the broken one. */
const SECOND_DOCUMENTS = 8;
/** The broken document: a file that ends in the middle of a character. */
const BROKEN_DOCUMENT = "cut-off.md";
const BROKEN_BYTES = Buffer.from("# Entrée").subarray(0, "# Entr".length + 1);
/** Words that are searched for, those that are found first, and how much is shown of what is found. */
const WORDS = ["snapshot", "receipt", "lease", "recovery", "import", "license", "error", "the"];
const SHOWN_WORDS = 3;
const SHOWN_HITS = 3;

const { values, positionals } = parseArgs({ allowPositionals: true, options: { pace: { type: "string" }, keep: { type: "boolean" } } });
const repository = join(dirname(fileURLToPath(import.meta.url)), "..", "..");
const folder = resolve(positionals[0] ?? repository);
const place = mkdtempSync(join(tmpdir(), "queuefs-import-"));
const location = `sqlite:${join(place, "queues.db")}`;
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
  if (values.keep === true) screen.line(`\nKept in ${place}; look with: npx queuefs --store ${location} status`);
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
  screen.line("  as        one task, in a fresh SQLite store");
  screen.line("  through   import/parse (read, split), then import/index (make searchable)");
  screen.line(`  by        2 worker processes, each step slowed down by ${paceMs} ms so that you can watch (--pace 0: full speed)`);
  screen.line();

  const store = await openStore(location);
  try {
    const first = await importAll(store, documents, paceMs);
    const second = await importBroken(store, documents.filter((name) => name !== BROKEN_DOCUMENT).slice(0, SECOND_DOCUMENTS));
    const checks = [...first.checks, ...second.checks];
    printStatus([first.imported, second.imported], checks);
    return checks.every(({ passed }) => passed);
  } finally {
    await store.close();
  }
}

/** What was imported, and what is proven of it. */
interface Proven {
  readonly imported: Imported;
  readonly checks: readonly Check[];
}

/** Imports all documents, one worker being killed on the way. */
async function importAll(store: Backend, documents: readonly string[], paceMs: number): Promise<Proven> {
  const index = join(place, "index.db");
  const searchIndex = new SearchIndex(index);
  try {
    const workers = { store: location, folder, index, paceMs };
    // One of two workers does at least half of the steps, so one of them comes to this one.
    const killAtStep = Math.ceil(documents.length * KILL_AT);
    const imported = await importFolder({ store, documents, workers, killAtStep, screen, ending });
    const { task, statistics, moment, killed, seen } = imported;
    const results = verifyImport({ folder, documents, index: searchIndex, statistics });
    const checks = [checkCompleted(task, documents.length), moment, ...results, killed];
    printProof(checks);
    if (seen.nonePending > 0) {
      screen.line(`  note  ${seen.nonePending} of the ${seen.snapshots} snapshots had nothing pending while work was in hand:`);
      screen.line("        who counts pending alone says done too early");
    }
    printSearches(searchIndex);
    return { imported, checks };
  } finally {
    searchIndex.close();
  }
}

/** Imports some documents and a broken one: the task fails and says why, and everything else is done. */
async function importBroken(store: Backend, documents: readonly string[]): Promise<Proven> {
  const copies = join(place, "documents");
  for (const document of documents) {
    mkdirSync(dirname(join(copies, document)), { recursive: true });
    copyFileSync(join(folder, document), join(copies, document));
  }
  writeFileSync(join(copies, BROKEN_DOCUMENT), BROKEN_BYTES);
  screen.line(`\nOnce more, ${documents.length} documents and a broken one: ${BROKEN_DOCUMENT} ends in the middle of a character`);
  const index = join(place, "second-index.db");
  const searchIndex = new SearchIndex(index);
  try {
    const workers = { store: location, folder: copies, index, paceMs: 0 };
    const imported = await importFolder({ store, documents: [...documents, BROKEN_DOCUMENT], workers, screen, ending });
    const { task, moment } = imported;
    const failures: Failure[] = [];
    for await (const { data, reason } of new Tasks(store).failures(task.id)) {
      const { document } = JSON.parse(Buffer.from(data).toString()) as ParseJob;
      failures.push({ document, reason });
    }
    const broken = { document: BROKEN_DOCUMENT, reason: NOT_TEXT };
    const results = verifyResults({ folder: copies, documents, index: searchIndex });
    const checks = [...checkFailed(task, failures, broken, documents.length), moment, ...results];
    printProof(checks);
    screen.line("  note  once the document is whole again, tasks.retry(id) imports it alone, as a new task");
    return { imported, checks };
  } finally {
    searchIndex.close();
  }
}

function printProof(checks: readonly Check[]): void {
  screen.line("\nProof");
  for (const { passed, text } of checks) screen.line(`  ${passed ? "ok  " : "FAIL"}  ${text}`);
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

function printStatus(imports: readonly Imported[], checks: readonly Check[]): void {
  screen.line("\nFinal status");
  for (const { queue, pending, processing } of imports.at(-1)?.final ?? []) {
    screen.line(`  ${queue.padEnd(14)} ${JSON.stringify({ pending, processing })}`);
  }
  for (const { task } of imports)
    screen.line(`  task ${task.id}  ${task.status.padEnd(9)}  ${task.progress.done} done, ${task.progress.failed} failed`);
  const failed = checks.filter(({ passed }) => !passed).length;
  screen.line(failed === 0 ? `\nNothing was lost. ${screen.seconds} in all.` : `\n${failed} of ${checks.length} checks FAILED.`);
}
