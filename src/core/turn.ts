/** Letting the event loop turn: a program that awaits answers in a loop must not keep timers and sockets from being served. */

/**
 * Counts steps that answer without the event loop turning. Promises and `process.nextTick` both run before any timer or socket, so a
 * caller who awaits one such answer after the other would starve them; every so many steps the answer waits for a turn.
 */
export class TurnCounter {
  readonly #stepsPerTurn: number;
  #steps = 0;

  /** @param stepsPerTurn steps after which a turn is due: few enough to keep timers punctual, many enough to cost nothing */
  constructor(stepsPerTurn: number) {
    this.#stepsPerTurn = stepsPerTurn;
  }

  /** Counts steps; answers whether they have to wait for a turn of the event loop. */
  isTurnDue(steps = 1): boolean {
    this.#steps += steps;
    if (this.#steps < this.#stepsPerTurn) return false;
    this.#steps = 0;
    return true;
  }
}

/** Lets the event loop turn after so many steps, for all callers alike. */
export class TurnGate {
  readonly #counter: TurnCounter;
  #turn: Promise<void> | undefined;

  /** @param stepsPerTurn as of {@link TurnCounter} */
  constructor(stepsPerTurn: number) {
    this.#counter = new TurnCounter(stepsPerTurn);
  }

  /** Counts steps; answers what their caller has to wait for. Once a turn is due, all wait for it, however many they are. */
  pass(steps: number): Promise<void> | undefined {
    if (this.#turn !== undefined) return this.#turn;
    if (!this.#counter.isTurnDue(steps)) return undefined;
    this.#turn = nextTurn().then(() => {
      this.#turn = undefined;
    });
    return this.#turn;
  }
}

/** Resolves after the event loop has turned once. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
