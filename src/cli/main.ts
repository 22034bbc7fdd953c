#!/usr/bin/env node
/** The program `queuefs`: hands the process to {@link run} and ends with its exit code. */

import { run } from "./program.ts";

process.exitCode = await run(process);
