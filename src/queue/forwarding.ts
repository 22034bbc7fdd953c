/** Forwards of one handler: those it looks after itself, and those it left to themselves. */

/** A forward on its way. Remembers whether somebody awaits it, since then its failure is that one's to handle. */
class Forwarding extends Promise<undefined> {
  isObserved = false;

  // What then() makes are plain promises: nobody asks whether those are awaited.
  static override get [Symbol.species](): PromiseConstructor {
    return Promise;
  }

  // biome-ignore lint/suspicious/noThenProperty: a promise that sees who awaits it is this class's purpose
  override then<Result = undefined, Failure = never>(
    onDone?: ((value: undefined) => Result | PromiseLike<Result>) | null,
    onFailed?: ((reason: unknown) => Failure | PromiseLike<Failure>) | null,
  ): Promise<Result | Failure> {
    this.isObserved = true;
    return super.then(onDone, onFailed);
  }
}

/** The forwards that one run of a handler began. */
export class Forwardings {
  readonly #all: Forwarding[] = [];

  /** Adds a forward and gives the promise that the handler gets. */
  add(work: Promise<void>): Promise<void> {
    // Failing unobserved it fails the handler, in `settled`; it is no rejection that nobody handled.
    const forwarding = new Forwarding((resolve, reject) => void work.then(() => resolve(undefined), reject));
    void Promise.prototype.then.call(forwarding, undefined, () => undefined);
    this.#all.push(forwarding);
    return forwarding;
  }

  /** Resolves when all have ended: an ack before that would lose them. @throws the failure of one that the handler neither awaited nor caught */
  async settled(): Promise<void> {
    const left = this.#all.filter(({ isObserved }) => !isObserved);
    await Promise.allSettled(this.#all);
    await Promise.all(left);
  }
}
