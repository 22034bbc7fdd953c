/** Directories: queues, and the plain directories above them that exist because queues lie under them. */

import type { Backend } from "../backend/contract.ts";
import { QueueFSError, quote } from "../core/errors.ts";
import { MAX_PAGE_ITEMS } from "../core/limits.ts";
import { compareNames, type QueueName } from "../core/names.ts";

/** What a directory is. */
export type DirectoryRole = "directory" | "queue";

/** The greatest character there is: sorts after nearly all names that begin with what stands before it. */
const GREATEST = "\u{10ffff}";

/** The error for a directory that does not exist. */
export function directoryNotFound(shown: string): QueueFSError {
  return new QueueFSError(
    "queue-not-found",
    `${quote(shown)} not found: there is no queue and no directory of that name; create the queue first (mkdir)`,
  );
}

/** What `name` is, or `undefined` when there is nothing. */
export async function roleOf(backend: Backend, name: QueueName): Promise<DirectoryRole | undefined> {
  // A queue comes before all that lies under it.
  const { items } = await backend.listQueues({ under: name, limit: 1 });
  if (items[0] === undefined) return undefined;
  return items[0] === name ? "queue" : "directory";
}

/** The directories in `name` (`""` for the root), by name, and what `name` itself is; `undefined` when there is nothing. */
export async function listDirectory(
  backend: Backend,
  name: QueueName | "",
): Promise<{ readonly role: DirectoryRole; readonly children: readonly (readonly [string, DirectoryRole])[] } | undefined> {
  const prefix = name === "" ? "" : `${name}/`;
  const children = new Map<string, DirectoryRole>();
  let role: DirectoryRole | undefined = name === "" ? "directory" : undefined;
  let after: string | undefined;
  do {
    const page = await backend.listQueues({ under: name, limit: MAX_PAGE_ITEMS, ...(after === undefined ? {} : { after }) });
    // The child under which the last queue of the page lies, if any.
    let within: string | undefined;
    for (const queue of page.items) {
      role ??= queue === name ? "queue" : "directory";
      within = undefined;
      if (queue === name) continue;
      const rest = queue.slice(prefix.length);
      const slash = rest.indexOf("/");
      if (slash < 0) {
        children.set(rest, "queue");
        continue;
      }
      within = rest.slice(0, slash);
      if (!children.has(within)) children.set(within, "directory");
    }
    after = page.next === undefined ? undefined : furthest(page.next, page.items.at(-1), within && `${prefix}${within}/${GREATEST}`);
  } while (after !== undefined);
  if (role === undefined) return undefined;
  return { role, children: [...children].sort(([left], [right]) => compareNames(left, right)) };
}

/** Where to go on: past all that lies under the same child, if the listing has not got further by itself. */
function furthest(next: string, last: string | undefined, pastChild: string | undefined): string {
  return last !== undefined && pastChild !== undefined && compareNames(pastChild, last) > 0 ? pastChild : next;
}
