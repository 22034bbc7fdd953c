/** The programs that the fault tests run in processes of their own. */

import { serve } from "../../support/child-process-main.ts";
import { contend } from "./contention.ts";
import { killedAtStatement, liveUntilKilled } from "./killed.ts";
import { holdAgainAndAgain, holdWriteLock, releaseWriteLock } from "./lock-holder.ts";
import { poll, stopPolling } from "./poller.ts";
import { consume, endConsuming, produceAndWait, produceCrowd, workAlone } from "./race.ts";
import { callStore, closeStore, openAndClose, openShared } from "./stores.ts";

const programs = {
  callStore,
  closeStore,
  consume,
  contend,
  endConsuming,
  holdAgainAndAgain,
  holdWriteLock,
  killedAtStatement,
  liveUntilKilled,
  openAndClose,
  openShared,
  poll,
  produceAndWait,
  produceCrowd,
  releaseWriteLock,
  stopPolling,
  workAlone,
};

/** What a child of the fault tests can be asked. */
export type FaultPrograms = typeof programs;

serve(programs);
