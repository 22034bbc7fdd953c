/** queuefs/testing: the conformance suite as data, a model of a store, a clock moved by hand, randomness from a seed. */

export type {
  Capability,
  CaseOptions,
  ConformanceCase,
  ConformanceContext,
  ConformanceHarness,
  ConformanceStore,
} from "./conformance/case.ts";
export { CAPABILITIES } from "./conformance/case.ts";
export { CONFORMANCE_CASES } from "./conformance/index.ts";
export type { TestRunner } from "./conformance/run.ts";
export { assertSound, caseTitle, isSkipped, registerConformance, runCase, skippedTitles } from "./conformance/run.ts";
export { ANY, Correspondence } from "./correspondence.ts";
export type { HistoryOptions, HistoryQueue, HistorySelection, HistoryStep, Reference } from "./history.ts";
export { HISTORY_QUEUES, runHistory } from "./history.ts";
export type { ManualClockStart } from "./manual-clock.ts";
export { ManualClock } from "./manual-clock.ts";
export { ModelStore } from "./model.ts";
export type { ModelAckItem, ModelDequeue, ModelMark, ModelNackItem, ModelNewMessage } from "./model-shapes.ts";
export { SeededRandom } from "./seeded-random.ts";
