/** What a program holds to work with queues. */

export {
  type Completion,
  isAllComplete,
  judgeComplete,
  type WaitedBackend,
  type WaitOptions,
  WaitTimeoutError,
  waitComplete,
} from "./wait.ts";
