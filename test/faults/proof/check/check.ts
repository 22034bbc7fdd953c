/** Checks a history against the properties of the design. Each check is a necessary condition, so that each violation is a proof. */

import type { History } from "../operation.ts";
import { settle } from "./bounds.ts";
import { changesOf } from "./changes.ts";
import { checkExistence } from "./existence.ts";
import { Indexer } from "./index-history.ts";
import { checkLiveness } from "./liveness.ts";
import { checkMarks, checkTasks } from "./marks-and-tasks.ts";
import { checkOrder } from "./order.ts";
import { Findings, type Promises, type Report } from "./promises.ts";
import { checkReceipts } from "./receipts.ts";
import { checkSnapshots } from "./snapshots.ts";

/** Checks one history; its time grows with n log n. */
export function check(history: History, promises: Promises): Report {
  const findings = new Findings();
  const indexed = new Indexer(history, promises, findings).index();
  settle(indexed);
  checkExistence(indexed, findings);
  checkReceipts(indexed, findings);
  const changes = changesOf(indexed);
  checkSnapshots(indexed, changes, findings);
  checkOrder(indexed, changes, findings);
  checkMarks(indexed, findings);
  checkTasks(indexed, findings);
  checkLiveness(indexed, findings);
  return findings;
}
