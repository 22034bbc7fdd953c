/** The thread of checkpoint-thread.ts: a connection of its own that moves the log into the file when asked. */

import { parentPort, workerData } from "node:worker_threads";
import Driver from "better-sqlite3";
import type { CheckpointData } from "./checkpoint-thread.ts";

const { path, durability } = workerData as CheckpointData;
const database = new Driver(path, { fileMustExist: true, timeout: 1 });
// Whether what was moved is on the disk before the log begins anew hangs on this connection's setting.
database.pragma(`synchronous = ${durability === "full" ? "FULL" : "NORMAL"}`);
const checkpoint = database.prepare("PRAGMA wal_checkpoint(PASSIVE)");

parentPort?.on("message", (message: "checkpoint" | "close") => {
  if (message === "close") {
    database.close();
    parentPort?.close();
    return;
  }
  try {
    checkpoint.get();
  } catch {
    // Another process moves it right now, or the disk is full: the writer meets the same when it matters, and tells.
  }
  parentPort?.postMessage("done");
});
