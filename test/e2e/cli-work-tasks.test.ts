/** `queuefs work` on messages that tasks own: what programs are told, what they enqueue, and their end when a task is cancelled. */

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseQueueName, parseTaskId } from "../../src/core/names.ts";
import { openWorkPlace, QUEUEFS, type WorkPlace } from "../support/work-place.ts";

const Q = parseQueueName("q");
const SHELL = ["--", "sh", "-c"];
const T = parseTaskId("t");

let place: WorkPlace;
beforeEach(async () => {
  place = await openWorkPlace();
});
afterEach(() => place.dispose());

/** Makes the task `t` with these messages. */
async function make(...payloads: readonly string[]): Promise<void> {
  const messages = payloads.map((payload) => ({ data: Buffer.from(payload) }));
  await place.backend.createTask({ id: T, type: "import" }, [{ queue: Q, messages }]);
}

function workOff(program: string, ...options: readonly string[]): ReturnType<WorkPlace["cli"]["run"]> {
  return place.cli.run(["work", "q", "--until-complete", ...options, ...SHELL, program]);
}

describe("a program", () => {
  it("is told the task of its message, and none where there is none", async () => {
    await make("owned");
    await place.enqueue("plain");
    const { output } = await place.cli.shell([
      "export QUEUEFS_TASK=outer",
      `queuefs work q --until-complete -- sh -c 'echo "$(cat) \${QUEUEFS_TASK-none}"'`,
    ]).ended;
    expect(output.trim().split("\n").toSorted()).toEqual(["owned t", "plain none"]);
  });

  it("is told with --batch in each line, and not in the environment", async () => {
    await make("owned");
    await place.enqueue("plain");
    const { output } = await place.cli.shell([
      "export QUEUEFS_TASK=outer",
      `queuefs work q --until-complete --batch 10 -- sh -c 'cat; echo "\${QUEUEFS_TASK-none}"'`,
    ]).ended;
    const lines = output.trim().split("\n");
    expect(lines.pop()).toBe("none");
    expect(lines.map((line) => JSON.parse(line) as object)).toEqual([
      expect.objectContaining({ data: "owned", task: "t" }),
      expect.not.objectContaining({ task: expect.anything() }),
    ]);
  });

  it("enqueues for its task, so that the task ends with the last of all that came of it", async () => {
    await make("3");
    const program = `read n; [ "$n" = 0 ] && exit; ${QUEUEFS} enqueue q $((n - 1)) $((n - 1)) >&2`;
    const waiting = place.cli.run(["task", "wait", "t"]);
    expect((await workOff(program, "-j", "2")).exitCode).toBe(0);
    expect((await waiting).exitCode).toBe(0);
    expect(await place.backend.task(T)).toMatchObject({ status: "completed", progress: { total: 15, done: 15 } });
  }, 300_000);
});

describe("cancelling a task", () => {
  it("ends its running programs and removes their messages", async () => {
    await make("a", "b");
    place.gate("gate");
    const gone = place.gone("alive");
    const working = place.cli.start("work", "q", "--until-complete", ...SHELL, "exec 9> alive; echo begun; read go < gate");
    await working.seen(/begun/);
    await place.cli.text("task", "cancel", "t", "--reason", "no longer wanted");
    await gone;
    expect(await working.ended).toMatchObject({
      exitCode: 0,
      output: "begun\n",
      errors: expect.stringMatching(/^queuefs: message "m-\S+" removed, since its task was cancelled\nqueuefs: 0 acked, 1 cancelled\n$/),
    });
    expect(await place.backend.task(T)).toMatchObject({ status: "cancelled", progress: { total: 2, cancelled: 2 } });
  });

  it("counts as cancelled what a program finishes after it was told to end", async () => {
    await make("a");
    place.gate("gate");
    const program = `trap "echo hit; exit 0" TERM; echo begun; while :; do read go < gate; done`;
    const working = place.cli.start("work", "q", "--until-complete", ...SHELL, program);
    await working.seen(/begun/);
    await place.backend.cancelTask(T);
    const { exitCode, output, errors } = await working.ended;
    expect({ exitCode, output }).toEqual({ exitCode: 0, output: "begun\nhit\n" });
    expect(errors).toMatch(/0 acked, 1 cancelled\n$/);
    expect(await place.backend.task(T)).toMatchObject({ status: "cancelled", progress: { cancelled: 1 } });
  });

  it("leaves alone a program that works on messages of others too", async () => {
    await make("a");
    await place.enqueue("plain");
    const gate = place.gate("gate");
    const program = `trap "echo hit" TERM; echo begun; read go < gate; echo finished`;
    const working = place.cli.start("work", "q", "--until-complete", "--batch", "10", ...SHELL, program);
    await working.seen(/begun/);
    await place.backend.cancelTask(T);
    // The task is looked at many times meanwhile.
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    gate.pass(1);
    expect(await working.ended).toMatchObject({ exitCode: 0, output: "begun\nfinished\n", errors: "queuefs: 2 acked\n" });
    expect(await place.backend.task(T)).toMatchObject({ status: "cancelled", progress: { done: 1, cancelled: 0 } });
  });
});
