/** Which store a command works on: the option, the environment, or a file in the user's data folder. */

import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { QueueFSError } from "../core/errors.ts";

/** The environment variable that names the store where no option does. */
export const STORE_VARIABLE = "QUEUEFS_STORE";

/** The environment variable with the token for a QueueFS server, where its location has none; a server started with it asks for it. */
export const TOKEN_VARIABLE = "QUEUEFS_TOKEN";

/**
 * The location of the store: `--store`, else `$QUEUEFS_STORE`, else the SQLite file `queue.db` in the user's data folder, which is made,
 * for the user's eyes only, when it is missing.
 *
 * @throws QueueFSError `invalid-argument` for an option without text, as an unset variable of a shell gives it
 */
export async function storeLocation(option: string | undefined, environment: NodeJS.ProcessEnv): Promise<string> {
  if (option === "") throw new QueueFSError("invalid-argument", "--store needs a location: memory:, sqlite:FILE, redis://… or http://…");
  const named = option ?? environment[STORE_VARIABLE];
  if (named !== undefined && named !== "") return named;
  const { default: envPaths } = await import("env-paths");
  const folder = envPaths("queuefs", { suffix: "" }).data;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return `sqlite:${join(folder, "queue.db")}`;
}

/** The location of a store as it reads from any working folder. */
export function absoluteLocation(location: string): string {
  const [, scheme, path] = /^(sqlite:)(.+)$/is.exec(location) ?? [];
  return scheme === undefined || path === undefined ? location : `${scheme}${resolve(path)}`;
}

/** Whether a location is that of a QueueFS server, which may ask for a token. */
export function isServerLocation(location: string): boolean {
  return /^https?:/i.test(location);
}
