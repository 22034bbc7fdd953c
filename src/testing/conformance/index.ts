/** The conformance suite as data: what every backend must do, whatever its store. */

import { boundCases } from "./bounds.ts";
import type { ConformanceCase } from "./case.ts";
import { clearingCases } from "./clearing.ts";
import { closingCases } from "./closing.ts";
import { deadLetterCases } from "./dead-letters.ts";
import { deliveryCases } from "./deliveries.ts";
import { dueCases } from "./due.ts";
import { durabilityCases } from "./durability.ts";
import { enqueueCases } from "./enqueue.ts";
import { forwardingCases } from "./forwarding.ts";
import { markCases } from "./marks.ts";
import { messageIdCases } from "./message-ids.ts";
import { nameCases } from "./names.ts";
import { payloadCases } from "./payloads.ts";
import { queueCases } from "./queues.ts";
import { readingCases } from "./reading.ts";
import { recoveryCases } from "./recovery.ts";
import { requestCases } from "./requests.ts";
import { settlingCases } from "./settling.ts";
import { statisticsCases } from "./statistics.ts";
import { statusCases } from "./status.ts";
import { taskCases } from "./tasks.ts";
import { taskCancelCases } from "./tasks-cancelling.ts";
import { taskFailureCases } from "./tasks-failing.ts";
import { taskKeepingCases } from "./tasks-keeping.ts";
import { taskSealCases } from "./tasks-sealing.ts";
import { togetherCases } from "./together.ts";
import { wakingCases } from "./waking.ts";

/** All cases, in the order of the life of a message. */
export const CONFORMANCE_CASES: readonly ConformanceCase[] = [
  ...queueCases,
  ...nameCases,
  ...enqueueCases,
  ...messageIdCases,
  ...payloadCases,
  ...deliveryCases,
  ...requestCases,
  ...dueCases,
  ...settlingCases,
  ...forwardingCases,
  ...recoveryCases,
  ...deadLetterCases,
  ...readingCases,
  ...clearingCases,
  ...statusCases,
  ...markCases,
  ...statisticsCases,
  ...taskCases,
  ...taskFailureCases,
  ...taskCancelCases,
  ...taskSealCases,
  ...taskKeepingCases,
  ...togetherCases,
  ...wakingCases,
  ...boundCases,
  ...closingCases,
  ...durabilityCases,
];
