/** Makes a namespace, or finds it. */

import { assert, QueueFSError } from "../../core/errors.ts";
import type { Keys } from "./keys.ts";
import type { RedisSettings } from "./options.ts";
import { PROGRAMS } from "./programs.ts";
import { encodeKeys, type ScriptRunner } from "./script-call.ts";

/** What this program writes. A namespace of another format is refused. */
const FORMAT = "1";
/** Characters of the id of a store. */
const STORE_ID_LENGTH = 8;

/**
 * Makes a namespace, or finds it, and answers with the id of its store.
 *
 * @throws QueueFSError `store-unsuitable` when a newer program wrote it
 */
export async function openNamespace(runner: ScriptRunner, keys: Keys, settings: RedisSettings): Promise<string> {
  const { random } = settings;
  const fresh = (random.token().toString(36) + random.token().toString(36)).padStart(STORE_ID_LENGTH, "0").slice(0, STORE_ID_LENGTH);
  const reply = await runner.read(PROGRAMS.open, encodeKeys([keys.meta]), [fresh, FORMAT]);
  assert(Array.isArray(reply), "a list is answered");
  const [store, format] = reply.map(String);
  if (format !== FORMAT) {
    throw new QueueFSError(
      "store-unsuitable",
      `namespace ${settings.namespace} has format ${format}, and this version of QueueFS knows ${FORMAT}; update QueueFS, or use another namespace`,
    );
  }
  if (!/^[0-9a-z]{8}$/.test(store ?? "")) {
    throw new QueueFSError(
      "store-corrupt",
      `namespace ${settings.namespace} has the malformed store id ${store}; somebody else wrote to it: use another namespace`,
    );
  }
  return store as string;
}
