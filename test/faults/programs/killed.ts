/** Processes that work until they are killed, telling each call before they make it and each answer once they have it. */

import Database from "better-sqlite3";
import type { Backend } from "../../../src/backend/contract.ts";
import type { DeliveredMessage } from "../../../src/core/message.ts";
import type { QueueName } from "../../../src/core/names.ts";
import { SeededRandom } from "../../../src/testing/seeded-random.ts";
import { reportFault, tellSurely } from "../../support/child-process-main.ts";
import { type LedgerEvent, nameOf, payloadOf } from "../ledger.ts";
import { openStore, type StoreSpec } from "../store-spec.ts";

type Work = LedgerEvent["work"];

let calls = 0;

/** Tells of the call, makes it, tells of its answer: the names of the messages that were dequeued, for those that name none before. */
async function told<Result>(work: Work, call: () => Promise<Result>, names?: (result: Result) => string[]): Promise<Result> {
  calls += 1;
  const number = calls;
  await tellSurely({ number, work, answered: false } satisfies LedgerEvent);
  const result = await call();
  await tellSurely({ number, work: names === undefined ? work : { ...work, names: names(result) }, answered: true } satisfies LedgerEvent);
  return result;
}

function mustBe(expected: string, answer: string | undefined): void {
  if (answer !== expected) throw new Error(`a step was answered with ${answer}, not ${expected}`);
}

/** What a process does with queues, each step told. */
class Teller {
  readonly #backend: Backend;
  readonly #leaseMs: number;

  constructor(backend: Backend, leaseMs: number) {
    this.#backend = backend;
    this.#leaseMs = leaseMs;
  }

  enqueue(queue: QueueName, names: readonly string[]): Promise<unknown> {
    return told({ kind: "enqueue", queue, names }, () =>
      this.#backend.enqueue(
        queue,
        names.map((name) => ({ data: payloadOf(name) })),
      ),
    );
  }

  take(queue: QueueName, limit: number): Promise<DeliveredMessage[]> {
    return told(
      { kind: "dequeue", queue, names: [] },
      () => this.#backend.dequeue(queue, { limit, leaseMs: this.#leaseMs }),
      (messages) => messages.map(({ data }) => nameOf(data)),
    );
  }

  ack(queue: QueueName, { data, receipt }: DeliveredMessage): Promise<unknown> {
    return told({ kind: "ack", queue, names: [nameOf(data)] }, async () =>
      mustBe("acked", (await this.#backend.ack(queue, [{ receipt }]))[0]?.outcome),
    );
  }

  forward(queue: QueueName, { data, receipt }: DeliveredMessage, to: QueueName): Promise<unknown> {
    const followUp = `${nameOf(data)}-follow-up`;
    const forward = [{ queue: to, messages: [{ data: payloadOf(followUp) }] }];
    return told({ kind: "forward", queue, names: [nameOf(data)], to, followUp }, async () => {
      mustBe("acked", (await this.#backend.ack(queue, [{ receipt, forward }]))[0]?.outcome);
    });
  }

  nack(queue: QueueName, { data, receipt }: DeliveredMessage): Promise<unknown> {
    return told({ kind: "return", queue, names: [nameOf(data)] }, async () =>
      mustBe("pending", (await this.#backend.nack(queue, [{ receipt, reason: "try again" }]))[0]),
    );
  }

  release(queue: QueueName, { data, receipt }: DeliveredMessage): Promise<unknown> {
    return told({ kind: "return", queue, names: [nameOf(data)] }, async () =>
      mustBe("released", (await this.#backend.release(queue, [receipt]))[0]),
    );
  }

  giveUp(queue: QueueName, { data, receipt }: DeliveredMessage): Promise<unknown> {
    return told({ kind: "give-up", queue, names: [nameOf(data)] }, async () => {
      mustBe("dead", (await this.#backend.nack(queue, [{ receipt, reason: "hopeless", giveUp: true }]))[0]);
    });
  }

  /** Does one of all that can be done with a message in hand; sometimes nothing, so that it stays in hand. */
  async treat(queue: QueueName, message: DeliveredMessage, to: QueueName, choice: number): Promise<void> {
    const treatments = [
      () => this.ack(queue, message),
      () => this.forward(queue, message, to),
      () => this.ack(queue, message),
      () => this.nack(queue, message),
      () => this.forward(queue, message, to),
      () => this.release(queue, message),
      () => this.giveUp(queue, message),
      async () => {},
    ];
    await treatments[Math.floor(choice * treatments.length)]?.();
  }
}

/** Works in several loops at once, so that calls share transactions, and never ends by itself. */
export async function liveUntilKilled(
  spec: StoreSpec,
  queues: readonly [QueueName, QueueName],
  name: string,
  loops: number,
  seed: number,
  leaseMs = 30_000,
): Promise<never> {
  const backend = await openStore(spec, reportFault);
  const random = new SeededRandom(seed);
  const teller = new Teller(backend, leaseMs);
  const [from, to] = queues;
  const loop = async (number: number): Promise<never> => {
    for (let round = 0; ; round += 1) {
      const count = 1 + Math.floor(random.fraction() * 3);
      await teller.enqueue(
        from,
        Array.from({ length: count }, (_none, index) => `${name}.${number}.${round}.${index}`),
      );
      for (const message of await teller.take(from, 3)) await teller.treat(from, message, to, random.fraction());
      for (const message of await teller.take(to, 3)) await teller.ack(to, message);
    }
  };
  return Promise.race(Array.from({ length: loops }, (_none, number) => loop(number)));
}

/** Every step once, in a fixed order. */
async function everyStep(backend: Backend, [from, to]: readonly [QueueName, QueueName], name: string): Promise<void> {
  const teller = new Teller(backend, 30_000);
  await teller.enqueue(
    from,
    ["a", "b", "c", "d", "e"].map((letter) => `${name}.${letter}`),
  );
  for (let step = 0; step < 7; step += 1) {
    const [message] = await teller.take(from, 1);
    if (message !== undefined) await teller.treat(from, message, to, (6 - step) / 8);
  }
  for (const message of await teller.take(to, 1)) await teller.ack(to, message);
}

/**
 * Takes every step once and kills itself (SIGKILL) just before, or just after, the statement of that number runs. Answers how many
 * statements ran, if it lived to do so.
 */
export async function killedAtStatement(
  spec: StoreSpec,
  queues: readonly [QueueName, QueueName],
  name: string,
  killAt: number,
  when: "before" | "after",
): Promise<number> {
  const backend = await openStore(spec, reportFault);
  let statements = 0;
  const any = new Database(":memory:");
  const prototype = Object.getPrototypeOf(any.prepare("SELECT 1")) as Record<string, (...values: unknown[]) => unknown>;
  any.close();
  for (const method of ["run", "get", "all"]) {
    const run = prototype[method] as (...values: unknown[]) => unknown;
    prototype[method] = function (this: unknown, ...values: unknown[]): unknown {
      statements += 1;
      const isLast = statements === killAt;
      if (isLast && when === "before") process.kill(process.pid, "SIGKILL");
      const result = run.apply(this, values);
      if (isLast) process.kill(process.pid, "SIGKILL");
      return result;
    };
  }
  await everyStep(backend, queues, name);
  return statements;
}
