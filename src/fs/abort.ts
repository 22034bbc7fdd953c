/** Letting go of an answer that nobody waits for any more. */

/**
 * The result of `promise`, or a rejection with the signal's reason as soon as it is aborted; then `promise` goes on unheeded. Leaves no
 * listener.
 */
export function unlessAborted<Result>(promise: Promise<Result>, signal: AbortSignal | undefined): Promise<Result> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason);
    const settle = (tell: () => void): void => {
      signal.removeEventListener("abort", onAbort);
      // Aborted in the very turn in which it was answered: the caller counts on the abort.
      if (signal.aborted) onAbort();
      else tell();
    };
    promise.then(
      (result) => settle(() => resolve(result)),
      (error) => settle(() => reject(error)),
    );
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  });
}
