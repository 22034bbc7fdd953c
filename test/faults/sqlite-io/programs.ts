/** The programs that run with test/support/file-calls.c loaded. */

import { serve } from "../../support/child-process-main.ts";
import { checkpointAgainAndAgain, chronicle, setUp, stopCheckpoints } from "./chronicle.ts";
import { checkpointOnce, enqueueHeld, openHeld } from "./held.ts";
import { runOnce } from "./scenario.ts";

const programs = { checkpointAgainAndAgain, checkpointOnce, chronicle, enqueueHeld, openHeld, runOnce, setUp, stopCheckpoints };

/** What such a child can be asked. */
export type FileCallPrograms = typeof programs;

serve(programs);
