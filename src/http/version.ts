/** The version of the package. */

import { readFileSync } from "node:fs";

/** The version of the package that this module is part of. */
export function packageVersion(): string {
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return String((JSON.parse(text) as { readonly version: unknown }).version);
}
