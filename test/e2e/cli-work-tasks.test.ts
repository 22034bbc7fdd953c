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

  it("gets with --batch messages of one task, or of none, and is told it in the environment and in each line", async () => {
    await place.enqueue("plain 1");
    await make("owned 1", "owned 2", "owned 3");
    await place.enqueue("plain 2");
    const { output, errors } = await place.cli.shell([
      "export QUEUEFS_TASK=outer",
      `queuefs work q --until-complete --batch 2 -- sh -c 'echo "\\"\${QUEUEFS_TASK-none}\\""; cat'`,
    ]).ended;
    const lines = output
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { data: string; task?: string });
    const heads = lines.map((line) => (typeof line === "string" ? line : [line.data, line.task]));
    expect(heads).toEqual([
      "none",
      ["plain 1", undefined],
      "t",
      ["owned 1", "t"],
      ["owned 2", "t"],
      "t",
      ["owned 3", "t"],
      "none",
      ["plain 2", undefined],
    ]);
    // What was taken and put back is nobody's news.
    expect(errors).toBe("queuefs: 5 acked\n");
  });

  it("gets with --batch what is there of its task, however many tasks there are, and no delivery counts that no program saw", async () => {
    for (let number = 0; number < 40; number += 1) {
      const messages = ["a", "b"].map((payload) => ({ data: Buffer.from(`${payload}${number}`) }));
      await place.backend.createTask({ id: parseTaskId(`t${number}`), type: "import" }, [{ queue: Q, messages }]);
    }
    const { output, errors } = await workOff("echo $QUEUEFS_TASK; cat", "--batch", "10", "-j", "2");
    expect(errors).toBe("queuefs: 80 acked\n");
    const deliveries = [...output.matchAll(/"deliveries":(\d+)/g)].map(([, count]) => count);
    expect(deliveries).toEqual(Array.from({ length: 80 }, () => "1"));
    const told = [...output.matchAll(/^(t\d+)$/gm)].length;
    expect(told).toBeLessThan(80);
    for (let number = 0; number < 40; number += 1)
      expect(await place.backend.task(parseTaskId(`t${number}`))).toMatchObject({ status: "completed", progress: { done: 2 } });
  });

  it("enqueues with --batch for the task of its messages, so that the task does not end before what follows", async () => {
    await place.backend.createQueue(parseQueueName("next"));
    await place.enqueue("plain");
    await make("a", "b");
    expect((await workOff(`${QUEUEFS} enqueue next "for \${QUEUEFS_TASK-none}" >&2; cat > input`, "--batch", "10")).exitCode).toBe(0);
    expect((await place.cli.json("messages", "next")).map(({ data, task }) => [data, task])).toEqual([
      ["for none", undefined],
      ["for t", "t"],
    ]);
    expect(await place.backend.task(T)).toMatchObject({ status: "running", progress: { total: 3, done: 2, unacked: 1 } });
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

  it("leaves alone programs that work on messages of others, also with --batch", async () => {
    await make("a", "b");
    await place.enqueue("plain");
    const gate = place.gate("gate");
    const program = `trap "echo hit; exit 1" TERM; echo "begun \${QUEUEFS_TASK-none}"; read go < gate; echo finished`;
    const working = place.cli.start("work", "q", "--until-complete", "--batch", "10", "-j", "2", ...SHELL, program);
    await working.seen(/begun t/);
    await working.seen(/begun none/);
    await place.backend.cancelTask(T);
    await working.seen(/hit/);
    gate.pass(1);
    const { exitCode, output, errors } = await working.ended;
    expect({ exitCode, lines: output.trim().split("\n").toSorted() }).toEqual({
      exitCode: 0,
      lines: ["begun none", "begun t", "finished", "hit"],
    });
    expect(errors).toMatch(/queuefs: 2 messages removed, since its task was cancelled\nqueuefs: 1 acked, 2 cancelled\n$/);
    expect(await place.backend.task(T)).toMatchObject({ status: "cancelled", progress: { done: 0, cancelled: 2 } });
  });
});

describe("--until-task", () => {
  function workUntil(program: string, ...options: readonly string[]): ReturnType<WorkPlace["cli"]["run"]> {
    return place.cli.run(["work", "q", "--until-task", "t", ...options, ...SHELL, program]);
  }

  it("ends once the task has ended, whatever else is in the queue, with the exit code of task wait", async () => {
    await make("a", "b");
    await place.backend.enqueue(Q, [{ data: Buffer.from("later"), delayMs: 3_600_000 }]);
    expect(await workUntil("cat")).toMatchObject({ exitCode: 0, output: "ab", errors: "queuefs: 2 acked\n" });
    expect(await place.status()).toEqual({ pending: 1, processing: 0 });
    // It has ended before: nothing is taken.
    await place.enqueue("plain");
    expect(await workUntil("cat")).toMatchObject({ exitCode: 0, output: "", errors: "" });
    expect(await place.status()).toEqual({ pending: 2, processing: 0 });
  });

  it("says that the task failed or was cancelled", async () => {
    await make("a", "b");
    expect(await workUntil('[ "$(cat)" = a ] || { echo wrong >&2; exit 65; }')).toMatchObject({
      exitCode: 22,
      errors: expect.stringMatching(
        /queuefs: 1 acked, 1 dead\nqueuefs: task "t" failed, 1 of 2 messages: .*wrong.*; queuefs task show lists them\n$/,
      ),
    });
    expect(await workUntil("cat")).toMatchObject({ exitCode: 22, errors: expect.stringMatching(/^queuefs: task "t" failed/) });
    await place.backend.removeTask(T);
    await make("c");
    const gate = place.gate("gate");
    const working = place.cli.start("work", "q", "--until-task", "t", ...SHELL, "echo begun; read go < gate");
    await working.seen(/begun/);
    await place.backend.cancelTask(T, { reason: "no longer wanted" });
    expect(await working.ended).toMatchObject({
      exitCode: 23,
      errors: expect.stringMatching(/0 acked, 1 cancelled\nqueuefs: task "t" was cancelled: no longer wanted\n$/),
    });
    gate.pass(1);
  });

  it("needs a task that is there, excludes --until-complete, and ends at a signal", async () => {
    expect((await workUntil("cat")).exitCode).toBe(4);
    await make("a");
    expect((await workUntil("cat", "--until-complete")).exitCode).toBe(2);
    const gate = place.gate("gate");
    const working = place.cli.start("work", "q", "--until-task", "t", ...SHELL, "echo begun; read go < gate");
    await working.seen(/begun/);
    working.process.kill("SIGTERM");
    gate.pass(1);
    expect((await working.ended).exitCode).toBe(143);
  });
});
