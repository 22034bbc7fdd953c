/** `queuefs task`, and messages of tasks in the other commands. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type CommandLine, openCommandLine } from "../support/command-line.ts";

let cli: CommandLine;
beforeEach(async () => {
  cli = openCommandLine();
  await cli.text("mkdir", "q", "r");
});
afterEach(() => cli.dispose());

const ESCAPE = "\u001b";

/** Makes a task and gives its id. */
async function create(...options: string[]): Promise<string> {
  return (await cli.text("task", "create", "import", ...options)).trim();
}

async function shown(id: string): Promise<Record<string, unknown>> {
  return (await cli.json("task", "show", id))[0] ?? {};
}

async function dataOf(queue: string): Promise<unknown[]> {
  return (await cli.json("messages", queue)).map(({ data, task }) => [data, task]);
}

/** Takes a message of the queue and gives its receipt. */
async function take(queue = "q"): Promise<string> {
  return String((await cli.json("dequeue", queue))[0]?.receipt);
}

describe("task create", () => {
  it("makes a task with its messages, and prints its id", async () => {
    const id = await create("--into", "q", "--resource", "/a b", "--stage", "reading", "--meta", '{"by":["me"]}', "--", "a", "-b");
    expect(id).toMatch(/^t-/);
    expect(await dataOf("q")).toEqual([
      ["a", id],
      ["-b", id],
    ]);
    expect(await shown(id)).toEqual({
      id,
      type: "import",
      resource: "/a b",
      status: "pending",
      stage: "reading",
      progress: { total: 2, done: 0, failed: 0, cancelled: 0, unacked: 2 },
      sealed: true,
      meta: { by: ["me"] },
      createdAt: expect.stringMatching(/Z$/),
      updatedAt: expect.stringMatching(/Z$/),
      failures: [],
    });
  });

  it("takes messages from all that enqueue takes them from", async () => {
    const line = async (input: string, ...options: string[]): Promise<Record<string, unknown>> => {
      const ended = await cli.run(["task", "create", "import", "--into", "q", "--json", ...options], input);
      expect(ended).toMatchObject({ exitCode: 0, errors: "" });
      return JSON.parse(ended.output) as Record<string, unknown>;
    };
    writeFileSync(join(cli.folder, "payload"), "from a file\n");
    const ids = [
      (await line("one\ntwo\n", "--lines")).id,
      (await line("all\nof it\n")).id,
      (await line("", "--file", "payload")).id,
      (await line("", "later", "--delay", "1h")).id,
    ];
    expect(await dataOf("q")).toEqual([
      ["one", ids[0]],
      ["two", ids[0]],
      ["all\nof it\n", ids[1]],
      ["from a file\n", ids[2]],
      ["later", ids[3]],
    ]);
    expect(await line("", "--lines")).toMatchObject({ status: "completed", progress: { total: 0 } });
  });

  it("makes nothing when its id is there already, and says so", async () => {
    expect(await create("--id", "mine", "--into", "q", "a")).toBe("mine");
    const again = await cli.run(["task", "create", "import", "--id", "mine", "--into", "q", "b"]);
    expect(again).toMatchObject({
      exitCode: 0,
      output: "mine\n",
      errors: expect.stringContaining("there already (pending); nothing was stored"),
    });
    expect(await dataOf("q")).toEqual([["a", "mine"]]);
    expect((await cli.run(["task", "create", "export", "--id", "mine", "--into", "q", "b"])).exitCode).toBe(6);
    expect((await cli.run(["task", "create", "import", "--id", "t-mine", "--into", "q", "b"])).exitCode).toBe(2);
  });

  it("is refused, and stores nothing, when it is used wrongly", async () => {
    const wrong = [
      [],
      ["a"],
      ["--lines"],
      ["--delay", "1s", "--open"],
      ["--into", "q", "--lines", "a"],
      ["--into", "q", "a", "--lease", "1m"],
    ];
    for (const options of [...wrong, ["--into", "q", "a", "--meta", "{x}"]]) {
      expect({ options, exitCode: (await cli.run(["task", "create", "import", ...options])).exitCode }).toEqual({ options, exitCode: 2 });
    }
    expect((await cli.run(["task", "create", "import", "--into", "nope", "a"])).exitCode).toBe(4);
    const tooMany = await cli.run(["task", "create", "import", "--into", "q", "--lines"], "x\n".repeat(10_001));
    expect(tooMany).toMatchObject({ exitCode: 7, output: "", errors: expect.stringContaining("--open") });
    expect(await cli.json("task", "list")).toEqual([]);
    expect(await dataOf("q")).toEqual([]);
  });
});

describe("task create without a message", () => {
  it("is refused where all of standard input would be the message and there is none, as when TYPE was forgotten", async () => {
    for (const options of [[], ["--open"], ["--delay", "1s"]]) {
      expect(await cli.run(["task", "create", "--into", "q", "x", ...options], "")).toMatchObject({
        exitCode: 2,
        output: "",
        errors: expect.stringMatching(/no message: none was given after TYPE, .* nothing was stored/),
      });
    }
    expect(await cli.json("task", "list")).toEqual([]);
    const id = await create("--into", "q", "");
    expect(await dataOf("q")).toEqual([["", id]]);
    // A queue takes an empty message as any other.
    await cli.text("enqueue", "q");
    expect(await dataOf("q")).toHaveLength(2);
  });
});

describe("an open task", () => {
  it("takes messages until it is sealed, and does not end before", async () => {
    const id = await create("--open", "--into", "q", "first");
    await cli.text("enqueue", "r", "second", "--task", id);
    await cli.text("ack", "q", await take());
    await cli.text("ack", "r", await take("r"));
    expect(await shown(id)).toMatchObject({ status: "pending", sealed: false, progress: { total: 2, done: 2 } });
    expect(await cli.text("task", "seal", id)).toBe(`sealed ${id}\n`);
    expect(await shown(id)).toMatchObject({ status: "completed", sealed: true });
    expect(await cli.run(["task", "seal", id])).toMatchObject({
      exitCode: 20,
      output: "",
      errors: expect.stringContaining("sealed before"),
    });
    const late = await cli.run(["enqueue", "q", "--task", id]);
    expect(late).toMatchObject({ exitCode: 20, output: "", errors: expect.stringContaining("takes no more work") });
    expect((await cli.run(["enqueue", "q", "x", "--task", "nope"])).exitCode).toBe(4);
    expect((await cli.run(["enqueue", "q", "x", "--task", "a b"])).exitCode).toBe(2);
    expect(await dataOf("q")).toEqual([]);
  });

  it("fails when its producer says so, or its lease ends before it is sealed", async () => {
    const failed = await create("--open");
    expect(await cli.json("task", "seal", failed, "--error", "the disk is full")).toMatchObject([{ id: failed, status: "failed" }]);
    const ended = await cli.run(["task", "wait", failed]);
    expect(ended).toMatchObject({ exitCode: 22, errors: `queuefs: task "${failed}" failed: the disk is full\n` });
    const forgotten = await create("--open", "--lease", "200ms");
    expect(await cli.run(["task", "wait", forgotten, "--timeout", "60s"])).toMatchObject({
      exitCode: 22,
      errors: expect.stringContaining("did not renew its lease"),
    });
    expect(await cli.run(["task", "seal", forgotten])).toMatchObject({
      exitCode: 20,
      errors: expect.stringMatching(
        /was not sealed in time, and is failed: its producer ended, or did not renew its lease, .*; nothing changed\n$/,
      ),
    });
    const unwanted = await create("--open");
    await cli.text("task", "cancel", unwanted, "--reason", "too late");
    expect(await cli.run(["task", "seal", unwanted])).toMatchObject({
      exitCode: 20,
      errors: `queuefs: task "${unwanted}" was cancelled: too late; nothing changed\n`,
    });
    expect(await cli.run(["task", "seal", failed])).toMatchObject({
      exitCode: 20,
      errors: `queuefs: task "${failed}" was sealed before, and is failed: the disk is full; nothing changed\n`,
    });
  });
});

describe("enqueue", () => {
  it("takes the task of the environment, unless told otherwise or in another store", async () => {
    const id = await create("--open");
    const other = await create("--open");
    const ended = await cli.shell([
      `export QUEUEFS_TASK=${id}`,
      "queuefs enqueue q around",
      `queuefs enqueue q named --task ${other}`,
      "queuefs enqueue q detached --no-task",
      `queuefs enqueue q again --store ${cli.store}`,
      "queuefs mkdir q --store sqlite:other.db",
      "queuefs enqueue q elsewhere --store sqlite:other.db",
      "QUEUEFS_TASK= queuefs enqueue q unset",
    ]).ended;
    expect(ended).toMatchObject({ exitCode: 0, errors: "" });
    expect(await dataOf("q")).toEqual([
      ["around", id],
      ["named", other],
      ["detached", undefined],
      ["again", id],
      ["unset", undefined],
    ]);
  });

  it("refuses a task and none at once, in any order", async () => {
    for (const options of [
      ["--task", "a", "--no-task"],
      ["--no-task", "--task=a"],
    ]) {
      expect(await cli.run(["enqueue", "q", "x", ...options])).toMatchObject({
        exitCode: 2,
        errors: "queuefs: give --task or --no-task, not both\n",
      });
    }
    expect(await dataOf("q")).toEqual([]);
  });
});

describe("messages of a task", () => {
  it("name it wherever they are shown, and nowhere else", async () => {
    await cli.text("enqueue", "q", "nobody's");
    for (const command of [
      ["messages", "q"],
      ["peek", "q"],
    ])
      expect(await cli.text(...command)).not.toMatch(/task/i);
    const id = await create("--into", "q", "owned");
    const [header, first, second] = (await cli.text("messages", "q")).split("\n");
    expect(header).toMatch(/BYTES {2}TASK +DATA$/);
    expect(first).toMatch(/ - +nobody's$/);
    expect(second).toMatch(new RegExp(` ${id} +owned$`));
    expect(await cli.text("dequeue", "q")).not.toMatch(/^task/m);
    expect(await cli.text("peek", "q")).toMatch(new RegExp(`^task +${id}$`, "m"));
    const [taken] = await cli.json("dequeue", "q");
    expect(taken).toMatchObject({ data: "owned", task: id });
    await cli.text("nack", "q", String(taken?.receipt), "--give-up", "--reason", "bad");
    expect(await cli.text("dead", "q")).toMatch(new RegExp(`TASK +DATA\n.* ${id} +owned\n$`));
    expect(await cli.json("dead", "q")).toMatchObject([{ task: id }]);
  });
});

describe("task show", () => {
  it("describes a task and its failed messages for people, and steers no terminal", async () => {
    const id = await create("--into", "q", "--resource", `${ESCAPE}[2J`, "a", "b", "c");
    for (const reason of [`${ESCAPE}]0;x`, "second"]) await cli.text("nack", "q", await take(), "--give-up", "--reason", reason);
    const text = await cli.text("task", "show", id);
    expect(text).not.toContain(ESCAPE);
    expect(text).toMatch(/^status +running$/m);
    expect(text).toMatch(/^progress +0 of 3 done, 2 failed, 1 unacked$/m);
    expect(text).toMatch(/^error .*message "m-\S+" of queue "q"/m);
    expect(text).toMatch(/^QUEUE +FAILED MESSAGE +DIED +REASON$/m);
    expect(text).toMatch(/^q +m-\S+ +\S+Z +second$/m);
    expect(await cli.text("task", "show", id, "-n", "1")).toMatch(/… and more; -n shows more than 1\n$/);
    expect(await cli.json("task", "show", id, "-n", "1")).toMatchObject([{ failures: [{ queue: "q" }], moreFailures: true }]);
    expect(await shown(id)).toMatchObject({
      failures: [
        { queue: "q", id: expect.stringMatching(/^m-/), deliveries: 1 },
        { reason: "second", diedAt: expect.stringMatching(/Z$/) },
      ],
    });
    expect((await cli.run(["task", "show", "nope"])).exitCode).toBe(4);
  });
});

describe("task list", () => {
  it("lists the newest first, filtered and cut as asked", async () => {
    const old = await create("--into", "q", "--resource", "/x", "a");
    const other = (await cli.text("task", "create", "export", "--into", "q", "b")).trim();
    await cli.text("task", "cancel", old);
    const ids = async (...options: string[]): Promise<unknown[]> => (await cli.json("task", "list", ...options)).map(({ id }) => id);
    expect(await ids()).toEqual([other, old]);
    expect(await ids("--type", "export")).toEqual([other]);
    expect(await ids("--status", "cancelled")).toEqual([old]);
    expect(await ids("--resource", "/x")).toEqual([old]);
    expect(await ids("--since", "1h")).toEqual([other, old]);
    expect(await ids("--until", "1h")).toEqual([]);
    expect(await ids("--since", "2000-01-01", "--until", "2001-01-01")).toEqual([]);
    expect(await cli.text("task", "list")).toMatch(
      new RegExp(
        `^ID +TYPE +STATUS +DONE +FAILED +CANCELLED +UNACKED +TOTAL +CREATED +STAGE +RESOURCE\n${other} +export +pending +0 +0 +0 +1 +1 .*\n${old} +import +cancelled +0 +0 +1 +0 +1 .* /x\n$`,
      ),
    );
    expect(await cli.run(["task", "list", "-n", "1", "--json"])).toMatchObject({
      exitCode: 0,
      output: expect.stringMatching(/^\{[^\n]*\}\n$/),
      errors: '{"note":"there are more than 1; -n lists more"}\n',
    });
    expect(await cli.run(["task", "list", "-n", "2"])).toMatchObject({ errors: "" });
    expect((await cli.run(["task", "list", "--status", "over"])).exitCode).toBe(2);
    for (const instant of ["tomorrow", "2026-13-45"])
      expect(await cli.run(["task", "list", "--since", instant])).toMatchObject({
        exitCode: 2,
        errors: expect.stringContaining(
          `an instant, such as 2026-01-31T12:00:00Z, or a duration before now, such as 15m, 2h or 1d, got "${instant}"`,
        ),
      });
  });
});

describe("task cancel", () => {
  it("removes what is pending, and ends when what is in processing is settled", async () => {
    const id = await create("--into", "q", "a", "b");
    const receipt = await take();
    expect(await cli.text("task", "cancel", id, "--reason", "no longer wanted")).toBe(`cancelling ${id}\n`);
    expect(await cli.json("status", "q")).toEqual([{ queue: "q", pending: 0, processing: 1 }]);
    expect(await cli.text("nack", "q", receipt)).toBe(`cancelled ${receipt}\n`);
    const ended = await cli.run(["task", "wait", id]);
    expect(ended).toMatchObject({ exitCode: 23, errors: `queuefs: task "${id}" was cancelled: no longer wanted\n` });
    expect(await cli.json("task", "cancel", id)).toMatchObject([{ status: "cancelled", progress: { cancelled: 2 } }]);
    const done = await create("--into", "q", "a");
    await cli.text("ack", "q", await take());
    expect(await cli.run(["task", "cancel", done])).toMatchObject({
      exitCode: 0,
      output: `completed ${done}\n`,
      errors: expect.stringContaining("ended before"),
    });
    expect((await cli.run(["task", "cancel", "nope"])).exitCode).toBe(4);
  });
});

describe("task retry", () => {
  it("gives the failed messages of an ended task to a new one, and waits for it when asked", async () => {
    const id = await create("--into", "q", "--resource", "/x", "a");
    await cli.text("nack", "q", await take(), "--give-up", "--reason", "bad");
    const again = (await cli.text("task", "retry", id)).trim();
    expect(again).not.toBe(id);
    expect(await shown(again)).toMatchObject({ retryOf: id, resource: "/x", status: "pending", progress: { total: 1 } });
    await cli.text("nack", "q", await take(), "--give-up", "--reason", "bad again");
    const third = cli.start("task", "retry", again, "--wait");
    await third.seen(/^t-\S+\n.* 0 of 1 done, 1 unacked\n/);
    await cli.text("ack", "q", await take());
    expect(await third.ended).toMatchObject({ exitCode: 0, output: expect.stringMatching(/ {2}completed {2}1 of 1 done\n$/), errors: "" });
    expect((await cli.run(["task", "retry", id])).exitCode).toBe(4);
    expect((await cli.run(["task", "retry", id, "--timeout", "1s"])).exitCode).toBe(2);
  });

  it("gives them back to a task that goes on", async () => {
    const id = await create("--into", "q", "a", "b");
    await cli.text("nack", "q", await take(), "--give-up");
    expect(await cli.text("task", "retry", id)).toBe(`${id}\n`);
    expect(await shown(id)).toMatchObject({ progress: { failed: 0, unacked: 2 } });
  });
});

describe("task update and task remove", () => {
  it("change what is said of a task, and take it away once it has ended", async () => {
    const id = await create("--into", "q", "a");
    expect(await cli.text("task", "update", id, "--stage", "parsing", "--result", "[1]", "--meta", "null")).toBe(`updated ${id}\n`);
    expect(await shown(id)).toMatchObject({ stage: "parsing", result: [1], meta: null });
    expect((await cli.run(["task", "update", id])).exitCode).toBe(2);
    expect((await cli.run(["task", "remove", id])).exitCode).toBe(21);
    await cli.text("ack", "q", await take());
    expect((await cli.run(["task", "update", id, "--stage", "x"])).exitCode).toBe(20);
    const other = await create("--into", "q", "--lines");
    expect(await cli.text("task", "remove", id, other)).toBe(`removed ${id}\nremoved ${other}\n`);
    expect((await cli.run(["task", "remove", id])).exitCode).toBe(4);
  });
});

describe("task wait", () => {
  it("writes a line for each change into a pipe, and ends with the task", async () => {
    const id = await create("--into", "q", "a", "b");
    const waiting = cli.start("task", "wait", id);
    await waiting.seen(/Z {2}pending {2}0 of 2 done, 2 unacked\n/);
    await cli.text("ack", "q", await take());
    await waiting.seen(/running {2}1 of 2 done, 1 unacked\n/);
    await cli.text("task", "update", id, "--stage", "the last one");
    await waiting.seen(/running {2}1 of 2 done, 1 unacked {2}the last one\n/);
    await cli.text("ack", "q", await take());
    const { exitCode, output, errors } = await waiting.ended;
    expect({ exitCode, errors }).toEqual({ exitCode: 0, errors: "" });
    expect(output).toMatch(/\n\S+Z {2}completed {2}2 of 2 done {2}the last one\n$/);
    expect(await cli.json("task", "wait", id)).toMatchObject([{ id, status: "completed" }]);
  });

  it("tells the first failure and the count", async () => {
    const id = await create("--into", "q", "a", "b", "c");
    for (const reason of ["first", "second"]) await cli.text("nack", "q", await take(), "--give-up", "--reason", reason);
    await cli.text("ack", "q", await take());
    const { exitCode, output, errors } = await cli.run(["task", "wait", id]);
    expect(exitCode).toBe(22);
    expect(output).toMatch(/failed {2}1 of 3 done, 2 failed\n$/);
    expect(errors).toMatch(/^queuefs: task "\S+" failed, 2 of 3 messages: first \(message "m-\S+" of queue "q"\); .*\n$/);
    const json = await cli.run(["task", "wait", id, "--json"]);
    expect(JSON.parse(json.errors)).toMatchObject({ error: { code: "task-failed", exitCode: 22 } });
  });

  it("tells how many of the failed messages are dead letters still", async () => {
    const ended = async (id: string): Promise<string> => {
      const { exitCode, errors } = await cli.run(["task", "wait", id]);
      expect(exitCode).toBe(22);
      return errors;
    };
    const cleared = await create("--into", "q", "a", "b");
    await cli.text("clear", "q");
    expect(await ended(cleared)).toMatch(
      /failed, 2 of 2 messages: .*; none of them is a dead letter now: they were removed, or tried again\n$/,
    );
    const mixed = await create("--into", "q", "a", "b", "c");
    await cli.text("nack", "q", await take(), "--give-up", "--reason", "bad");
    await cli.text("clear", "q");
    expect(await ended(mixed)).toMatch(/failed, 3 of 3 .*; queuefs task show lists 1 of them, the others were removed, or tried again\n$/);
    const listed = await create("--into", "q", "a");
    await cli.text("nack", "q", await take(), "--give-up");
    expect(await ended(listed)).toMatch(/failed, 1 of 1 .*; queuefs task show lists them\n$/);
    await cli.text("task", "retry", listed);
    expect(await ended(listed)).toMatch(/; none of them is a dead letter now: /);
  });

  it("times out with the last state", async () => {
    const id = await create("--into", "q", "a");
    for (const timeout of ["0", "50ms"]) {
      const { exitCode, output, errors } = await cli.run(["task", "wait", id, "--timeout", timeout]);
      expect(exitCode).toBe(8);
      expect(output).toMatch(/^\S+Z {2}pending {2}0 of 1 done, 1 unacked\n$/);
      expect(errors).toContain("has not ended after");
    }
    expect((await cli.run(["task", "wait", "nope"])).exitCode).toBe(4);
  });

  it("ends at a signal", async () => {
    const id = await create("--into", "q", "a");
    const waiting = cli.start("task", "wait", id);
    await waiting.seen(/pending/);
    waiting.process.kill("SIGINT");
    expect(await waiting.ended).toMatchObject({ exitCode: 130, errors: "" });
  });

  it("shows a bar on a terminal, and the last state in its place", async () => {
    const id = await create("--into", "q", "--stage", "reading", "a", "b", "c", "d");
    const waiting = cli.startOnTerminal("task", "wait", id);
    await waiting.seen(/0% \| 0 of 4 done \| 0\.0\/s \| time left unknown \| reading/);
    await cli.text("nack", "q", await take(), "--give-up");
    await cli.text("ack", "q", await take());
    await waiting.seen(/50% \| 1 of 4 done, 1 failed \|/);
    for (let left = 0; left < 2; left += 1) await cli.text("ack", "q", await take());
    const { exitCode, output } = await waiting.ended;
    expect(exitCode).toBe(22);
    expect(output).toMatch(/\[\?25h[^%]*\[2K[^%]*failed {2}3 of 4 done, 1 failed {2}reading\r\nqueuefs: task/);
  });
});

describe("tasks as files", () => {
  it("are read and listed by cat and ls", async () => {
    const id = await create("--into", "q", "a");
    expect(JSON.parse(await cli.text("cat", `/.tasks/${id}`))).toMatchObject({ id, status: "pending" });
    expect(await cli.text("ls", "/.tasks")).toBe(`${id}\n`);
    expect(await cli.text("ls", "-a")).toBe(".tasks\nq\nr\n");
    expect(await cli.text("ls")).toBe("q\nr\n");
    expect(await cli.text("ls", "-l", "/.tasks")).toMatch(new RegExp(`^0444 +task +- +- +${id}$`, "m"));
    const waiting = cli.start("cat", `/.tasks/${id}/wait`);
    await cli.text("ack", "q", await take());
    expect(JSON.parse((await waiting.ended).output)).toMatchObject({ id, status: "completed" });
    expect((await cli.run(["write", `/.tasks/${id}`, "x"])).exitCode).toBe(13);
  });

  it("are removed by rm once they have ended, and nothing else there is", async () => {
    const id = await create("--into", "q", "a");
    const path = `/.tasks/${id}`;
    expect((await cli.run(["rm", path])).exitCode).toBe(21);
    await cli.text("ack", "q", await take());
    for (const other of ["/.tasks", ".tasks/", `${path}/wait`]) {
      expect(await cli.run(["rm", "-r", other])).toMatchObject({ exitCode: 13, errors: expect.stringContaining("cannot be removed") });
    }
    expect(await cli.text("rm", path)).toBe(`removed ${path}\n`);
    const other = await create("--into", "q", "--lines");
    expect(await cli.json("rm", "r", `.tasks/${other}`)).toEqual([
      { path: "r", removed: 1 },
      { path: `/.tasks/${other}`, removed: 1 },
    ]);
    expect((await cli.run(["rm", path])).exitCode).toBe(4);
    expect((await cli.run(["rm", "/.tasks/a b"])).exitCode).toBe(4);
    expect((await cli.run(["rm", "/.hidden"])).exitCode).toBe(2);
  });
});

describe("help", () => {
  it("leads to the commands of tasks", async () => {
    expect(await cli.run(["task"])).toMatchObject({
      exitCode: 2,
      output: "",
      errors: "queuefs: name a command; queuefs task --help lists them\n",
    });
    expect(await cli.run(["task", "craete"])).toMatchObject({
      exitCode: 2,
      errors: "queuefs: unknown command 'craete'\n(Did you mean create?)\n",
    });
    for (const words of [
      ["help", "task"],
      ["task", "--help"],
    ])
      expect(await cli.text(...words)).toMatch(/^ {2}create /m);
    expect(await cli.text("task", "help", "create")).toContain("Usage: queuefs task create");
  });
});
