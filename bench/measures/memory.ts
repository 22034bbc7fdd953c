/** Memory: QueueFS against a ring and a map, nearly empty and deep. */

import { type Contender, Load } from "../contender.ts";
import { contestOf } from "../contenders/queuefs.ts";
import { ringAndMap } from "../contenders/ring-and-map.ts";
import type { Run } from "../settings.ts";
import { measureHeld, measureSnapshot } from "./depth.ts";
import { measureThroughput, THROUGHPUT } from "./throughput.ts";

function queuefsMemory(run: Run): Contender {
  return {
    name: "QueueFS",
    role: "queuefs",
    drainMessages: 200_000,
    open: async () => contestOf(await run.library.openMemory({ maxMessages: 10_000_000, maxBytes: 8 * 1024 ** 3 })),
  };
}

/** Throughput, shallow and deep, and what depth costs. */
export async function runMemory(run: Run): Promise<void> {
  const measures = THROUGHPUT.filter(({ name }) => name !== "enqueue x1000");
  run.results.begin("memory", {
    title: "Memory: calls per second, awaited",
    base: "QueueFS",
    order: ["QueueFS", "ring and map"],
    plot: { kind: "bars", measures: measures.map(({ name }) => name) },
    note: "The limit keeps no lease, no owner, no order of recovery, no copy of the payload and no counts beyond the two.",
  });
  run.results.begin("memory-processor", {
    title: "Memory: time of the processor per call",
    base: "QueueFS",
    order: ["QueueFS", "ring and map"],
    note: "What the same calls cost the processor, all threads of the process together.",
  });
  const contenders = [queuefsMemory(run), ringAndMap];
  await measureThroughput(run, "memory", contenders, measures);
  await measureDeep(run, contenders);
  run.results.begin("memory-depth", {
    title: "Memory: what a call costs when the store is full",
    base: "QueueFS",
    order: ["QueueFS"],
    note: "Microseconds until the answer, the median.",
  });
  await measureSnapshot(run, "memory-depth", "QueueFS", () => run.library.openMemory());
  await measureHeld(run, "memory-depth", "QueueFS", () => run.library.openMemory());
}

/** The serial cycle, on a queue that is nearly empty and on a deep one. */
export const SHALLOW_CYCLE = "cycle x1, nearly empty";
/** The same, deep. */
export const DEEP_CYCLE = "cycle x1, deep";

/** Both queues are filled before, and take turns. */
async function measureDeep(run: Run, contenders: readonly Contender[]): Promise<void> {
  const { deepMessages, rounds, windowMs } = run.settings;
  for (const contender of contenders) {
    run.tell(`memory: ${DEEP_CYCLE} (${deepMessages} messages), ${contender.name}`);
    const contests = [
      { measure: SHALLOW_CYCLE, contest: await contender.open("") },
      { measure: DEEP_CYCLE, contest: await contender.open("") },
    ];
    await contests[1]?.contest.fill(deepMessages);
    for (let round = 0; round <= rounds; round += 1) {
      for (const { measure, contest } of contests) {
        const load = new Load(1, { durationMs: windowMs });
        await contest.cycle(load);
        if (round > 0) run.results.record("memory", measure, contender.name, "/s", load.perSecond);
      }
    }
    for (const { contest } of contests) await contest.close();
  }
}
