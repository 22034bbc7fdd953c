/** Waiting for jobs that a worker completes, which may happen before the call that added the job has answered. */

/** Completed jobs and who waits for them. */
export class Completions {
  readonly #completed = new Set<string>();
  readonly #waiting = new Map<string, () => void>();

  /** Says that a job is completed. */
  complete(id: string): void {
    const resolve = this.#waiting.get(id);
    if (resolve === undefined) {
      this.#completed.add(id);
      return;
    }
    this.#waiting.delete(id);
    resolve();
  }

  /** Resolves when a job is completed. */
  whenComplete(id: string): Promise<void> {
    if (this.#completed.delete(id)) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.set(id, resolve));
  }
}
