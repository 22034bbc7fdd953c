/** Real backends that are broken in one place each, as a wrong implementation would be. */

import type { Backend } from "../../../src/backend/contract.ts";
import type { AckAnswer, DeliveredMessage, NewMessage } from "../../../src/core/message.ts";
import type { QueueName, Receipt } from "../../../src/core/names.ts";
import { interpose } from "../../support/interpose.ts";
import type { Property } from "./check/promises.ts";

/** One way to be wrong. */
export interface Broken {
  readonly name: string;
  /** Properties that must be reported. */
  readonly caughtBy: readonly Property[];
  wrap(backend: Backend): Backend;
}

/** Says yes at each so-many-th time. */
function every(count: number): () => boolean {
  let calls = 0;
  return () => {
    calls += 1;
    return calls % count === 0;
  };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Messages as they were delivered, to be delivered wrongly again. */
function remembering(backend: Backend): { readonly seen: DeliveredMessage[]; readonly dequeue: Backend["dequeue"] } {
  const seen: DeliveredMessage[] = [];
  return {
    seen,
    async dequeue(queue, options) {
      const messages = await backend.dequeue(queue, options);
      seen.push(...messages);
      return messages;
    },
  };
}

/** Stores a message anew although its id is known: as if the id had been forgotten. */
function withoutIds(messages: readonly NewMessage[]): NewMessage[] {
  return messages.map(({ id: _id, ...message }) => message);
}

/** All of them. */
export const BROKEN: readonly Broken[] = [
  {
    name: "drops every 40th message",
    caughtBy: ["S1"],
    wrap(backend) {
      const isLost = every(40);
      return interpose(backend, {
        async enqueue(queue, messages) {
          const answers = await backend.enqueue(queue, messages);
          if (!isLost()) return answers;
          // Taken out behind everybody's back.
          for (const message of await backend.dequeue(queue, { limit: 1, leaseMs: 60_000 }))
            await backend.ack(queue, [{ receipt: message.receipt }]);
          return answers;
        },
      });
    },
  },
  {
    name: "delivers a message to two consumers",
    caughtBy: ["S4"],
    wrap(backend) {
      const isTwice = every(30);
      return interpose(backend, {
        async dequeue(queue, options) {
          const messages = await backend.dequeue(queue, options);
          if (messages.length === 0 || !isTwice()) return messages;
          await backend.release(
            queue,
            messages.map(({ receipt }) => receipt),
          );
          return messages;
        },
      });
    },
  },
  {
    name: "hands out one receipt twice",
    caughtBy: ["S5"],
    wrap(backend) {
      const { seen, dequeue } = remembering(backend);
      const isWrong = every(50);
      return interpose(backend, {
        async dequeue(queue, options) {
          const messages = await dequeue(queue, options);
          const [first] = messages;
          const old = seen[0];
          return first !== undefined && old !== undefined && seen.length > 1 && isWrong() ? [{ ...first, receipt: old.receipt }] : messages;
        },
      });
    },
  },
  {
    name: "counts a message as neither pending nor processing between dequeue and bookkeeping",
    caughtBy: ["C1"],
    wrap(backend) {
      const moving = new Map<QueueName, number>();
      const move = (queue: QueueName, by: number): void => void moving.set(queue, (moving.get(queue) ?? 0) + by);
      const held = new Map<Receipt, QueueName>();
      return interpose(backend, {
        async dequeue(queue, options) {
          const messages = await backend.dequeue(queue, options);
          move(queue, messages.length);
          for (const { receipt } of messages) held.set(receipt, queue);
          // The bookkeeping comes some turns after the answer.
          setTimeout(() => move(queue, -messages.length), 3).unref();
          return messages;
        },
        async status(queue) {
          const { pending, processing } = await backend.status(queue);
          return { pending, processing: Math.max(0, processing - (moving.get(queue) ?? 0)) };
        },
      });
    },
  },
  {
    name: "reads the status of several queues one after the other",
    caughtBy: ["C3"],
    wrap(backend) {
      return interpose(backend, {
        async statuses(selection) {
          if (!("queues" in selection)) return backend.statuses(selection);
          const statuses = new Map<QueueName, { pending: number; processing: number }>();
          // The last queue first: work moves on between the looks.
          for (const queue of selection.queues.toReversed()) {
            statuses.set(queue, await backend.status(queue));
            await new Promise((resolve) => setTimeout(resolve, 2));
          }
          return selection.queues.map((queue) => ({ queue, ...(statuses.get(queue) ?? { pending: 0, processing: 0 }) }));
        },
      });
    },
  },
  {
    name: "counts one too many",
    caughtBy: ["S7", "C3"],
    wrap(backend) {
      const isWrong = every(20);
      return interpose(backend, {
        async status(queue) {
          const { pending, processing } = await backend.status(queue);
          return { pending: pending + (pending > 0 && isWrong() ? 6 : 0), processing };
        },
        async statuses(selection) {
          const statuses = await backend.statuses(selection);
          return statuses.map((status) => ({ ...status, pending: status.pending + (status.pending > 0 && isWrong() ? 6 : 0) }));
        },
      });
    },
  },
  {
    name: "accepts stale receipts",
    caughtBy: ["S5"],
    wrap(backend) {
      return interpose(backend, {
        async extend(queue, items) {
          return (await backend.extend(queue, items)).map(() => "extended" as const);
        },
      });
    },
  },
  {
    name: "acks with a stale receipt",
    caughtBy: ["S6"],
    wrap(backend) {
      return interpose(backend, {
        async ack(queue, items) {
          return (await backend.ack(queue, items)).map(
            (answer): AckAnswer => (answer.outcome === "stale" ? { outcome: "acked", forwarded: [] } : answer),
          );
        },
      });
    },
  },
  {
    name: "refuses current receipts now and then",
    caughtBy: ["S6"],
    wrap(backend) {
      const isWrong = every(20);
      return interpose(backend, {
        ack: async (queue, items) => (isWrong() ? items.map(() => ({ outcome: "stale" as const })) : backend.ack(queue, items)),
      });
    },
  },
  {
    name: "delivers again what was acked",
    caughtBy: ["S3"],
    wrap(backend) {
      const { seen, dequeue } = remembering(backend);
      const acked = new Set<Receipt>();
      const isWrong = every(15);
      return interpose(backend, {
        async ack(queue, items) {
          const answers = await backend.ack(queue, items);
          for (const [index, { receipt }] of items.entries()) if (answers[index]?.outcome === "acked") acked.add(receipt);
          return answers;
        },
        async dequeue(queue, options) {
          const messages = await dequeue(queue, options);
          const dead = seen.find(({ receipt, id }) => acked.has(receipt) && id.startsWith(`k-`) && seen.length > 20);
          if (dead === undefined || messages.length > 0 || !isWrong()) return messages;
          return [{ ...dead, receipt: `${dead.receipt}0` as Receipt }];
        },
      });
    },
  },
  {
    name: "hands out the last message first",
    caughtBy: ["S8"],
    wrap(backend) {
      return interpose(backend, {
        async dequeue(queue, options) {
          const messages = await backend.dequeue(queue, { ...options, limit: 50 });
          const limit = options?.limit ?? 1;
          const back = messages.slice(0, Math.max(0, messages.length - limit));
          if (back.length > 0)
            await backend.release(
              queue,
              back.map(({ receipt }) => receipt),
            );
          return messages.slice(-limit);
        },
      });
    },
  },
  {
    name: "clears only what is pending",
    caughtBy: ["S9"],
    wrap(backend) {
      const held = new Map<QueueName, Set<Receipt>>();
      const spared = new Set<Receipt>();
      return interpose(backend, {
        async dequeue(queue, options) {
          const messages = await backend.dequeue(queue, options);
          const receipts = held.get(queue) ?? new Set();
          held.set(queue, receipts);
          for (const { receipt } of messages) receipts.add(receipt);
          return messages;
        },
        async clear(queue) {
          for (const receipt of held.get(queue) ?? []) spared.add(receipt);
          held.delete(queue);
          return backend.clear(queue);
        },
        async extend(queue, items) {
          const answers = await backend.extend(queue, items);
          return answers.map((answer, index) => (spared.has(items[index]?.receipt as Receipt) ? "extended" : answer));
        },
        async nack(queue, items) {
          const answers = await backend.nack(queue, items);
          return answers.map((answer, index) => (spared.has(items[index]?.receipt as Receipt) ? "pending" : answer));
        },
      });
    },
  },
  {
    name: "forgets ids",
    caughtBy: ["S10"],
    wrap(backend) {
      return interpose(backend, { enqueue: (queue, messages) => backend.enqueue(queue, withoutIds(messages)) });
    },
  },
  {
    name: "says empty although messages are there",
    caughtBy: ["S11"],
    wrap(backend) {
      const isWrong = every(20);
      return interpose(backend, { dequeue: async (queue, options) => (isWrong() ? [] : backend.dequeue(queue, options)) });
    },
  },
  {
    name: "acks before it forwards, and not in one step",
    caughtBy: ["C2"],
    wrap(backend) {
      return interpose(backend, {
        async ack(queue, items) {
          const answers = await backend.ack(
            queue,
            items.map(({ receipt }) => ({ receipt })),
          );
          await new Promise((resolve) => setTimeout(resolve, 2));
          for (const [index, { forward }] of items.entries())
            if (answers[index]?.outcome === "acked")
              for (const batch of forward ?? []) await backend.enqueue(batch.queue, withoutTasks(batch.messages));
          return answers;
        },
      });
    },
  },
  {
    name: "forwards although the receipt is stale",
    caughtBy: ["S12"],
    wrap(backend) {
      return interpose(backend, {
        async ack(queue, items) {
          const answers = await backend.ack(queue, items);
          for (const [index, { forward }] of items.entries())
            if (answers[index]?.outcome === "stale")
              for (const batch of forward ?? []) await backend.enqueue(batch.queue, withoutTasks(batch.messages));
          return answers;
        },
      });
    },
  },
  {
    name: "reaches marks too early",
    caughtBy: ["C4"],
    wrap(backend) {
      return interpose(backend, { reached: async (mark) => ({ ...(await backend.reached(mark)), reached: true }) });
    },
  },
  {
    name: "ends tasks too early",
    caughtBy: ["C5"],
    wrap(backend) {
      return interpose(backend, {
        async task(id) {
          const task = await backend.task(id);
          return task.progress.done > 0 && task.status === "running" ? { ...task, status: "completed" } : task;
        },
      });
    },
  },
  {
    name: "never ends tasks",
    caughtBy: ["C5"],
    wrap(backend) {
      return interpose(backend, { task: async (id) => ({ ...(await backend.task(id)), status: "running" }) });
    },
  },
  {
    name: "changes a byte",
    caughtBy: ["S2"],
    wrap(backend) {
      return interpose(backend, {
        async dequeue(queue, options) {
          const messages = await backend.dequeue(queue, options);
          return messages.map((message) => (message.data.length % 7 === 0 ? { ...message, data: message.data.slice(0, -1) } : message));
        },
      });
    },
  },
  {
    name: "never brings back what a consumer dropped",
    caughtBy: ["L1", "L2"],
    wrap(backend) {
      return interpose(backend, {
        dequeue: (queue, options) => backend.dequeue(queue, { ...options, leaseMs: 600_000 }),
        extend: (queue, items) =>
          backend.extend(
            queue,
            items.map((item) => ({ ...item, leaseMs: 600_000 })),
          ),
      });
    },
  },
  {
    name: "fails now and then without a reason",
    caughtBy: ["L3"],
    wrap(backend) {
      const isWrong = every(50);
      return interpose(backend, {
        async status(queue) {
          await turn();
          if (isWrong()) throw new Error("no reason");
          return backend.status(queue);
        },
      });
    },
  },
];

function withoutTasks(messages: readonly NewMessage[]): NewMessage[] {
  return messages.map(({ task: _task, ...message }) => message);
}
