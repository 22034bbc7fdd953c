/** Loading the packages of bench/peers, which need not be installed. */

import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const folder = dirname(fileURLToPath(import.meta.url));

/** Loads a package of bench/peers, or answers `undefined` when it is not installed. The caller says what of it it uses. */
export async function loadPeer(name: string): Promise<unknown> {
  if (!existsSync(join(folder, "node_modules", name))) return undefined;
  const require = createRequire(join(folder, "package.json"));
  return import(pathToFileURL(require.resolve(name)).href);
}

/** What to do when a package is not there. */
export const INSTALL_PEERS = "npm ci --prefix bench/peers";
