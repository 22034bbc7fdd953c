/**
 * kill -9 at every step. A process works and tells each call and each answer until it is killed; then everything it was told to be done must
 * be so, everything else may be so or not, and nothing may be in between.
 */

import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Backend } from "../../src/backend/contract.ts";
import { parseQueueName } from "../../src/core/names.ts";
import { SeededRandom } from "../../src/testing/seeded-random.ts";
import { type Child, childProcesses } from "../support/child-process.ts";
import { Ledger, type LedgerEvent } from "./ledger.ts";
import type { FaultPrograms } from "./programs/main.ts";
import { newSeed } from "./report.ts";
import { redisStores, sqliteStores } from "./store-kinds.ts";
import { openStore, type StoreSpec } from "./store-spec.ts";
import { untilStatus } from "./until.ts";

const children = childProcesses<FaultPrograms>("test/faults/programs/main.ts");
const QUEUES = [parseQueueName("parse"), parseQueueName("index")] as const;

afterEach(() => children.end());

async function withStore<Result>(spec: StoreSpec, use: (backend: Backend) => Promise<Result>): Promise<Result> {
  const errors: unknown[] = [];
  const backend = await openStore(spec, (error) => void errors.push(error));
  try {
    return await use(backend);
  } finally {
    await backend.close();
    expect(errors).toEqual([]);
  }
}

async function makeQueues(backend: Backend): Promise<void> {
  for (const queue of QUEUES) await backend.createQueue(queue, { maxDeliveries: 0 });
}

/** Kills a working child once it has told so many things, and gives all that it told. */
async function killAfter(
  child: Child<FaultPrograms>,
  spec: StoreSpec,
  name: string,
  told: number,
  seed: number,
  leaseMs?: number,
): Promise<LedgerEvent[]> {
  const outcome = child.call("liveUntilKilled", spec, QUEUES, name, 3, seed, leaseMs).then(
    () => undefined,
    (error: Error) => error.message,
  );
  await child.whenTold(told);
  await child.kill();
  // A child that ended by itself has found something wrong: its words say what.
  expect(await outcome).toMatch(/the child ended \(SIGKILL\)/);
  return child.told as LedgerEvent[];
}

describe.each([
  { kind: sqliteStores({ durability: "full" }), rounds: 15 },
  { kind: sqliteStores({ durability: "normal" }), rounds: 20 },
])("on $kind.name", ({ kind, rounds }) => {
  beforeAll(() => kind.begin());
  afterAll(() => kind.end());

  it(`a process killed at any instant loses nothing and undoes nothing, ${rounds} times`, async () => {
    const spec = kind.fresh();
    const random = new SeededRandom(newSeed());
    await withStore(spec, makeQueues);
    const ledger = new Ledger();
    let messages = 0;
    let next = children.start();
    for (let round = 0; round < rounds; round += 1) {
      const child = await next;
      next = children.start();
      const seed = random.token();
      const told = 1 + Math.floor(random.fraction() ** 2 * 400);
      const killAndSettle = async (backend?: Backend): Promise<void> => {
        ledger.read(await killAfter(child, spec, `${round}`, told, seed));
        messages += ledger.size;
        const settle = (survivor: Backend): Promise<string[]> => ledger.settle(survivor, QUEUES);
        expect(await (backend === undefined ? withStore(spec, settle) : settle(backend)), `round ${round}`).toEqual([]);
      };
      // Every other time nobody else has the file open, so that what the dead left must be found by who opens it next.
      if (round % 2 === 0) await killAndSettle();
      else await withStore(spec, killAndSettle);
    }
    await next;
    expect(messages).toBeGreaterThan(rounds * 10);
  });
});

describe("on sqlite", () => {
  const kind = sqliteStores({ durability: "normal" });
  beforeAll(() => kind.begin());
  afterAll(() => kind.end());

  it("a process killed between any two statements leaves each step done or not done", async () => {
    const spec = kind.fresh();
    await withStore(spec, makeQueues);
    const ledger = new Ledger();
    const whole = await children.start();
    const statements = await whole.call("killedAtStatement", spec, QUEUES, "whole", 0, "before");
    ledger.read(whole.told as LedgerEvent[]);
    await whole.kill();
    expect(await withStore(spec, (backend) => ledger.settle(backend, QUEUES))).toEqual([]);
    expect(statements).toBeGreaterThan(60);
    // Every fourth statement, from a start that differs from run to run, so that all have their turn.
    const first = 1 + (newSeed() % 4);
    const points: number[] = [];
    for (let statement = first; statement <= statements; statement += 4) points.push(statement);
    let next = children.start();
    for (const statement of points) {
      const child = await next;
      next = children.start();
      const outcome = child.call("killedAtStatement", spec, QUEUES, `${statement}`, statement, statement % 2 === 0 ? "before" : "after");
      await expect(outcome, `statement ${statement}`).rejects.toThrow("the child ended (SIGKILL)");
      ledger.read(child.told as LedgerEvent[]);
      expect(
        await withStore(spec, (backend) => ledger.settle(backend, QUEUES)),
        `killed at statement ${statement} of ${statements}`,
      ).toEqual([]);
    }
    await next;
  });
});

describe("on redis", () => {
  const kind = redisStores({ sweepIntervalMs: 50 });
  beforeAll(() => kind.begin());
  afterAll(() => kind.end());

  it("eight processes killed at any instant lose nothing and undo nothing, once their leases have ended", async () => {
    const spec = kind.fresh();
    const random = new SeededRandom(newSeed());
    const ledger = new Ledger();
    await withStore(spec, async (backend) => {
      await makeQueues(backend);
      for (let round = 0; round < 8; round += 1) {
        const told = 1 + Math.floor(random.fraction() * 400);
        ledger.read(await killAfter(await children.start(), spec, `${round}`, told, random.token(), 6_000));
      }
      for (const queue of QUEUES) await untilStatus(backend, queue, ({ processing }) => processing === 0);
      expect(ledger.size).toBeGreaterThan(100);
      expect(await ledger.settle(backend, QUEUES)).toEqual([]);
    });
  });
});
