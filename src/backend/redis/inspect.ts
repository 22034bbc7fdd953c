/** Looks over a whole namespace for `queuefs doctor`. */

import { assert, isQueueFSError } from "../../core/errors.ts";
import type { Finding } from "../../core/message.ts";
import { inspectTasks } from "./inspect-tasks.ts";
import { allQueueKeys, type Keys } from "./keys.ts";
import type { QueueLife, Registry } from "./registry.ts";
import type { ScriptRunner } from "./script-call.ts";
import { askServer, judgeServer } from "./server.ts";

/** Queues whose names are told one by one; of more only the number. */
const MOST_TOLD = 20;

/** What is counted of one queue, by key. */
const COUNTS = [
  ["pending", "llen"],
  ["bodies", "hlen"],
  ["states", "hlen"],
  ["returned", "zcard"],
  ["delayed", "zcard"],
  ["later", "zcard"],
  ["leases", "zcard"],
  ["held", "zcard"],
  ["dead", "zcard"],
  ["graves", "hlen"],
  ["memory", "hlen"],
  ["forget", "zcard"],
] as const;

type Counted = Record<(typeof COUNTS)[number][0], number>;

/** All findings. Takes a few commands per queue, none of them long. */
export async function inspectNamespace(runner: ScriptRunner, registry: Registry, namespace: string, keys: Keys): Promise<Finding[]> {
  const findings = judgeServer(await askServer((name, ...values) => runner.command(name, ...values)));
  const lives: QueueLife[] = [];
  for (;;) {
    const page = await registry.list("", lives.at(-1)?.name ?? "", 1000);
    lives.push(...page.queues);
    if (page.queues.length < 1000) break;
  }
  findings.push(...(await checkCounts(runner, namespace, lives)), await checkTasks(runner, keys, lives));
  findings.push(await checkOrphans(runner, namespace, keys, lives));
  return findings;
}

async function checkTasks(runner: ScriptRunner, keys: Keys, lives: readonly QueueLife[]): Promise<Finding> {
  try {
    return await inspectTasks(runner, keys, lives);
  } catch (error) {
    if (!isQueueFSError(error, "store-corrupt")) throw error;
    return { severity: "error", check: "tasks", message: `the tasks cannot be looked at: ${error.message}` };
  }
}

async function checkCounts(runner: ScriptRunner, namespace: string, lives: readonly QueueLife[]): Promise<Finding[]> {
  const wrong: Finding[] = [];
  for (const life of lives) {
    let faults = await faultsOf(runner, namespace, life);
    // The counts are read one after another: while others work on the queue they may disagree, but not twice in the same way.
    if (faults.length > 0) {
      const again = await faultsOf(runner, namespace, life);
      faults = faults.filter((fault) => again.includes(fault));
    }
    if (faults.length > 0)
      wrong.push({
        severity: "error",
        check: "counters",
        message: `queue ${JSON.stringify(life.name)}: ${faults.join("; ")}; somebody else wrote to the namespace: move the messages to a new queue`,
      });
  }
  if (wrong.length > MOST_TOLD)
    return [...wrong.slice(0, MOST_TOLD), { severity: "error", check: "counters", message: `and ${wrong.length - MOST_TOLD} more queues` }];
  return wrong.length > 0
    ? wrong
    : [{ severity: "ok", check: "counters", message: `the collections of ${lives.length} queues agree with each other` }];
}

async function faultsOf(runner: ScriptRunner, namespace: string, life: QueueLife): Promise<string[]> {
  const keysOfQueue = new Map(allQueueKeys(namespace, life.life).map((key) => [key.slice(key.lastIndexOf(":") + 1), key]));
  const entries = await Promise.all(
    COUNTS.map(async ([part, command]) => {
      try {
        return [part, Number(await runner.command(command, keysOfQueue.get(part) as string))] as const;
      } catch (error) {
        return [part, error instanceof Error ? error.message : String(error)] as const;
      }
    }),
  );
  const broken = entries.filter(([, count]) => typeof count === "string").map(([part, message]) => `${part}: ${message}`);
  if (broken.length > 0) return broken;
  const counts = Object.fromEntries(entries) as Counted;
  const faults: string[] = [];
  const mustEqual = (left: string, leftCount: number, right: string, rightCount: number): void => {
    if (leftCount !== rightCount) faults.push(`${leftCount} ${left} but ${rightCount} ${right}`);
  };
  mustEqual("leases", counts.leases, "messages held", counts.held);
  mustEqual("due times", counts.delayed, "messages delayed", counts.later);
  mustEqual("bodies", counts.bodies, "messages returned, delayed or held", counts.returned + counts.later + counts.held);
  mustEqual("dead letters", counts.dead, "their records", counts.graves);
  mustEqual("ids and requests remembered", counts.memory, "times to forget them", counts.forget);
  if (counts.states > counts.bodies) faults.push(`${counts.states} states but ${counts.bodies} bodies`);
  return faults;
}

async function checkOrphans(runner: ScriptRunner, namespace: string, keys: Keys, lives: readonly QueueLife[]): Promise<Finding> {
  const own = new Set<string>(Object.values(keys));
  for (const life of lives) for (const key of allQueueKeys(namespace, life.life)) own.add(key);
  const trash = await runner.command("smembers", keys.trash);
  assert(Array.isArray(trash), "a list is answered");
  for (const life of trash) for (const key of allQueueKeys(namespace, Number(String(life)))) own.add(key);
  const orphans: string[] = [];
  let cursor = "0";
  do {
    const reply = await runner.command("scan", cursor, "match", `{${namespace}}:*`, "count", "1000");
    assert(Array.isArray(reply) && Array.isArray(reply[1]), "a page of keys is answered");
    cursor = String(reply[0]);
    for (const raw of reply[1] as unknown[]) {
      const key = String(raw);
      if (!own.has(key) && !key.startsWith(keys.session)) orphans.push(key);
    }
  } while (cursor !== "0");
  // A queue made while the keys were listed is none: look again.
  const still: string[] = [];
  for (const key of orphans.slice(0, 1000)) {
    const life = /:(\d+):[a-z]+$/.exec(key)?.[1];
    const record = life === undefined ? 0 : Number(await runner.command("exists", allQueueKeys(namespace, Number(life))[0] as string));
    if (record === 0 && Number(await runner.command("exists", key)) > 0) still.push(key);
  }
  if (still.length === 0) return { severity: "ok", check: "orphans", message: "no keys without a queue" };
  return {
    severity: "warning",
    check: "orphans",
    message: `${still.length} keys belong to no queue, such as ${JSON.stringify(still[0])}; somebody else wrote to the namespace: delete them if you know them`,
  };
}
