/** The worker processes of an import: starting them, hearing what they report, and killing one of them in the middle of its work. */

import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Backend } from "../../src/index.ts";
import { idOf, type Order, queuesOf, type Report, type WorkerSettings } from "./job.ts";
import type { Screen } from "./screen.ts";
import type { Check } from "./verify.ts";

/** How a process ended. */
interface End {
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** One worker process. */
class WorkerProcess {
  readonly number: number;
  /** Steps it has reported as acknowledged. */
  acked = 0;
  /** Resolves when it can begin; rejects when it ends before. */
  readonly ready: Promise<void>;
  /** Resolves when it has ended. */
  readonly ended: Promise<End>;
  readonly #child: ChildProcess;

  constructor(settings: WorkerSettings, onReport: (report: Report, worker: WorkerProcess) => void) {
    this.number = settings.number;
    this.#child = fork(fileURLToPath(new URL("./worker.ts", import.meta.url)), [JSON.stringify(settings)]);
    this.ended = new Promise((resolve) => {
      this.#child.once("exit", (exitCode, signal) => resolve({ exitCode, signal }));
      this.#child.once("error", () => resolve({ exitCode: null, signal: null }));
    });
    this.ready = new Promise((resolve, reject) => {
      this.#child.on("message", (report: Report) => {
        if (report.kind === "ready") resolve();
        if (report.kind === "acked") this.acked += 1;
        onReport(report, this);
      });
      void this.ended.then((end) => reject(new Error(`worker ${this.number} did not start: ${describeEnd(end)}`)));
    });
    // The crew hears of an early end by itself; not everybody waits for this.
    this.ready.catch(() => {});
  }

  get processId(): number {
    return this.#child.pid ?? 0;
  }

  /** Tells the worker something. One that is gone does not hear it. */
  order(order: Order): void {
    if (this.#child.connected) this.#child.send(order, () => {});
  }

  /** Ends the process as a crash would: at once, whatever it is doing. */
  kill(): Promise<End> {
    this.#child.kill("SIGKILL");
    return this.ended;
  }
}

/** What is known of the step that was cut off. */
interface CutOff {
  readonly worker: WorkerProcess;
  readonly queue: string;
  readonly document: string;
  readonly atMs: number;
  /** Which delivery of its message came after it, and to whom. */
  again?: { readonly deliveryCount: number; readonly worker: WorkerProcess };
}

/** The workers of one import. */
export class Crew {
  readonly #store: Backend;
  readonly #settings: Omit<WorkerSettings, "number">;
  readonly #screen: Screen;
  readonly #onFailure: (error: unknown) => void;
  readonly #workers: WorkerProcess[] = [];
  #isCutting = false;
  #isEnding = false;
  #cutOff: CutOff | undefined;

  /** @param onFailure hears of what makes the import fail: a worker that ended although nobody killed it */
  constructor(store: Backend, settings: Omit<WorkerSettings, "number">, screen: Screen, onFailure: (error: unknown) => void) {
    this.#store = store;
    this.#settings = settings;
    this.#screen = screen;
    this.#onFailure = onFailure;
  }

  /**
   * Starts workers and lets them begin together.
   *
   * @param holdAtStep the first of them to come to this step of its own is killed in the middle of it, and replaced
   */
  async start(count: number, holdAtStep?: number): Promise<void> {
    const workers = Array.from({ length: count }, () => this.#startOne(holdAtStep));
    await Promise.all(workers.map((worker) => worker.ready));
    for (const worker of workers) worker.order({ kind: "begin" });
  }

  #startOne(holdAtStep: number | undefined): WorkerProcess {
    const hold = holdAtStep === undefined ? {} : { holdAtStep };
    const settings = { ...this.#settings, number: this.#workers.length + 1, ...hold };
    const worker = new WorkerProcess(settings, (report) => this.#hear(report, worker));
    this.#workers.push(worker);
    this.#screen.event(`worker ${worker.number} starts, process ${worker.processId}`);
    void worker.ended.then((end) => {
      const isExpected = end.signal === "SIGKILL" || (this.#isEnding && end.exitCode === 0);
      if (!isExpected) this.#onFailure(new Error(`worker ${worker.number} ended by itself: ${describeEnd(end)}`));
    });
    return worker;
  }

  #hear(report: Report, worker: WorkerProcess): void {
    if (report.kind === "holding" && !this.#isCutting) {
      this.#isCutting = true;
      this.#cut(worker, report.queue, report.document).catch(this.#onFailure);
    } else if (report.kind === "given-up") {
      this.#screen.event(`worker ${worker.number} gives up on ${report.document}: ${report.reason}`);
    } else if (report.kind === "again" && this.#cutOff?.document === report.document && this.#cutOff.queue === report.queue) {
      this.#cutOff.again ??= { deliveryCount: report.deliveryCount, worker };
      const afterMs = Math.round(performance.now() - this.#cutOff.atMs);
      this.#screen.event(
        `worker ${worker.number} has ${report.document} now: delivery ${report.deliveryCount}, ${afterMs} ms after the kill`,
      );
    }
  }

  /** Kills a worker in the middle of a step, once the store itself says that the message is in processing, and starts another one. */
  async #cut(worker: WorkerProcess, queue: string, document: string): Promise<void> {
    const state = await this.#stateOf(queue, document);
    if (state !== "processing")
      throw new Error(`worker ${worker.number} holds ${document}, yet the store says ${state ?? "nothing of it"}`);
    this.#cutOff = { worker, queue, document, atMs: performance.now() };
    const end = await worker.kill();
    this.#screen.event(`worker ${worker.number} KILLED (${describeEnd(end)}) in the middle of a step: ${queue} of ${document}`);
    for (const other of this.#workers) other.order({ kind: "go-on" });
    await this.start(1);
  }

  async #stateOf(queue: string, document: string): Promise<string | undefined> {
    const { parse, index } = queuesOf(this.#store);
    const { name } = queue === parse.name ? parse : index;
    for (let after: string | undefined; ; ) {
      const page = await this.#store.messages(name, { limit: 1_000, ...(after === undefined ? {} : { after }) });
      const found = page.items.find(({ id }) => id === idOf(this.#settings.folder, document));
      if (found !== undefined || page.next === undefined) return found?.state;
      after = page.next;
    }
  }

  /** Whether a worker died with a step cut off, and somebody else got its message. */
  checkKilled(): Check {
    if (this.#cutOff === undefined) return { passed: false, text: "no worker was killed" };
    const { worker, document, again } = this.#cutOff;
    if (again === undefined) return { passed: false, text: `${document}, cut off with worker ${worker.number}, was not delivered again` };
    return {
      passed: true,
      text: `${document}, cut off with worker ${worker.number}, was delivered again to worker ${again.worker.number}`,
    };
  }

  /** Lets the workers come to their end. */
  async end(): Promise<void> {
    this.#isEnding = true;
    for (const worker of this.#workers) worker.order({ kind: "end" });
    await Promise.all(this.#workers.map((worker) => worker.ended));
    this.#screen.event(`workers ended: ${this.#workers.map(({ number, acked }) => `${number} did ${acked} steps`).join(", ")}`);
  }

  /** Ends whoever is left at once. */
  async kill(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.kill()));
  }
}

function describeEnd({ exitCode, signal }: End): string {
  return signal === null ? `exit code ${exitCode ?? "unknown"}` : `signal ${signal}`;
}
