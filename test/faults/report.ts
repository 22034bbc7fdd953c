/** What a fault test tells beside whether it passed: seeds that repeat it, and what it measured. */

/** Prints one line. */
export function report(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** A seed that differs from run to run, printed so that a failure can be repeated with it. */
export function newSeed(): number {
  const seed = Math.floor(Math.random() * 2 ** 32);
  report(`seed ${seed}`);
  return seed;
}
