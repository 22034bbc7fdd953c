/** A program that does nothing but wait, for wait.test.ts. */

import { openMemory } from "../../../src/backend/memory/index.ts";
import { isQueueFSError } from "../../../src/core/errors.ts";
import { parseQueueName } from "../../../src/core/names.ts";
import { waitComplete } from "../../../src/queue/index.ts";

const backend = await openMemory();
const queue = parseQueueName("q");
await backend.createQueue(queue);
await backend.enqueue(queue, [{ data: new Uint8Array(1) }]);
try {
  await waitComplete(backend, { queues: [queue] }, { timeoutMs: 100 });
} catch (error) {
  process.stdout.write(`${isQueueFSError(error) ? error.code : String(error)}\n`);
}
