/** All commands, in the order in which the help lists them. */

import type { CommandRow } from "../command.ts";
import { cat } from "./cat.ts";
import { clear } from "./clear.ts";
import { dead } from "./dead.ts";
import { dequeue } from "./dequeue.ts";
import { doctor } from "./doctor.ts";
import { enqueue } from "./enqueue.ts";
import { list } from "./list.ts";
import { make } from "./make.ts";
import { messages } from "./messages.ts";
import { migrate } from "./migrate.ts";
import { peek } from "./peek.ts";
import { remove } from "./remove.ts";
import { ack, extend, nack, release } from "./settle.ts";
import { size } from "./size.ts";
import { status } from "./status.ts";
import { wait } from "./wait.ts";
import { write } from "./write.ts";

/** All commands. */
export const COMMANDS: readonly CommandRow[] = [
  make,
  list,
  remove,
  enqueue,
  dequeue,
  peek,
  ack,
  nack,
  release,
  extend,
  status,
  size,
  messages,
  clear,
  dead,
  wait,
  cat,
  write,
  doctor,
  migrate,
];
