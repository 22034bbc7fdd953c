/** What a program holds to work with queues. */

export {
  type Completion,
  DEFAULT_WAIT_POLL_MS,
  isAllComplete,
  judgeComplete,
  WAIT_GAP_MS,
  type WaitedBackend,
  type WaitOptions,
  WaitTimeoutError,
  waitComplete,
} from "./wait.ts";
