/** Looks over the tasks of a namespace for `queuefs doctor`: do their counts agree with the messages? */

import { assert } from "../../core/errors.ts";
import type { Finding } from "../../core/message.ts";
import type { Keys } from "./keys.ts";
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
const FAILED_AT = 25;
const TOTAL_AT = 13;
const NUMBER_BYTES = 6;
/** Bytes of a field of task counts, and where the parts of its value stand. */
const FIELD_BYTES = 12;
const MORE_AT = 12;
const ID_AT = 37;

type Counts = Map<string, number>;

function add(counts: Counts, id: string, count: number): void {
  counts.set(id, (counts.get(id) ?? 0) + count);
}

async function scan(runner: ScriptRunner, key: string, visit: (field: Buffer, value: Buffer) => void): Promise<void> {
  let cursor = "0";
  do {
    const reply = await runner.command("hscan", key, cursor, "count", "1000");
    assert(Array.isArray(reply) && Array.isArray(reply[1]), "a page of a hash is answered");
    cursor = String(reply[0]);
    const page = reply[1] as Buffer[];
    for (let index = 0; index + 1 < page.length; index += 2) visit(page[index] as Buffer, page[index + 1] as Buffer);
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

async function faultsOf(runner: ScriptRunner, keys: Keys, lives: readonly QueueLife[]): Promise<string[]> {
  const faults: string[] = [];
  const unacked: Counts = new Map();
  /** What queues count, by their lives; what the record of a task does not tell of its total yet. */
  const ownedBy = new Map<number, Counts>();
  const more: Counts = new Map();
  await scan(runner, keys.taskCounts, (field, value) => {
    if (field.length !== FIELD_BYTES || value.length <= ID_AT) return;
    const id = value.toString("utf8", ID_AT);
    const life = field.readUIntBE(NUMBER_BYTES, NUMBER_BYTES);
    const owned = ownedBy.get(life) ?? new Map();
    add(owned, id, value.readUIntBE(0, NUMBER_BYTES));
    add(more, id, value.readUIntBE(MORE_AT, NUMBER_BYTES));
    ownedBy.set(life, owned);
  });
  for (const life of lives) {
    const owned: Counts = ownedBy.get(life.life) ?? new Map();
    ownedBy.delete(life.life);
    const found = await countMessages(runner, life);
    for (const id of new Set([...owned.keys(), ...found.keys()])) {
      const [counted = 0, there = 0] = [owned.get(id), found.get(id)];
      add(unacked, id, there);
      if (counted !== there)
        faults.push(`queue ${JSON.stringify(life.name)} counts ${counted} messages of task ${JSON.stringify(id)}, and has ${there}`);
    }
  }
  for (const [life, owned] of ownedBy)
    for (const [id, count] of owned)
      faults.push(`${count} messages of task ${JSON.stringify(id)} are counted by queue ${life}, which does not exist`);
  await scan(runner, keys.tasks, (field, record) => {
    const id = String(field);
    const there = unacked.get(id) ?? 0;
    unacked.delete(id);
    if (!isWhole(record)) {
      faults.push(`the record of task ${JSON.stringify(id)} cannot be read`);
      return;
    }
    const numberAt = (at: number): number => record.readUIntBE(at, NUMBER_BYTES);
    const [total, done] = [numberAt(TOTAL_AT) + (more.get(id) ?? 0), numberAt(TOTAL_AT + NUMBER_BYTES)];
    const otherwise = numberAt(FAILED_AT) + numberAt(FAILED_AT + NUMBER_BYTES);
    const hasEnded = (record[STATUS_AT] as number) > 0;
    // What is done is counted when a task has ended; until then it is the rest.
    const counted = hasEnded ? total - done - otherwise : there;
    if (counted !== there) faults.push(`task ${JSON.stringify(id)} counts ${counted} unacked messages, and its queues have ${there}`);
    if (there + otherwise > total) faults.push(`task ${JSON.stringify(id)} counts ${total} messages in all, and has ${there + otherwise}`);
    const isOver = (record[SEALED_AT] === 1 || record[CANCELLING_AT] === 1) && there === 0;
    if (isOver !== hasEnded)
      faults.push(`task ${JSON.stringify(id)} ${isOver ? "has not ended, though all is settled" : "has ended too early"}`);
  });
  for (const [id, count] of unacked) faults.push(`${count} messages are of task ${JSON.stringify(id)}, which does not exist`);
  return faults;
}

/** What is found about the tasks. Looks at every message, a few at a time. */
export async function inspectTasks(runner: ScriptRunner, keys: Keys, lives: readonly QueueLife[]): Promise<Finding> {
  const count = Number(await runner.command("hlen", keys.tasks));
  const ok: Finding = { severity: "ok", check: "tasks", message: `the counts of ${count} tasks agree with their messages` };
  if (count === 0) return ok;
  let faults = await faultsOf(runner, keys, lives);
  // What is counted bit by bit while others work may disagree, but not twice in the same way.
  if (faults.length > 0) {
    const again = new Set(await faultsOf(runner, keys, lives));
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
