/** The result of the import: a full-text index (SQLite FTS5) in a file of its own. Storing a document twice leaves one result. */

import Database from "better-sqlite3";
import { wordsOf } from "./documents.ts";
import type { IndexJob } from "./job.ts";

/** What is stored of one document. */
export interface StoredDocument {
  readonly document: string;
  readonly checksum: string;
  readonly sections: number;
  readonly words: number;
}

/** One document that holds a word. */
export interface Hit {
  readonly document: string;
  /** The section that fits best. */
  readonly section: string;
  /** Its words around the one that was searched for. */
  readonly excerpt: string;
}

/** The search index in one file, which several processes may have open. */
export class SearchIndex {
  readonly #database: Database.Database;

  /** Opens the index, making the file if it is missing. */
  constructor(path: string) {
    this.#database = new Database(path, { timeout: 10_000 });
    this.#database.pragma("journal_mode = WAL");
    // A message is acked once its result is stored, so the result has to be as safe as the ack.
    this.#database.pragma("synchronous = FULL");
    this.#database.exec(`
      CREATE TABLE IF NOT EXISTS document (
        id TEXT PRIMARY KEY, path TEXT NOT NULL, checksum TEXT NOT NULL, sections INTEGER NOT NULL, words INTEGER NOT NULL
      ) STRICT;
      CREATE VIRTUAL TABLE IF NOT EXISTS section USING fts5 (id UNINDEXED, path UNINDEXED, title, text);
    `);
  }

  /**
   * Stores a document in place of what an earlier delivery of the same message has stored.
   *
   * @param id of the message: the same for every delivery of it
   */
  store(id: string, job: IndexJob): void {
    const words = job.sections.reduce((sum, section) => sum + wordsOf(section.text).length, 0);
    const replace = this.#database.transaction(() => {
      const { changes } = this.#database.prepare("DELETE FROM document WHERE id = ?").run(id);
      if (changes > 0) this.#database.prepare("DELETE FROM section WHERE id = ?").run(id);
      this.#database.prepare("INSERT INTO document VALUES (?, ?, ?, ?, ?)").run(id, job.document, job.checksum, job.sections.length, words);
      const insert = this.#database.prepare("INSERT INTO section (id, path, title, text) VALUES (?, ?, ?, ?)");
      for (const section of job.sections) insert.run(id, job.document, section.title, section.text);
    });
    replace.immediate();
  }

  /** All results, by path. */
  documents(): StoredDocument[] {
    const rows = this.#database.prepare("SELECT path AS document, checksum, sections, words FROM document ORDER BY path");
    return rows.all() as StoredDocument[];
  }

  /** How many sections can be searched. */
  sectionCount(): number {
    return this.#database.prepare("SELECT count(*) FROM section").pluck().get() as number;
  }

  /** The documents that hold a word, the best first, each with its best section. */
  search(word: string): Hit[] {
    const rows = this.#database
      .prepare(
        "SELECT path AS document, title AS section, snippet(section, 3, '[', ']', '…', 8) AS excerpt FROM section WHERE text MATCH ? ORDER BY rank",
      )
      .all(quoted(word)) as Hit[];
    const best = new Map<string, Hit>();
    for (const row of rows) if (!best.has(row.document)) best.set(row.document, { ...row, excerpt: row.excerpt.replace(/\s+/g, " ") });
    return [...best.values()];
  }

  /** Whether a document holds a word. */
  holds(document: string, word: string): boolean {
    const row = this.#database.prepare("SELECT 1 FROM section WHERE text MATCH ? AND path = ? LIMIT 1").get(quoted(word), document);
    return row !== undefined;
  }

  /** Closes the file. */
  close(): void {
    this.#database.close();
  }
}

/** A word as FTS5 takes it, whatever characters it has. */
function quoted(word: string): string {
  return `"${word.replaceAll('"', '""')}"`;
}
