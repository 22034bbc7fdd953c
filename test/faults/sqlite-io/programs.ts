/** The programs that run with test/support/file-calls.c loaded. */

import { serve } from "../../support/child-process-main.ts";
import { runOnce } from "./scenario.ts";

const programs = { runOnce };

/** What such a child can be asked. */
export type FileCallPrograms = typeof programs;

serve(programs);
