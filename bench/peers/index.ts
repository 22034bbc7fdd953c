/** The peers that are installed. */

import type { Contender } from "../contender.ts";
import { type BeeQueue, beeQueue } from "./bee-queue.ts";
import { type BetterQueue, type BetterQueueStore, betterQueue } from "./better-queue.ts";
import { type Bullmq, bullmq } from "./bullmq.ts";
import { type Liteque, liteque } from "./liteque.ts";
import { INSTALL_PEERS, loadPeer } from "./load-peer.ts";
import { type Plainjob, plainjob } from "./plainjob.ts";

/** Some peers, and why others do not take part. */
export interface Peers {
  readonly contenders: readonly Contender[];
  readonly skipped: readonly string[];
}

async function collect(makers: Readonly<Record<string, (library: unknown) => Contender | Promise<Contender>>>): Promise<Peers> {
  const contenders: Contender[] = [];
  const skipped: string[] = [];
  for (const [name, make] of Object.entries(makers)) {
    const library = await loadPeer(name);
    if (library === undefined) skipped.push(`${name} is not installed (${INSTALL_PEERS})`);
    else contenders.push(await make(library));
  }
  return { contenders, skipped };
}

/** The peers on SQLite. */
export function sqlitePeers(): Promise<Peers> {
  return collect({
    plainjob: (library) => plainjob(library as Plainjob),
    liteque: (library) => liteque(library as Liteque),
    // The store is named: it is compiled when it is installed, and left out where that fails; the queue is there with it.
    "better-queue-sqlite": async (store) => betterQueue((await loadPeer("better-queue")) as BetterQueue, store as BetterQueueStore),
  });
}

/** The peers on Redis. @param port of the server on this host */
export function redisPeers(port: number): Promise<Peers> {
  return collect({
    bullmq: (library) => bullmq(library as Bullmq, port),
    "bee-queue": (library) => beeQueue(library as BeeQueue, port),
  });
}
