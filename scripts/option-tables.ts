/** Finds every option table of the sources, so that documentation and tests cannot overlook one. */

import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { OptionTable } from "../src/core/options.ts";

const sources = join(dirname(fileURLToPath(import.meta.url)), "..", "src");

/** One option table. */
export interface FoundTable {
  /** The name of the exported constant, such as `DEQUEUE_OPTIONS`. */
  readonly name: string;
  /** Where it stands, relative to the repository. */
  readonly file: string;
  /** Whose options they are, from the constant's doc comment. */
  readonly title: string;
  readonly table: OptionTable;
}

/**
 * All constants that say `satisfies OptionTable`, in the order of their files.
 *
 * @throws Error when one is not exported or has no doc comment "… , as a table."
 */
export async function findOptionTables(): Promise<FoundTable[]> {
  const found: FoundTable[] = [];
  const files = readdirSync(sources, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));
  for (const file of files.sort()) {
    const path = join(sources, file);
    const text = readFileSync(path, "utf8");
    const promised = text.match(/\bsatisfies OptionTable\b/g)?.length ?? 0;
    if (promised === 0) continue;
    const heads = [
      ...text.matchAll(
        /^\/\*\* (.+), as a table\. \*\/\nexport const (\w+) = \{(?:(?!\nexport )[\s\S])*?\} as const satisfies OptionTable;$/gm,
      ),
    ];
    if (heads.length !== promised) {
      throw new Error(
        `src/${file}: ${promised} option tables, but ${heads.length} exported ones with a doc comment "/** Options of …, as a table. */"`,
      );
    }
    const module = (await import(pathToFileURL(path).href)) as Record<string, OptionTable>;
    for (const [, title, name] of heads as unknown as [string, string, string][]) {
      const shownTitle = title.replace(/\{@link ([\w.]+)\}/g, "`$1`");
      found.push({ name, file: relative(join(sources, ".."), path), title: shownTitle, table: module[name] as OptionTable });
    }
  }
  return found;
}
