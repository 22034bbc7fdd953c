/** The proof that nothing was lost: what lies in the folder, read once more, against what the import has left behind. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Statistics } from "../../src/index.ts";
import { checksumOf, sectionsOf, wordsOf } from "./documents.ts";
import type { SearchIndex } from "./search-index.ts";

/** One thing that was checked. */
export interface Check {
  readonly passed: boolean;
  /** What holds, or what is wrong, as people read it. */
  readonly text: string;
}

/** What was to be imported, and what came of it. */
export interface Results {
  readonly folder: string;
  /** The documents that were to be imported. */
  readonly documents: readonly string[];
  readonly index: Pick<SearchIndex, "documents" | "sectionCount" | "holds">;
}

/** What is to be checked of an import that had its queues to itself. */
export interface Outcome extends Results {
  /** The statistics of each queue, by its name. */
  readonly statistics: ReadonlyMap<string, Statistics>;
}

/** Wrong entries that are named; more are counted. */
const NAMED = 3;

/** Compares inputs and results. The import is proven when every check has passed. */
export function verifyImport(outcome: Outcome): Check[] {
  return [...verifyResults(outcome), checkQueues(outcome)];
}

/** Compares inputs and results, whatever else went through the queues. */
export function verifyResults(outcome: Results): Check[] {
  const inputs = readInputs(outcome);
  return [checkResults(outcome, inputs), checkContents(outcome, inputs), checkSearches(outcome, inputs)];
}

/** What a document holds, told by the file itself. */
interface Input {
  readonly checksum: string;
  readonly sections: number;
  readonly words: number;
  /** The word that the fewest documents have; absent when there is none to search for. */
  readonly rarest?: string;
}

function readInputs({ folder, documents }: Results): Map<string, Input> {
  const texts = documents.map((document) => {
    const bytes = readFileSync(join(folder, document));
    const sections = sectionsOf(document, bytes.toString("utf8"));
    return { document, checksum: checksumOf(bytes), sections: sections.length, words: sections.flatMap(({ text }) => wordsOf(text)) };
  });
  const frequency = new Map<string, number>();
  for (const { words } of texts) for (const word of new Set(words)) frequency.set(word, (frequency.get(word) ?? 0) + 1);
  return new Map(
    texts.map(({ document, checksum, sections, words }) => {
      // Plain letters only: what else counts as a part of a word is a matter of the search engine.
      const candidates = words.filter((word) => /^[a-z]{3,}$/.test(word));
      const rarest = candidates.reduce<string | undefined>(
        (best, word) => (best === undefined || (frequency.get(word) ?? 0) < (frequency.get(best) ?? 0) ? word : best),
        undefined,
      );
      return [document, { checksum, sections, words: words.length, ...(rarest === undefined ? {} : { rarest }) }];
    }),
  );
}

function checkResults({ documents, index }: Results, inputs: ReadonlyMap<string, Input>): Check {
  const counts = new Map<string, number>();
  for (const { document } of index.documents()) counts.set(document, (counts.get(document) ?? 0) + 1);
  const missing = documents.filter((document) => !counts.has(document));
  const strange = [...counts.keys()].filter((document) => !inputs.has(document));
  const twice = [...counts].filter(([, count]) => count > 1).map(([document]) => document);
  const faults = [...named("no result", missing), ...named("result without a document", strange), ...named("more than one result", twice)];
  return check(faults, `${documents.length} documents, ${counts.size} results: one for each`);
}

function checkContents({ index }: Results, inputs: ReadonlyMap<string, Input>): Check {
  const stored = index.documents();
  const differs = stored.filter((result) => {
    const input = inputs.get(result.document);
    return (
      input !== undefined && (input.checksum !== result.checksum || input.sections !== result.sections || input.words !== result.words)
    );
  });
  const sections = stored.reduce((sum, result) => sum + result.sections, 0);
  const words = stored.reduce((sum, result) => sum + result.words, 0);
  const faults = named(
    "not what the file holds",
    differs.map(({ document }) => document),
  );
  if (index.sectionCount() !== sections) faults.push(`${index.sectionCount()} sections can be searched, not ${sections}`);
  return check(faults, `each has the checksum, the sections and the words of its file (${sections} sections, ${words} words)`);
}

function checkSearches({ index }: Results, inputs: ReadonlyMap<string, Input>): Check {
  const searched = [...inputs].flatMap(([document, { rarest }]) => (rarest === undefined ? [] : [{ document, word: rarest }]));
  const unfound = searched
    .filter(({ document, word }) => !index.holds(document, word))
    .map(({ document, word }) => `${document} ("${word}")`);
  const faults = named("not found by its own word", unfound);
  if (searched.length === 0) faults.push("no document has a word to search for");
  return check(faults, `each is found by its rarest word (${searched.length} searches)`);
}

function checkQueues({ documents, statistics }: Outcome): Check {
  const faults = [...statistics].flatMap(([queue, counts]) => {
    const { pending, processing, enqueued, acked, dead } = counts;
    const isGood = pending === 0 && processing === 0 && dead === 0 && enqueued === documents.length && acked === documents.length;
    return isGood
      ? []
      : [`${queue}: ${enqueued} enqueued, ${acked} acked, ${pending} pending, ${processing} processing, ${dead} dead letters`];
  });
  if (statistics.size === 0) faults.push("no queue was looked at");
  return check(
    faults,
    `each queue took ${documents.length} messages and saw ${documents.length} acks; none is left, none is a dead letter`,
  );
}

function named(what: string, documents: readonly string[]): string[] {
  if (documents.length === 0) return [];
  const more = documents.length > NAMED ? ` and ${documents.length - NAMED} more` : "";
  return [`${what}: ${documents.slice(0, NAMED).join(", ")}${more}`];
}

function check(faults: readonly string[], good: string): Check {
  return faults.length === 0 ? { passed: true, text: good } : { passed: false, text: faults.join("; ") };
}
