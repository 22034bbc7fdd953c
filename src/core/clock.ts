/** Time, randomness and identity are parameters: a test passes its own and is exact. */

/** A timer that can be called off; calling it off twice is harmless. */
export interface Timer {
  cancel(): void;
}

/** What QueueFS knows of time. */
export interface Clock {
  /**
   * The host's monotonic clock in milliseconds, with fraction. All processes of one boot of one host see the same clock
   * (CLOCK_MONOTONIC), and a step of the wall clock does not move it. Leases are measured with it.
   */
  monotonicMs(): number;
  /** The wall clock, milliseconds since 1970-01-01 UTC. For people and for instants they name, never for leases. */
  wallMs(): number;
  /** Calls `callback` once, not before `delayMs` have passed. The timer does not keep the process alive. */
  setTimer(callback: () => void, delayMs: number): Timer;
}

/** The source of randomness for jitter and receipts. */
export interface Random {
  /** A number in [0, 1). */
  fraction(): number;
  /** An integer in [0, 2^48), hard to guess. */
  token(): number;
}

/** The longest delay that setTimeout takes before it overflows and fires at once: 2^31 - 1 milliseconds. */
const MAX_TIMEOUT_MS = 2_147_483_647;

/** Attempts at the least disturbed look at both clocks. */
const LOOKS = 5;

/**
 * What `performance.now()` is behind the monotonic clock of the host: it is the same clock, counted from the start of the process (or
 * thread), and takes a third of the time. Of several looks that one counts during which the least time passed.
 */
function behindMonotonicMs(): number {
  let leastMs = Number.POSITIVE_INFINITY;
  let behindMs = 0;
  for (let look = 0; look < LOOKS; look += 1) {
    const beforeMs = performance.now();
    const monotonicMs = Number(process.hrtime.bigint()) / 1e6;
    const tookMs = performance.now() - beforeMs;
    if (tookMs >= leastMs) continue;
    leastMs = tookMs;
    behindMs = monotonicMs - beforeMs - tookMs / 2;
  }
  return behindMs;
}

const { performance } = globalThis;
const behindMs = behindMonotonicMs();

/** The real clock of this host. */
export const systemClock: Clock = {
  monotonicMs: () => performance.now() + behindMs,
  wallMs: () => Date.now(),
  setTimer(callback, delayMs) {
    const handle = setTimeout(callback, Math.min(Math.max(0, Math.ceil(delayMs)), MAX_TIMEOUT_MS));
    handle.unref();
    return { cancel: () => clearTimeout(handle) };
  },
};

// Drawing random bytes one token at a time costs a system call each; a block serves many tokens.
const block = new Uint32Array(4096);
let used = block.length;
function word(): number {
  if (used >= block.length) {
    globalThis.crypto.getRandomValues(block);
    used = 0;
  }
  return block[used++] as number;
}

/** The real randomness of this host (Web Crypto). */
export const systemRandom: Random = {
  fraction: () => word() / 2 ** 32,
  token: () => (word() % 2 ** 16) * 2 ** 32 + word(),
};
