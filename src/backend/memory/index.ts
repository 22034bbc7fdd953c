/**
 * The memory backend: the whole life cycle without a server or a file, for tests and for work that may end with the process. It does
 * not survive the process, and says so ({@link BackendDescription.durable} is false).
 */

import type { Backend } from "../contract.ts";
import { MemoryBackend } from "./backend.ts";
import { type MemoryOptions, readMemoryOptions } from "./options.ts";

export { MEMORY_OPTIONS, type MemoryOptions } from "./options.ts";
export { MemoryStore } from "./store.ts";

/**
 * Opens a memory store: a new one, or a client of one that is there. It recovers ended leases now and from then on, until it is closed.
 *
 * @throws QueueFSError `invalid-argument`
 */
export async function openMemory(options?: MemoryOptions): Promise<Backend> {
  const backend = new MemoryBackend(readMemoryOptions(options));
  await backend.recover();
  return backend;
}
