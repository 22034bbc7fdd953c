/** Status, watching and waiting, in a pipe and on a terminal. */

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type CommandLine, openCommandLine } from "../support/command-line.ts";

let cli: CommandLine;
beforeEach(async () => {
  cli = openCommandLine();
  await cli.text("mkdir", "a", "b", "deep/c");
});
afterEach(() => cli.dispose());

const ESCAPE = "\u001b";
const CTRL_C = "\u0003";

describe("status", () => {
  it("shows the named queues, those under a path, or all", async () => {
    await cli.text("enqueue", "a", "1", "2");
    await cli.text("dequeue", "a");
    expect(await cli.text("status")).toBe(
      "QUEUE   PENDING  PROCESSING\na             1           1\nb             0           0\ndeep/c        0           0\ntotal         1           1\nnot complete: 2 unacknowledged\n",
    );
    expect(await cli.text("status", "b")).toBe(
      "QUEUE  PENDING  PROCESSING\nb            0           0\ncomplete: nothing is unacknowledged\n",
    );
    expect(await cli.json("status", "b", "/a", "b")).toEqual([
      { queue: "b", pending: 0, processing: 0 },
      { queue: "a", pending: 1, processing: 1 },
    ]);
    expect(await cli.json("status", "--under", "deep")).toEqual([{ queue: "deep/c", pending: 0, processing: 0 }]);
    expect(await cli.json("status", "--under", "/")).toHaveLength(3);
    expect(await cli.run(["status", "a", "nope"])).toMatchObject({ exitCode: 4, output: "" });
    expect((await cli.run(["status", "a", "--under", "deep"])).exitCode).toBe(2);
  });
});

describe("status --watch", () => {
  it("writes a line for each change into a pipe, and ends with Ctrl-C", async () => {
    const watching = cli.start("status", "a", "b", "--watch");
    await watching.seen(/ {2}pending 0 {2}processing 0 {2}complete {2}a=0\/0 b=0\/0\n/);
    await cli.text("enqueue", "a", "1", "2");
    await watching.seen(/ {2}pending 2 {2}processing 0 {2}a=2\/0 b=0\/0\n/);
    await cli.text("dequeue", "a");
    await watching.seen(/ {2}pending 1 {2}processing 1 {2}a=1\/1 b=0\/0\n/);
    watching.process.kill("SIGINT");
    expect(await watching.ended).toMatchObject({ exitCode: 130, errors: "" });
  });

  it("writes each snapshot as one line of JSON", async () => {
    const watching = cli.start("status", "a", "b", "--watch", "--json");
    await watching.seen(/\n/);
    await cli.text("enqueue", "b", "1");
    await watching.seen(/\n.*\n/);
    watching.process.kill("SIGTERM");
    const { exitCode, output } = await watching.ended;
    expect(exitCode).toBe(143);
    expect(
      output
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line)),
    ).toEqual([
      {
        at: expect.stringMatching(/Z$/),
        complete: true,
        queues: [
          { queue: "a", pending: 0, processing: 0 },
          { queue: "b", pending: 0, processing: 0 },
        ],
      },
      {
        at: expect.stringMatching(/Z$/),
        complete: false,
        queues: [
          { queue: "a", pending: 0, processing: 0 },
          { queue: "b", pending: 1, processing: 0 },
        ],
      },
    ]);
  });

  it("draws over the last snapshot on a terminal, and gives the cursor back", async () => {
    const watching = cli.startOnTerminal("status", "a", "--watch");
    await watching.seen(/complete: nothing/);
    await cli.text("enqueue", "a", "1", "2", "3");
    await watching.seen(/3 unacknowledged/);
    watching.process.stdin.write(CTRL_C);
    const { exitCode, output } = await watching.ended;
    expect(exitCode).toBe(130);
    // Three lines up, and what was there erased, before the second snapshot.
    expect(output).toMatch(new RegExp(`complete: nothing.*${ESCAPE}\\[3A${ESCAPE}\\[J.*QUEUE.*3 unacknowledged`, "s"));
    expect(output.trimEnd().endsWith(`${ESCAPE}[?25h`)).toBe(true);
  });

  it("ends when a watched queue is removed", async () => {
    const watching = cli.start("status", "a", "--watch");
    await watching.seen(/pending/);
    await cli.text("rm", "a");
    expect(await watching.ended).toMatchObject({ exitCode: 4, errors: expect.stringContaining("not found") });
  });
});

describe("wait", () => {
  it("ends with the snapshot that was complete, as soon as it is, and says nothing before in a pipe", async () => {
    await cli.text("enqueue", "a", "1", "--id", "one");
    const waiting = cli.start("wait", "a", "b");
    await cli.text("dequeue", "a");
    expect(waiting.output()).toBe("");
    await cli.text("ack", "a", "one");
    expect(await waiting.ended).toMatchObject({
      exitCode: 0,
      errors: "",
      output:
        "QUEUE  PENDING  PROCESSING\na            0           0\nb            0           0\ntotal        0           0\ncomplete: nothing is unacknowledged\n",
    });
  });

  it("times out with the last snapshot and an exit code of its own", async () => {
    await cli.text("enqueue", "deep/c", "1");
    const timedOut = await cli.run(["wait", "--under", "deep", "--timeout", "50ms", "--json"]);
    expect(timedOut).toMatchObject({ exitCode: 8, output: '{"queue":"deep/c","pending":1,"processing":0}\n' });
    expect(JSON.parse(timedOut.errors)).toMatchObject({ error: { code: "timed-out", exitCode: 8 } });
    expect((await cli.run(["wait", "deep/c", "--timeout", "0"])).exitCode).toBe(8);
    expect((await cli.run(["wait", "a", "b", "--timeout", "0"])).exitCode).toBe(0);
    expect((await cli.run(["wait", "nope"])).exitCode).toBe(4);
    expect((await cli.run(["wait", "--timeout", "-1s"])).exitCode).toBe(2);
  });

  it("waits only for what was enqueued before, when asked so", async () => {
    await cli.text("enqueue", "a", "1", "--id", "one");
    const waiting = cli.start("wait", "a", "--up-to-now", "--timeout", "60s");
    await cli.text("dequeue", "a");
    await cli.text("ack", "a", "one");
    expect((await waiting.ended).exitCode).toBe(0);
    await cli.text("enqueue", "a", "2", "3");
    const [message] = await cli.json("dequeue", "a");
    const second = cli.start("wait", "a", "--up-to-now", "--timeout", "300ms");
    await cli.text("ack", "a", String(message?.receipt));
    expect((await second.ended).exitCode).toBe(8);
  });

  it("ends when its queue is removed", async () => {
    await cli.text("enqueue", "a", "1");
    const waiting = cli.startOnTerminal("wait", "a");
    await waiting.seen(/0 of 1/);
    await cli.text("rm", "a");
    expect(await waiting.ended).toMatchObject({ exitCode: 4, output: expect.stringContaining("not found") });
  });

  it("shows a bar with speed and time left on a terminal, and takes it away", async () => {
    const ids = Array.from({ length: 10 }, (_, index) => `id-${index}`);
    for (const id of ids) await cli.text("enqueue", "a", "x", "--id", id);
    const waiting = cli.startOnTerminal("wait", "a");
    await waiting.seen(/0% \| 0 of 10 \| 0\.0\/s \| time left unknown/);
    await cli.text("dequeue", "a", "-n", "10");
    await cli.text("ack", "a", ...ids.slice(0, 4));
    await waiting.seen(/40% \| 4 of 10 \| \d+(\.\d)?\/s \| \d+s left/);
    await cli.text("ack", "a", ...ids.slice(4));
    const { exitCode, output } = await waiting.ended;
    expect(exitCode).toBe(0);
    // The bar's line is erased before the final snapshot is printed, and the cursor is there again.
    expect(output).toMatch(/100% \| 10 of 10[^%]*\[\?25h[^%]*\[2K[^%]*QUEUE/);
    expect(output).toContain("nothing is unacknowledged");
  });

  it("leaves the terminal in order when it is stopped", async () => {
    await cli.text("enqueue", "a", "1");
    const waiting = cli.startOnTerminal("wait", "a");
    await waiting.seen(/0 of 1/);
    waiting.process.stdin.write(CTRL_C);
    const { exitCode, output } = await waiting.ended;
    expect(exitCode).toBe(130);
    expect(output.lastIndexOf(`${ESCAPE}[?25h`)).toBeGreaterThan(output.lastIndexOf(`${ESCAPE}[?25l`));
  });
});
