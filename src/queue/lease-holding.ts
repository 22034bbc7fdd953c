/** One lease keeper per open store and process, however many queues and workers use it. */

import type { Backend } from "../backend/contract.ts";
import { type Clock, systemClock } from "../core/clock.ts";
import { warn } from "./callback.ts";
import { LeaseKeeper } from "./lease-keeper.ts";
import { LeaseThread } from "./lease-thread.ts";

/** What keeps the leases of one backend. */
export interface LeaseHolding {
  readonly keeper: LeaseKeeper;
}

interface Holding extends LeaseHolding {
  thread: LeaseThread | undefined;
  users: number;
}

const holdings = new WeakMap<Backend, Holding>();

/** The holding of a backend, made at first use. */
export function leasesOf(backend: Backend, clock: Clock): LeaseHolding {
  return holdingOf(backend, clock);
}

function holdingOf(backend: Backend, clock: Clock): Holding {
  let holding = holdings.get(backend);
  if (holding === undefined) {
    holding = { keeper: new LeaseKeeper(backend, clock, warn), thread: undefined, users: 0 };
    holdings.set(backend, holding);
  }
  return holding;
}

/**
 * Has the leases of a backend renewed by a second thread as well: handlers that keep the event loop busy would lose theirs otherwise.
 *
 * @returns a function that says that this user no longer needs it; the thread ends with its last user
 */
export function keepLeasesWhileBusy(backend: Backend, clock: Clock): () => Promise<void> {
  const holding = holdingOf(backend, clock);
  holding.users += 1;
  // Threads share no clock but the host's.
  if (holding.thread === undefined && clock === systemClock) {
    holding.thread = LeaseThread.start(backend.reopening, warn);
    holding.keeper.useThread(holding.thread);
  }
  let isReleased = false;
  return async () => {
    if (isReleased) return;
    isReleased = true;
    holding.users -= 1;
    if (holding.users > 0) return;
    const { thread } = holding;
    holding.thread = undefined;
    holding.keeper.useThread(undefined);
    await thread?.close();
  };
}

/** Resolves when the second thread can renew at need; at once where there is none. */
export async function whenThreadIsReady(backend: Backend): Promise<void> {
  await holdings.get(backend)?.thread?.ready;
}
