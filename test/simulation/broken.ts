/** Backends that are broken on purpose, each in one way that has been seen in queues: a simulation that does not find them proves nothing. */

import type { Backend } from "../../src/backend/contract.ts";
import type { MessageId } from "../../src/core/names.ts";
import { interpose } from "../support/interpose.ts";
import type { Ground } from "./run.ts";

/** Puts something broken in front of a backend. */
export type Breakage = (backend: Backend, ground: Ground) => Backend;

/** What is broken, by what it does. */
export const BREAKAGES: Readonly<Record<string, Breakage>> = {
  "drops a message that it says it has stored": (backend) =>
    interpose(backend, {
      async enqueue(queue, messages) {
        if (messages.length < 2) return backend.enqueue(queue, messages);
        const answers = await backend.enqueue(queue, messages.slice(1));
        return [{ outcome: "enqueued", id: "m-0-0-0" as MessageId }, ...answers];
      },
    }),
  "hands out a message and leaves it where it was": (backend) =>
    interpose(backend, {
      async dequeue(queue, options) {
        const delivered = await backend.dequeue(queue, options);
        const [first] = delivered;
        if (first !== undefined) await backend.release(queue, [first.receipt]);
        return delivered;
      },
    }),
  "says that it has renewed a lease, and has not": (backend) =>
    interpose(backend, {
      extend: async (queue, items) => {
        const { items: unacked } = await backend.messages(queue, { limit: 1_000 });
        return items.map(() => (unacked.some(({ state }) => state === "processing") ? "extended" : "stale"));
      },
    }),
  "acks, and forwards in a step of its own": (backend) =>
    interpose(backend, {
      async ack(queue, items) {
        const answers = await backend.ack(
          queue,
          items.map(({ receipt }) => ({ receipt })),
        );
        const forwarded: Awaited<ReturnType<Backend["ack"]>> = [];
        for (const [index, answer] of answers.entries()) {
          if (answer.outcome === "stale") {
            forwarded.push(answer);
            continue;
          }
          const stored = [];
          for (const { queue: target, messages } of items[index]?.forward ?? []) stored.push(await backend.enqueue(target, messages));
          forwarded.push({ outcome: "acked", forwarded: stored });
        }
        return forwarded;
      },
    }),
  "reads the statuses of several queues one after the other": (backend) =>
    interpose(backend, {
      async statuses(selection) {
        const { items } = await backend.listQueues();
        const statuses: Awaited<ReturnType<Backend["statuses"]>> = [];
        for (const queue of "queues" in selection ? selection.queues : items) statuses.push({ queue, ...(await backend.status(queue)) });
        return statuses;
      },
    }),
  "acks by the message, whoever holds it now": (backend) => {
    const ids = new Map<string, MessageId>();
    return interpose(backend, {
      async dequeue(queue, options) {
        const delivered = await backend.dequeue(queue, options);
        for (const { receipt, id } of delivered) ids.set(receipt, id);
        return delivered;
      },
      async ack(queue, items) {
        const answers = await backend.ack(queue, items);
        return Promise.all(
          answers.map(async (answer, index) => {
            const id = ids.get(items[index]?.receipt ?? "");
            if (answer.outcome === "acked" || id === undefined || items[index]?.forward?.length) return answer;
            const [byId] = await backend.ackById(queue, [id]);
            return byId === "acked" ? { outcome: "acked" as const, forwarded: [] } : answer;
          }),
        );
      },
    });
  },
};
