/** Takes the messages of an old file over into a store, in the old order, so that running it again does no harm. */

import type { Backend } from "../backend/contract.ts";
import type { EnqueueAnswer, NewMessage } from "../core/message.ts";
import type { QueueName } from "../core/names.ts";
import { type PlannedMessage, type PlannedQueue, plannedMessages, planTakeover, type TakeoverPlan } from "./plan.ts";
import { putAside } from "./put-aside.ts";
import type { ReferenceFile } from "./reference-file.ts";

/** What became of one queue. */
export interface TakenQueue extends PlannedQueue {
  /** Whether the target already had a queue of that name. */
  readonly existed: boolean;
  /** Messages stored now. */
  readonly stored: number;
  /** Messages that an earlier run had stored already. */
  readonly repeated: number;
  /** Messages stored under another id since the target used theirs for something else; they come after their neighbours. */
  readonly displaced: number;
  /** Unreadable records that are dead letters now. */
  readonly putAside: number;
  /** Unreadable records that others hold, or that lie behind too many messages: they are in the queue, as raw bytes. */
  readonly leftRaw: number;
}

/** What a takeover did. */
export interface TakeoverReport extends Omit<TakeoverPlan, "queues"> {
  readonly queues: readonly TakenQueue[];
}

/** Options of {@link takeOver}. */
export interface TakeoverOptions {
  /** Ends the takeover between two steps, with the caller's reason; run it again to go on. */
  readonly signal?: AbortSignal;
  /** Called after each step with the number of messages dealt with so far. */
  readonly onProgress?: (done: number) => void;
}

/** Messages of one step, and their bytes: few enough for a short step, enough for speed. */
const STEP_ITEMS = 1_000;
const STEP_BYTES = 8 * 1024 * 1024;

type Tally = { -readonly [Name in "stored" | "repeated" | "displaced" | "putAside" | "leftRaw"]: number };

interface Target {
  readonly queue: QueueName;
  readonly existed: boolean;
  readonly tally: Tally;
}

/** Groups messages into steps by number and bytes. */
function* steps(messages: Iterable<PlannedMessage>, maxBytes: number): Generator<PlannedMessage[], void, void> {
  let step: PlannedMessage[] = [];
  let bytes = 0;
  for (const message of messages) {
    if (step.length > 0 && (step.length >= STEP_ITEMS || bytes + message.data.byteLength > maxBytes)) {
      yield step;
      step = [];
      bytes = 0;
    }
    step.push(message);
    bytes += message.data.byteLength;
  }
  if (step.length > 0) yield step;
}

/** The messages of one step by queue, in order. */
function byQueue(step: readonly PlannedMessage[]): Map<string, PlannedMessage[]> {
  const groups = new Map<string, PlannedMessage[]>();
  for (const message of step) {
    const group = groups.get(message.queueKey);
    if (group) group.push(message);
    else groups.set(message.queueKey, [message]);
  }
  return groups;
}

/** Stores the messages of one queue; one whose id the target uses otherwise is stored again under its other id. */
async function store(backend: Backend, target: Target, messages: readonly PlannedMessage[]): Promise<EnqueueAnswer[]> {
  const answers = await backend.enqueue(
    target.queue,
    messages.map((message): NewMessage => ({ id: message.id, data: message.data })),
  );
  const conflicting = messages.filter((_, index) => answers[index]?.outcome === "conflict");
  if (conflicting.length === 0) return answers;
  const others = await backend.enqueue(
    target.queue,
    conflicting.map((message): NewMessage => ({ id: message.otherId, data: message.data })),
  );
  target.tally.displaced += conflicting.length;
  let next = 0;
  return answers.map((answer) => (answer.outcome === "conflict" ? (others[next++] as EnqueueAnswer) : answer));
}

function only(messages: Iterable<PlannedMessage>, unreadable: boolean): Iterable<PlannedMessage> {
  return {
    *[Symbol.iterator]() {
      for (const message of messages) if ((message.fault !== undefined) === unreadable) yield message;
    },
  };
}

/**
 * Takes everything over: queues without messages too, messages in processing as pending, records that cannot be decoded as dead
 * letters with their raw bytes. Ids are kept where they can be. It can be run again after an interruption: what is still unacked or a
 * dead letter in the target is not stored a second time, nor what was acked within the store's `rememberMs`.
 *
 * @throws QueueFSError `message-too-large` before anything is written; whatever the store rejects with; the signal's reason
 */
export async function takeOver(file: ReferenceFile, backend: Backend, options: TakeoverOptions = {}): Promise<TakeoverReport> {
  const plan = planTakeover(file, backend.description.maxMessageBytes);
  const maxBytes = Math.min(STEP_BYTES, backend.description.maxMessageBytes);
  const targets = new Map<string, Target>();
  for (const queue of plan.queues) {
    options.signal?.throwIfAborted();
    const existed = (await backend.createQueue(queue.queue)) === "exists";
    targets.set(queue.key, { queue: queue.queue, existed, tally: { stored: 0, repeated: 0, displaced: 0, putAside: 0, leftRaw: 0 } });
  }
  let done = 0;
  const run = async (messages: Iterable<PlannedMessage>, unreadable: boolean): Promise<void> => {
    for (const step of steps(only(messages, unreadable), maxBytes)) {
      options.signal?.throwIfAborted();
      await Promise.all(
        Array.from(byQueue(step), async ([key, group]) => {
          const target = targets.get(key) as Target;
          const answers = await store(backend, target, group);
          for (const answer of answers) target.tally[answer.outcome === "enqueued" ? "stored" : "repeated"] += 1;
          if (!unreadable) return;
          const aside = await putAside(
            backend,
            target.queue,
            answers,
            group.map((message) => message.fault ?? ""),
          );
          target.tally.putAside += aside.dead;
          target.tally.leftRaw += aside.left;
        }),
      );
      done += step.length;
      options.onProgress?.(done);
    }
  };
  // Those to be put aside go first: a new queue then holds nothing but them, and they are found at once.
  if (plan.unreadable > 0) await run(plannedMessages(file), true);
  await run(plannedMessages(file), false);
  const queues = plan.queues.map((queue): TakenQueue => {
    const { existed, tally } = targets.get(queue.key) as Target;
    return { ...queue, existed, ...tally };
  });
  return { ...plan, queues };
}
