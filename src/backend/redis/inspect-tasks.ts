/** Looks over the tasks of a namespace for `queuefs doctor`: do their counts agree with the messages? */

import { assert } from "../../core/errors.ts";
import type { Finding } from "../../core/message.ts";
import { type Keys, queueKey } from "./keys.ts";
import { PROGRAMS } from "./programs.ts";
import type { QueueLife } from "./registry.ts";
import type { ScriptRunner } from "./script-call.ts";
import { isWhole } from "./task-texts.ts";

/** Faults that are told one by one; of more only the number. */
const MOST_TOLD = 10;
/** Messages that one look counts. */
const MESSAGES_PER_LOOK = "200";
/** Bytes of the record of a task (scripts/tasks.lua). */
const STATUS_AT = 1;
const SEALED_AT = 2;
const CANCELLING_AT = 3;
const TOTAL_AT = 13;
const NUMBER_BYTES = 6;

type Counts = Map<string, number>;

function add(counts: Counts, id: string, count: number): void {
  counts.set(id, (counts.get(id) ?? 0) + count);
}

async function scan(runner: ScriptRunner, key: string, visit: (field: string, value: Buffer) => void): Promise<void> {
  let cursor = "0";
  do {
    const reply = await runner.command("hscan", key, cursor, "count", "1000");
    assert(Array.isArray(reply) && Array.isArray(reply[1]), "a page of a hash is answered");
    cursor = String(reply[0]);
    const page = reply[1] as Buffer[];
    for (let index = 0; index + 1 < page.length; index += 2) visit(String(page[index]), page[index + 1] as Buffer);
  } while (cursor !== "0");
}

async function countMessages(runner: ScriptRunner, life: QueueLife): Promise<Counts> {
  const found: Counts = new Map();
  for (const part of ["list", "hash"]) {
    let cursor = "0";
    do {
      const reply = await runner.read(PROGRAMS.taskAudit, life.some("pending", "bodies"), [part, cursor, MESSAGES_PER_LOOK]);
      assert(Array.isArray(reply), "a list is answered");
      const [next, ...rest] = reply.map(String);
      cursor = next as string;
      for (let index = 0; index + 1 < rest.length; index += 2) add(found, rest[index] as string, Number(rest[index + 1]));
    } while (cursor !== "0");
  }
  return found;
}

async function faultsOf(runner: ScriptRunner, namespace: string, keys: Keys, lives: readonly QueueLife[]): Promise<string[]> {
  const faults: string[] = [];
  const unacked: Counts = new Map();
  for (const life of lives) {
    const owned: Counts = new Map();
    await scan(runner, queueKey(namespace, life.life, "owners"), (id, value) => {
      if (value.length >= NUMBER_BYTES) add(owned, id, value.readUIntBE(0, NUMBER_BYTES));
    });
    const found = await countMessages(runner, life);
    for (const id of new Set([...owned.keys(), ...found.keys()])) {
      const [counted = 0, there = 0] = [owned.get(id), found.get(id)];
      add(unacked, id, there);
      if (counted !== there)
        faults.push(`queue ${JSON.stringify(life.name)} counts ${counted} messages of task ${JSON.stringify(id)}, and has ${there}`);
    }
  }
  await scan(runner, keys.tasks, (id, record) => {
    const there = unacked.get(id) ?? 0;
    unacked.delete(id);
    if (!isWhole(record)) {
      faults.push(`the record of task ${JSON.stringify(id)} cannot be read`);
      return;
    }
    const [total, done, failed, cancelled] = [0, 1, 2, 3].map((index) => record.readUIntBE(TOTAL_AT + index * NUMBER_BYTES, NUMBER_BYTES));
    const counted = (total as number) - (done as number) - (failed as number) - (cancelled as number);
    if (counted !== there) faults.push(`task ${JSON.stringify(id)} counts ${counted} unacked messages, and its queues have ${there}`);
    const isOver = (record[SEALED_AT] === 1 || record[CANCELLING_AT] === 1) && counted === 0;
    if (isOver !== (record[STATUS_AT] as number) > 0)
      faults.push(`task ${JSON.stringify(id)} ${isOver ? "has not ended, though all is settled" : "has ended too early"}`);
  });
  for (const [id, count] of unacked) faults.push(`${count} messages are of task ${JSON.stringify(id)}, which does not exist`);
  return faults;
}

/** What is found about the tasks. Looks at every message, a few at a time. */
export async function inspectTasks(runner: ScriptRunner, namespace: string, keys: Keys, lives: readonly QueueLife[]): Promise<Finding> {
  const count = Number(await runner.command("hlen", keys.tasks));
  const ok: Finding = { severity: "ok", check: "tasks", message: `the counts of ${count} tasks agree with their messages` };
  if (count === 0) return ok;
  let faults = await faultsOf(runner, namespace, keys, lives);
  // What is counted bit by bit while others work may disagree, but not twice in the same way.
  if (faults.length > 0) {
    const again = new Set(await faultsOf(runner, namespace, keys, lives));
    faults = faults.filter((fault) => again.has(fault));
  }
  if (faults.length === 0) return ok;
  const told = faults.slice(0, MOST_TOLD).join("; ");
  const more = faults.length > MOST_TOLD ? `; and ${faults.length - MOST_TOLD} more` : "";
  return {
    severity: "error",
    check: "tasks",
    message: `${told}${more}; somebody else wrote to the namespace: cancel these tasks, and make new ones`,
  };
}
