/** The working side of the race: processes that enqueue, deliver, hand over and ack, and record what they did. */

import { setTimeout as sleep } from "node:timers/promises";
import type { Backend } from "../../../src/backend/contract.ts";
import type { DeliveredMessage } from "../../../src/core/message.ts";
import type { QueueName, Receipt } from "../../../src/core/names.ts";
import { nextTurn } from "../../../src/core/turn.ts";
import { waitComplete } from "../../../src/queue/wait.ts";
import { SeededRandom } from "../../../src/testing/seeded-random.ts";
import { reportFault, tell } from "../../support/child-process-main.ts";
import type { Operation } from "../history.ts";
import { openStore, type StoreSpec } from "../store-spec.ts";
import { now, Recorder } from "./recorder.ts";

/** How the work of a round gets from the first queue to the second. `alone`: it stays in the first. */
export type Handing = "alone" | "enqueue-then-ack" | "forward";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

function textOf(message: DeliveredMessage): string {
  return decoder.decode(message.data);
}

/** A worker with a store and a recorder. */
class Hand {
  readonly recorder = new Recorder();
  readonly #backend: Backend;
  readonly #random: SeededRandom;

  constructor(backend: Backend, random: SeededRandom) {
    this.#backend = backend;
    this.#random = random;
  }

  enqueue(queue: QueueName, names: readonly string[]): Promise<unknown> {
    return this.recorder.record("enqueue", queue, names, () =>
      this.#backend.enqueue(
        queue,
        names.map((name) => ({ data: encoder.encode(name) })),
      ),
    );
  }

  /** Takes what is there, `limit` at most. */
  async take(queue: QueueName, limit: number): Promise<DeliveredMessage[]> {
    const begin = now();
    const messages = await this.#backend.dequeue(queue, { limit });
    this.recorder.note("dequeue", queue, messages.map(textOf), begin);
    return messages;
  }

  async ack(queue: QueueName, message: DeliveredMessage, forward?: { readonly queue: QueueName; readonly name: string }): Promise<void> {
    const begin = now();
    const item = forward === undefined ? {} : { forward: [{ queue: forward.queue, messages: [{ data: encoder.encode(forward.name) }] }] };
    const [answer] = await this.#backend.ack(queue, [{ receipt: message.receipt, ...item }]);
    if (answer?.outcome !== "acked") throw new Error(`the ack of ${textOf(message)} was ${answer?.outcome}`);
    const end = now();
    this.recorder.note("ack", queue, [textOf(message)], begin, end);
    if (forward !== undefined) this.recorder.note("forward", forward.queue, [forward.name], begin, end);
  }

  /** Hands the work on, if there is a queue to hand it to, and acks. */
  async finish(queue: QueueName, message: DeliveredMessage, to: QueueName | undefined, handing: Handing): Promise<void> {
    const name = `${textOf(message)}-follow-up`;
    if (handing === "alone" || to === undefined) return this.ack(queue, message);
    if (handing === "forward") return this.ack(queue, message, { queue: to, name });
    await this.enqueue(to, [name]);
    return this.ack(queue, message);
  }

  /** What a handler may do before it is done: nothing, let the event loop turn, ask for more time, fail and take the message again. */
  async work(queue: QueueName, message: DeliveredMessage): Promise<DeliveredMessage> {
    switch (Math.floor(this.#random.fraction() * 6)) {
      case 0:
        await nextTurn();
        return message;
      case 1:
        await this.#backend.extend(queue, [{ receipt: message.receipt, leaseMs: 60_000 }]);
        return message;
      case 2:
        return this.#again(queue, message, (receipt) => this.#backend.nack(queue, [{ receipt, reason: "try again" }]));
      case 3:
        return this.#again(queue, message, (receipt) => this.#backend.release(queue, [receipt]));
      default:
        return message;
    }
  }

  async #again(queue: QueueName, message: DeliveredMessage, giveBack: (receipt: Receipt) => Promise<unknown>): Promise<DeliveredMessage> {
    await this.recorder.record("return", queue, [textOf(message)], () => giveBack(message.receipt));
    const [again] = await this.take(queue, 1);
    if (again === undefined) throw new Error(`${textOf(message)} was given back and is gone`);
    return again;
  }
}

/**
 * Works alone: each round's message is enqueued, delivered, perhaps handed on, and acked, before the next one is enqueued.
 *
 * @param dwellMs how long each message waits, and each handler works, in milliseconds
 */
export async function workAlone(
  spec: StoreSpec,
  queues: readonly [QueueName, QueueName],
  rounds: number,
  handing: Handing,
  seed: number,
  dwellMs: number,
): Promise<Operation[]> {
  const backend = await openStore(spec, reportFault);
  const hand = new Hand(backend, new SeededRandom(seed));
  const dwell = async (): Promise<void> => {
    if (dwellMs > 0) await sleep(dwellMs);
  };
  for (let round = 0; round < rounds; round += 1) {
    const [from, to] = queues;
    await hand.enqueue(from, [`${round}`]);
    await dwell();
    const [taken] = await hand.take(from, 1);
    if (taken === undefined) throw new Error(`round ${round} found its queue empty`);
    const message = await hand.work(from, taken);
    await dwell();
    await hand.finish(from, message, to, handing);
    if (handing === "alone") continue;
    await dwell();
    const [followUp] = await hand.take(to, 1);
    if (followUp === undefined) throw new Error(`round ${round} found the second queue empty`);
    await hand.ack(to, await hand.work(to, followUp));
  }
  await backend.close();
  return hand.recorder.operations;
}

/** What a producer did, and the snapshots that its waits for completion resolved with, as in {@link ../history.ts}. */
export interface Produced {
  readonly operations: readonly Operation[];
  readonly snapshots: Float64Array;
}

/** Enqueues a few messages, waits until both queues are complete, and so on. */
export async function produceAndWait(
  spec: StoreSpec,
  queues: readonly [QueueName, QueueName],
  rounds: number,
  seed: number,
): Promise<Produced> {
  const backend = await openStore(spec, reportFault);
  const random = new SeededRandom(seed);
  const hand = new Hand(backend, random);
  const snapshots: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const count = 1 + Math.floor(random.fraction() * 4);
    await hand.enqueue(
      queues[0],
      Array.from({ length: count }, (_none, index) => `${round}.${index}`),
    );
    const begin = now();
    const statuses = await waitComplete(backend, { queues }, { timeoutMs: 60_000 });
    snapshots.push(begin, now(), ...statuses.flatMap(({ pending, processing }) => [pending, processing]));
  }
  await backend.close();
  return { operations: hand.recorder.operations, snapshots: Float64Array.from(snapshots) };
}

/** Enqueues from several loops at once, as fast as the store takes it. */
export async function produceCrowd(
  spec: StoreSpec,
  queue: QueueName,
  name: string,
  loops: number,
  messagesPerLoop: number,
): Promise<Operation[]> {
  const backend = await openStore(spec, reportFault);
  const hand = new Hand(backend, new SeededRandom(1));
  const loop = async (number: number): Promise<void> => {
    for (let message = 0; message < messagesPerLoop; message += 1) await hand.enqueue(queue, [`${name}.${number}.${message}`]);
  };
  await Promise.all(Array.from({ length: loops }, (_none, number) => loop(number)));
  await backend.close();
  return hand.recorder.operations;
}

let isEnding = false;
const sleepers = new Set<() => void>();

function wakeAll(): void {
  for (const wake of sleepers) wake();
  sleepers.clear();
}

/** Ends the consumers of this process once they have nothing in hand. */
export function endConsuming(): void {
  isEnding = true;
  wakeAll();
}

/**
 * Consumes one queue in several loops, woken by the store, until told to end. Each message is handed on to `to`, if there is one, and acked.
 */
export async function consume(
  spec: StoreSpec,
  queue: QueueName,
  to: QueueName | undefined,
  handing: Handing,
  loops: number,
): Promise<Operation[]> {
  const backend = await openStore(spec, reportFault);
  const hand = new Hand(backend, new SeededRandom(1));
  isEnding = false;
  const unsubscribe = backend.subscribe(wakeAll);
  tell("consuming");
  const loop = async (): Promise<void> => {
    while (!isEnding) {
      const woken = new Promise<void>((resolve) => sleepers.add(resolve));
      const messages = await hand.take(queue, 2);
      if (messages.length === 0) await woken;
      for (const message of messages) await hand.finish(queue, message, to, handing);
    }
  };
  await Promise.all(Array.from({ length: loops }, loop));
  unsubscribe();
  await backend.close();
  return hand.recorder.operations;
}
