/** The documents of a folder: which files they are, and what sections and words are in one. */

import { isUtf8 } from "node:buffer";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join, relative, sep } from "node:path";

/** Folders that hold nothing that somebody wrote. */
const SKIPPED_FOLDERS = new Set(["node_modules", "dist", "coverage", "test-results"]);
/** Larger files are data rather than documents: 1 MiB. */
const MAX_DOCUMENT_BYTES = 1024 * 1024;
/** Why a document is given up on whose bytes are no text. */
export const NOT_TEXT = "its bytes are not valid UTF-8";
/** Lines of a section where a file has no headings. */
const SECTION_LINES = 80;
const HEADING = /^#{1,6}\s+(.+)$/;
const WORD = /[\p{L}\p{N}]+/gu;

/** One part of a document. */
export interface Section {
  readonly title: string;
  readonly text: string;
}

/** What was found in a folder. */
export interface Folder {
  /** Paths relative to the folder, with `/`, in order. */
  readonly documents: readonly string[];
  /** How many files are no documents: too large, or not text. */
  readonly skipped: number;
}

/**
 * Finds the documents under a folder. Names that start with a dot, and folders of built files, are left out.
 *
 * @param parts the files and folders directly in it that count; all if absent
 */
export function findDocuments(folder: string, parts?: readonly string[]): Folder {
  const documents: string[] = [];
  let skipped = 0;
  const visit = (directory: string, names: readonly string[] | undefined): void => {
    for (const entry of readdirSync(directory, { withFileTypes: true })) {
      const path = join(directory, entry.name);
      if (entry.name.startsWith(".") || (names !== undefined && !names.includes(entry.name))) continue;
      if (entry.isDirectory() && !SKIPPED_FOLDERS.has(entry.name)) visit(path, undefined);
      else if (entry.isFile() && isDocument(path)) documents.push(relative(folder, path).split(sep).join("/"));
      else if (entry.isFile()) skipped += 1;
    }
  };
  visit(folder, parts);
  return { documents: documents.sort(), skipped };
}

function isDocument(path: string): boolean {
  if (statSync(path).size > MAX_DOCUMENT_BYTES) return false;
  const bytes = readFileSync(path);
  return isUtf8(bytes) && !bytes.includes(0);
}

/** The SHA-256 of a file's bytes, in hexadecimal. */
export function checksumOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** The words of a text, in order, in lower case. */
export function wordsOf(text: string): string[] {
  return text.toLowerCase().match(WORD) ?? [];
}

/** Splits a document: at its headings where it is Markdown, every so many lines otherwise. Empty text has no section. */
export function sectionsOf(document: string, text: string): Section[] {
  const sections: { title: string; lines: string[] }[] = [];
  const isMarkdown = document.endsWith(".md");
  for (const [index, line] of text.split("\n").entries()) {
    const heading = isMarkdown ? HEADING.exec(line)?.[1] : undefined;
    const isDue = isMarkdown ? heading !== undefined : index % SECTION_LINES === 0;
    if (isDue || sections.length === 0) sections.push({ title: heading ?? `line ${index + 1}`, lines: [] });
    sections.at(-1)?.lines.push(line);
  }
  return sections.map(({ title, lines }) => ({ title, text: lines.join("\n") })).filter((section) => section.text.trim() !== "");
}
