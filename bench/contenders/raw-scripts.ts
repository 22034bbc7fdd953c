/**
 * The limit on Redis: three scripts that do no more than a queue with leases must, a push, a move from the list to a sorted set with the time
 * of the server, and a removal; nothing around them: no checks, no sessions, no repeats, no counts beyond the two. Called one by one, and with
 * as many messages in a call as there are callers.
 */

import { Redis } from "ioredis";
import { type Contender, type Contest, drainWith, type Load, PAYLOAD, runCallers } from "../contender.ts";

const PUSH = "return redis.call('RPUSH', KEYS[1], unpack(ARGV))";
/** An entry is an id of eight bytes and the payload. */
const POP = `
local time = redis.call('TIME')
local due = time[1] * 1000 + 30000
local entries = redis.call('LPOP', KEYS[1], ARGV[1]) or {}
for _, entry in ipairs(entries) do
  local id = string.sub(entry, 1, 8)
  redis.call('ZADD', KEYS[2], due, id)
  redis.call('HSET', KEYS[3], id, entry)
end
return entries`;
const REMOVE = `
local removed = redis.call('ZREM', KEYS[2], unpack(ARGV))
redis.call('HDEL', KEYS[3], unpack(ARGV))
return removed`;
const KEYS = ["raw:pending", "raw:processing", "raw:held"];
const ID_BYTES = 8;
const FILL_BATCH = 1_000;

/** The scripts, one call for each message or one for as many as there are callers. @param port of the server on this host */
export function rawScripts(port: number, kind: "one by one" | "in batches"): Contender {
  return {
    name: kind === "one by one" ? "raw scripts" : "raw batches",
    role: kind === "one by one" ? "per-call" : "limit",
    drainMessages: 20_000,
    open: () => openRaw(port, kind === "in batches"),
  };
}

async function openRaw(port: number, isBatched: boolean): Promise<Contest> {
  const client = new Redis(port, "127.0.0.1");
  const load = async (script: string): Promise<string> => String(await client.script("LOAD", script));
  const [push, pop, remove] = (await Promise.all([PUSH, POP, REMOVE].map(load))) as [string, string, string];
  const call = (script: string, items: readonly (Buffer | number)[]): Promise<unknown> =>
    client.callBuffer("EVALSHA", script, KEYS.length, ...KEYS, ...items);
  let id = 0;
  const entry = (): Buffer => {
    const bytes = Buffer.allocUnsafe(ID_BYTES + PAYLOAD.length);
    id += 1;
    bytes.writeDoubleBE(id);
    bytes.set(PAYLOAD, ID_BYTES);
    return bytes;
  };
  const enqueue = (count: number): Promise<unknown> => call(push, Array.from({ length: count }, entry));
  /** Takes and removes; answers how many. */
  const take = async (count: number): Promise<number> => {
    const entries = (await call(pop, [count])) as Buffer[];
    if (entries.length === 0) return 0;
    const removed = await call(
      remove,
      entries.map((bytes) => bytes.subarray(0, ID_BYTES)),
    );
    return removed as number;
  };
  const runBatches = async (load: Load, batch: (count: number) => Promise<unknown>): Promise<void> => {
    if (!isBatched) return runCallers(load, () => batch(1));
    load.begin();
    for (; !load.isOver(); load.done += load.callers) await batch(load.callers);
    load.end();
  };
  return {
    enqueue: (load) => runBatches(load, enqueue),
    cycle: (load) =>
      runBatches(load, async (count) => {
        await enqueue(count);
        if ((await take(count)) === 0) throw new Error("an entry that was pushed could not be taken");
      }),
    fill: async (count) => {
      for (let left = count; left > 0; left -= FILL_BATCH) await enqueue(Math.min(left, FILL_BATCH));
    },
    drain: async (callers) => {
      if (!isBatched) return drainWith(callers, async () => (await take(1)) === 1);
      let taken = 0;
      for (let more = await take(callers); more > 0; more = await take(callers)) taken += more;
      return taken;
    },
    status: () => Promise.all([client.llen(KEYS[0] as string), client.zcard(KEYS[1] as string)]),
    close: async () => {
      client.disconnect();
    },
  };
}
