/** `queuefs task` */

import type { CommandGroup } from "../command.ts";
import { cancel, remove, retry, seal, update } from "../task/change.ts";
import { create } from "../task/create.ts";
import { list } from "../task/list.ts";
import { show } from "../task/show.ts";
import { wait } from "../task/wait.ts";

/** Work on tasks. */
export const task: CommandGroup = {
  name: "task",
  summary: "make, show, list, cancel, retry and wait for tasks: work over many messages that ends with a status",
  examples: [
    {
      title: "A task, worked off and waited for",
      lines: [
        "queuefs mkdir parse",
        "id=$(queuefs task create import --into parse a.txt b.txt)",
        "queuefs work parse --until-complete -- wc -c",
        'queuefs task wait "$id"',
      ],
    },
  ],
  commands: [create, show, list, wait, cancel, retry, update, seal, remove],
};
