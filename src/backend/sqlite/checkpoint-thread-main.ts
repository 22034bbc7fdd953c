/** The thread of checkpoint-thread.ts: a connection of its own that moves the log into the file when asked. */

import { parentPort, workerData } from "node:worker_threads";
import Driver from "better-sqlite3";
import type { CheckpointAnswer, CheckpointData, CheckpointMessage } from "./checkpoint-thread.ts";
import { LogMover } from "./move-log.ts";
import { isFull } from "./sqlite-error.ts";

/** How often it is tried to begin the log anew: each try finds a writer at work about every other time, and waits a millisecond for it. */
const TRIES = 10;

const { path, durability } = workerData as CheckpointData;
const database = new Driver(path, { fileMustExist: true, timeout: 1 });
// Whether what was moved is on the disk before the log begins anew hangs on this connection's setting.
database.pragma(`synchronous = ${durability === "full" ? "FULL" : "NORMAL"}`);
const log = new LogMover(database);

function move(isLong: boolean): void {
  // First all that keeps nobody waiting, so that little is left for the step that does.
  log.move();
  for (let attempt = 1; isLong && attempt <= TRIES; attempt += 1) {
    if (log.beginAnew()) return;
  }
}

parentPort?.on("message", (message: CheckpointMessage) => {
  if (message === "close") {
    database.close();
    parentPort?.close();
    return;
  }
  let answer: CheckpointAnswer = "done";
  try {
    move(message === "begin-anew");
  } catch (error) {
    // Of anything else the writer meets the same when it matters, and tells.
    if (isFull(error)) answer = "full";
  }
  parentPort?.postMessage(answer);
});
