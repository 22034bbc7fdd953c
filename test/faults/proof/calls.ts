/** The calls of one lane: each goes to the store and on record. */

import type { Backend } from "../../../src/backend/contract.ts";
import { isQueueFSError } from "../../../src/core/errors.ts";
import type { DeliveredMessage, Forward, Mark, NewMessage } from "../../../src/core/message.ts";
import { parseChosenMessageId, parseChosenTaskId, parseQueueName, type Receipt, type TaskId } from "../../../src/core/names.ts";
import { waitComplete } from "../../../src/queue/wait.ts";
import type { Batch, Call, ReceiptItem, SentMessage } from "./operation.ts";
import { payloadOf, readPayload } from "./payload.ts";
import type { Recorded, Recorder } from "./record.ts";

function toMessage({ value, id, task }: SentMessage): NewMessage {
  return {
    data: payloadOf(value),
    ...(id === undefined ? {} : { id: parseChosenMessageId(id) }),
    ...(task === undefined ? {} : { task: task as TaskId }),
  };
}

function toForwards(batches: readonly Batch[] | undefined): Forward[] {
  return (batches ?? []).map(({ queue, messages }) => ({ queue: parseQueueName(queue), messages: messages.map(toMessage) }));
}

/** What one client does. */
export class RecordedCalls {
  readonly client: string;
  readonly #backend: Backend;
  readonly #recorder: Recorder;

  constructor(client: string, backend: Backend, recorder: Recorder) {
    this.client = client;
    this.#backend = backend;
    this.#recorder = recorder;
  }

  #run<Answer>(call: Call, step: () => Promise<Answer>, told: (answer: Answer) => object = () => ({})): Promise<Recorded<Answer>> {
    return this.#recorder.run(this.client, call, step, (answer) => ({ ...told(answer) }));
  }

  enqueue(queue: string, messages: readonly SentMessage[]) {
    return this.#run(
      { op: "enqueue", queue, messages },
      () => this.#backend.enqueue(parseQueueName(queue), messages.map(toMessage)),
      (answers) => ({ answers }),
    );
  }

  dequeue(queue: string, limit: number, leaseMs: number, requestId?: string) {
    const request = requestId === undefined ? {} : { requestId };
    return this.#run(
      { op: "dequeue", queue, limit, leaseMs, ...request },
      () => this.#backend.dequeue(parseQueueName(queue), { limit, leaseMs, ...request }),
      (messages: readonly DeliveredMessage[]) => ({
        received: messages.map(({ id, receipt, data }) => ({ id, receipt, ...readPayload(data) })),
      }),
    );
  }

  ack(queue: string, items: readonly ReceiptItem[]) {
    return this.#run(
      { op: "ack", queue, items },
      () =>
        this.#backend.ack(
          parseQueueName(queue),
          items.map(({ receipt, forward }) => ({ receipt: receipt as Receipt, forward: toForwards(forward) })),
        ),
      (answers) => ({ answers: answers.map(({ outcome }) => outcome) }),
    );
  }

  nack(queue: string, items: readonly ReceiptItem[]) {
    return this.#run(
      { op: "nack", queue, items },
      () =>
        this.#backend.nack(
          parseQueueName(queue),
          items.map(({ receipt, delayMs }) => ({ receipt: receipt as Receipt, ...(delayMs === undefined ? {} : { delayMs }) })),
        ),
      (answers) => ({ answers }),
    );
  }

  release(queue: string, items: readonly ReceiptItem[]) {
    return this.#run(
      { op: "release", queue, items },
      () =>
        this.#backend.release(
          parseQueueName(queue),
          items.map(({ receipt }) => receipt as Receipt),
        ),
      (answers) => ({ answers }),
    );
  }

  extend(queue: string, items: readonly ReceiptItem[]) {
    return this.#run(
      { op: "extend", queue, items },
      () =>
        this.#backend.extend(
          parseQueueName(queue),
          items.map(({ receipt, leaseMs = 1_000 }) => ({ receipt: receipt as Receipt, leaseMs })),
        ),
      (answers) => ({ answers }),
    );
  }

  status(queues: readonly string[]) {
    const names = queues.map(parseQueueName);
    const [name] = names;
    return this.#run(
      { op: "status", queues },
      async () =>
        names.length === 1 && name !== undefined ? [await this.#backend.status(name)] : await this.#backend.statuses({ queues: names }),
      (statuses) => ({ counts: statuses.map(({ pending, processing }) => [pending, processing]) }),
    );
  }

  wait(queues: readonly string[], timeoutMs: number, upToNow: boolean) {
    return this.#run(
      { op: "wait", queues, upToNow, timeoutMs },
      async () => {
        try {
          await waitComplete(this.#backend, { queues: queues.map(parseQueueName) }, { timeoutMs, ...(upToNow ? { upTo: "now" } : {}) });
          return "complete";
        } catch (error) {
          if (isQueueFSError(error, "timed-out")) return "timeout";
          throw error;
        }
      },
      (answer) => ({ answer }),
    );
  }

  mark(mark: string, queues: readonly string[]) {
    return this.#run({ op: "mark", mark, queues }, () => this.#backend.mark({ queues: queues.map(parseQueueName) }));
  }

  reached(mark: string, stored: Mark) {
    return this.#run(
      { op: "reached", mark },
      () => this.#backend.reached(stored),
      ({ reached }) => ({ reached }),
    );
  }

  peek(queue: string) {
    return this.#run(
      { op: "peek", queue },
      () => this.#backend.peek(parseQueueName(queue)),
      (message) => ({ value: message === undefined ? null : readPayload(message.data).value }),
    );
  }

  clear(queue: string) {
    return this.#run({ op: "clear", queue }, () => this.#backend.clear(parseQueueName(queue)));
  }

  remove(queue: string) {
    return this.#run({ op: "remove", queue }, () => this.#backend.removeQueue(parseQueueName(queue)));
  }

  create(queue: string) {
    return this.#run({ op: "create", queue }, () => this.#backend.createQueue(parseQueueName(queue), { maxDeliveries: 0 }));
  }

  /** Makes a task. Its producer holds it for longer than any run of one epoch. */
  submit(task: string, sealed: boolean, batches: readonly Batch[]) {
    const producer = sealed ? {} : { producer: { leaseMs: 3_600_000, owner: "receipt" as const } };
    // The messages belong to the task although the call need not say so.
    const owned = batches.map(({ queue, messages }) => ({ queue, messages: messages.map((message) => ({ ...message, task })) }));
    return this.#run(
      { op: "submit", task, sealed, batches: owned },
      () => this.#backend.createTask({ id: parseChosenTaskId(task), type: "proof", ...producer }, toForwards(batches)),
      ({ outcome }) => ({ answer: outcome }),
    );
  }

  seal(task: string) {
    return this.#run({ op: "seal", task }, () => this.#backend.sealTask(task as TaskId));
  }

  task(task: string) {
    return this.#run(
      { op: "task", task },
      () => this.#backend.task(task as TaskId),
      ({ status }) => ({ status }),
    );
  }
}
