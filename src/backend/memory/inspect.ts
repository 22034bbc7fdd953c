/** Looking over a whole memory store: what can be counted anew is compared with what is counted along. */

import type { Finding } from "../../core/message.ts";
import { deadWeight } from "./dead-letters.ts";
import { DELAYED, DUE, PROCESSING, WAITING, WITHDRAWN } from "./entry.ts";
import type { QueueState } from "./queue-state.ts";
import type { MemoryStore } from "./store.ts";
import type { TaskState } from "./task-state.ts";
import type { Bounds } from "./totals.ts";

/** The share of a bound from which on a warning is given. */
const NEARLY_FULL = 0.9;

/** All findings, good ones included. Costs the size of the store. */
export function inspectStore(store: MemoryStore, bounds: Bounds): Finding[] {
  const findings: Finding[] = [
    {
      severity: "warning",
      check: "durability",
      message: "a memory store ends with its process; for messages that must survive, open a sqlite: or redis: store",
    },
  ];
  const faults: string[] = [];
  let messages = 0;
  let bytes = 0;
  let remembered = 0;
  for (const queue of store.queues.values()) {
    faults.push(...faultsOf(queue));
    messages += queue.pending + queue.processing.size + queue.dead.size;
    bytes += queue.weight + queue.dead.weight;
    remembered += queue.ids.size + queue.answers.size;
  }
  const { totals } = store.resources;
  if (totals.messages !== messages || totals.bytes !== bytes || totals.remembered !== remembered) {
    faults.push(
      `the sums of the store (${totals.messages}, ${totals.bytes}, ${totals.remembered}) are not those of its queues (${messages}, ${bytes}, ${remembered})`,
    );
  }
  findings.push(
    faults.length === 0
      ? {
          severity: "ok",
          check: "counters",
          message: `the counters of ${store.queues.size} queues and the store agree with their ${messages} messages`,
        }
      : { severity: "error", check: "counters", message: `${faults.slice(0, 10).join("; ")}; this is a bug of QueueFS, please report it` },
  );
  findings.push(inspectTasks(store));
  findings.push(
    fullness("message-limit", "maxMessages", totals.messages, bounds.maxMessages),
    fullness("byte-limit", "maxBytes", totals.bytes, bounds.maxBytes),
    fullness("remember-limit", "maxRemembered", totals.remembered, bounds.maxRemembered),
    fullness("queue-limit", "maxQueues", store.queues.size, bounds.maxQueues),
    fullness("task-limit", "maxTasks", store.resources.tasks.byId.size, bounds.maxTasks),
  );
  return findings;
}

function fullness(check: string, option: string, used: number, bound: number): Finding {
  const message = `${used} of ${bound} (${option})`;
  if (used <= bound * NEARLY_FULL) return { severity: "ok", check, message };
  return {
    severity: "warning",
    check,
    message: `${message}: calls that need more will be refused as store-full; drain the store, or raise the option`,
  };
}

/** Whether each task counts as unacked what its queues hold of it, and has ended if it should have. */
function inspectTasks(store: MemoryStore): Finding {
  const unacked = new Map<TaskState, number>();
  for (const queue of store.queues.values()) {
    for (const { task, count } of queue.owners) unacked.set(task, (unacked.get(task) ?? 0) + count);
  }
  const { byId } = store.resources.tasks;
  for (const task of byId.values()) {
    const found = unacked.get(task) ?? 0;
    if (found !== task.unacked || task.verdict() !== undefined || (task.ended !== undefined && found > 0)) {
      const message = `task "${task.id}" (${task.status}) counts ${task.unacked} unacked messages, its queues ${found}; this is a bug of QueueFS, please report it`;
      return { severity: "error", check: "tasks", message };
    }
  }
  return { severity: "ok", check: "tasks", message: `the counts of ${byId.size} tasks agree with their messages` };
}

/** Where the counters of a queue and a walk over its messages differ. */
function faultsOf(queue: QueueState): string[] {
  const counts = { [WAITING]: 0, [DELAYED]: 0, [DUE]: 0, [PROCESSING]: 0, [WITHDRAWN]: 0 };
  const owned = new Map<TaskState, number>();
  let weight = 0;
  let last = 0;
  const faults: string[] = [];
  const expect = (what: string, counted: number, found: number): void => {
    if (counted !== found) faults.push(`queue ${JSON.stringify(queue.name)}: ${counted} ${what} are counted, ${found} were found`);
  };
  queue.visit(0, (entry) => {
    counts[entry.state] += 1;
    const task = entry.owner?.task;
    if (task !== undefined) owned.set(task, (owned.get(task) ?? 0) + 1);
    weight += entry.weight;
    if (entry.place <= last || entry.place > queue.lastPlace)
      faults.push(`queue ${JSON.stringify(queue.name)}: place ${entry.place} is out of order`);
    if (entry.state === PROCESSING && (entry.receipt === undefined || queue.processing.find(entry.receipt) !== entry)) {
      faults.push(`queue ${JSON.stringify(queue.name)}: the message at place ${entry.place} is in processing without a delivery`);
    }
    last = entry.place;
    return true;
  });
  expect("waiting messages", queue.backlog.waiting, counts[WAITING]);
  expect("delayed messages", queue.delays.size, counts[DELAYED]);
  expect("due messages", queue.due.size, counts[DUE]);
  expect("messages in processing", queue.processing.size, counts[PROCESSING]);
  expect("bytes", queue.weight, weight);
  expect("withdrawn messages", 0, counts[WITHDRAWN]);
  expect("tasks", queue.owners.size, owned.size);
  for (const [task, count] of owned) expect(`messages of task ${task.id}`, queue.owners.count(task), count);
  let dead = 0;
  let deadBytes = 0;
  queue.dead.visit(0, (record) => {
    dead += 1;
    deadBytes += deadWeight(record);
    return true;
  });
  expect("dead letters", queue.dead.size, dead);
  expect("bytes of dead letters", queue.dead.weight, deadBytes);
  return faults;
}
