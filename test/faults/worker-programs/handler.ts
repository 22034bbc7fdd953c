/**
 * The handler of the worker programs: each message says in words what is to be done with it, so that a test reads as its messages do. Steps
 * are separated by `;`; a step with `first` before it is done at the first delivery only.
 *
 * - `done`: nothing
 * - `sleep MS`: takes so long, with the event loop turning
 * - `burn MS`: keeps the event loop busy for so long
 * - `hang`: never returns; `hang-alive`: the same, with a timer that keeps the process alive
 * - `throw`: throws
 * - `kill`: kills its process; `exit CODE`: ends it; `crash`: throws in a timer, which nobody catches
 * - `gate`: returns when the test says so
 * - `enqueue QUEUE`: enqueues "done" into another queue
 */

import { setTimeout as sleep } from "node:timers/promises";
import type { HandlerContext } from "../../../src/index.ts";

/** What a step may use. */
export interface HandlerTools {
  readonly enqueue: (queue: string) => Promise<void>;
  /** Resolves when the test has opened the gate. */
  readonly gate: Promise<void>;
}

function never(): Promise<never> {
  return new Promise(() => {});
}

const STEPS: Readonly<Record<string, (argument: string, tools: HandlerTools) => unknown>> = {
  done: () => undefined,
  sleep: (ms) => sleep(Number(ms)),
  burn(ms) {
    const until = performance.now() + Number(ms);
    while (performance.now() < until) {
      // Nothing else can run.
    }
  },
  hang: never,
  "hang-alive"() {
    setInterval(() => {}, 1_000);
    return never();
  },
  throw() {
    throw new Error("thrown on purpose");
  },
  kill() {
    process.kill(process.pid, "SIGKILL");
    return never();
  },
  exit: (code) => process.exit(Number(code)),
  crash() {
    setTimeout(() => {
      throw new Error("crashed on purpose");
    }, 1);
    return never();
  },
  gate: (_none, tools) => tools.gate,
  enqueue: (queue, tools) => tools.enqueue(queue),
};

/** Does what the message says. */
export async function perform(text: string, { deliveryCount }: Pick<HandlerContext, "deliveryCount">, tools: HandlerTools): Promise<void> {
  for (const words of text.split(";").map((step) => step.trim().split(" "))) {
    if (words[0] === "first") {
      if (deliveryCount > 1) continue;
      words.shift();
    }
    const [name = "", argument = ""] = words;
    const step = STEPS[name];
    if (step === undefined) throw new Error(`no step ${name}`);
    await step(argument, tools);
  }
}
