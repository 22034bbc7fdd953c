/** `queuefs work`: how programs and the worker itself are ended, with real signals, and that no message is lost by it. */

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseQueueName } from "../../src/core/names.ts";
import { openCommandLine } from "../support/command-line.ts";
import { startRedisServer } from "../support/redis-server.ts";
import { openWorkPlace, QUEUEFS, type WorkPlace } from "../support/work-place.ts";

const Q = parseQueueName("q");
const SHELL = ["--", "sh", "-c"];
const CTRL_C = "\u0003";

let place: WorkPlace;
beforeEach(async () => {
  place = await openWorkPlace();
});
afterEach(() => place.dispose());

/** What is left, in queue order. */
async function left(): Promise<(readonly [string, string, number])[]> {
  return (await place.messages()).map(({ id, state, deliveryCount }) => [id, state, deliveryCount] as const);
}

it("keeps the leases of a program that runs for longer than three of them", async () => {
  await place.enqueue("a");
  const gate = place.gate("gate");
  const working = place.cli.start("work", "q", "--until-complete", "--lease", "1s", ...SHELL, "echo begun; read go < gate");
  await working.seen(/begun/);
  // Another consumer looks all the time, as long as it takes for a lease to end three times over.
  const end = performance.now() + 3_300;
  let looks = 0;
  for (; performance.now() < end; looks += 1) {
    expect(await place.backend.dequeue(Q)).toEqual([]);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  expect(looks).toBeGreaterThan(3);
  expect(await left()).toEqual([["0", "processing", 1]]);
  gate.pass(1);
  expect(await working.ended).toMatchObject({ exitCode: 0, output: "begun\n", errors: "queuefs: 1 acked\n" });
});

describe("--timeout", () => {
  it("ends a program with all it has started, by force if need be, and tries its message again", async () => {
    await place.enqueue("a");
    place.gate("gate");
    const gone = place.gone("alive");
    // Neither the program nor what it has started heeds SIGTERM.
    const program = `[ $QUEUEFS_DELIVERY_COUNT = 2 ] && exit 0
      trap "" TERM; exec 9> alive; { read go < gate; } & read go < gate; exit 0`;
    const options = ["--timeout", "1s", "--kill-after", "100ms", "--backoff", "1ms"];
    const working = place.cli.start("work", "q", "--until-complete", ...options, ...SHELL, program);
    await gone;
    expect(await working.ended).toMatchObject({
      exitCode: 0,
      errors: 'queuefs: message "0" to be tried again: sh took longer than 1s and was ended\nqueuefs: 1 acked, 1 nacked\n',
    });
  });

  it("lets those who heed SIGTERM finish, also behind a shell that does not wait for them", async () => {
    await place.enqueue("a");
    place.gate("gate");
    // The shell itself ends at once; what it has started puts its things in order first.
    const child = `trap "sleep 0.3; echo in order; exit 0" TERM; echo begun; while :; do read go < gate || exit; done`;
    const program = `[ $QUEUEFS_DELIVERY_COUNT = 2 ] && { echo again; exit; }; (${child}) & wait`;
    const options = ["--timeout", "1s", "--kill-after", "20s", "--backoff", "1ms"];
    const { exitCode, output } = await place.cli.run(["work", "q", "--until-complete", ...options, ...SHELL, program]);
    expect({ exitCode, output }).toEqual({ exitCode: 0, output: "begun\nin order\nagain\n" });
  });
});

it("ends a program whose message was taken away from it", async () => {
  await place.enqueue("a");
  place.gate("gate");
  const gone = place.gone("alive");
  const working = place.cli.start("work", "q", "--lease", "300ms", ...SHELL, "exec 9> alive; echo begun; read go < gate");
  await working.seen(/begun/);
  await place.backend.clear(Q);
  await gone;
  await working.told(/message "0" no longer this worker's to settle/);
  working.process.kill("SIGTERM");
  expect((await working.ended).errors).toMatch(/queuefs: 0 acked, 1 lost\n$/);
});

describe("Ctrl-C on a terminal", () => {
  it("lets running programs finish, acks them, and leaves the rest untouched", async () => {
    await place.enqueue("a", "b", "c");
    const gate = place.gate("gate");
    // The program would tell of any signal.
    const program = `trap "echo hit" INT TERM HUP; echo begun; read go < gate; echo finished`;
    const working = place.cli.startOnTerminal("work", "q", ...SHELL, program);
    await working.seen(/begun/);
    working.process.stdin.write(CTRL_C);
    await working.seen(/ending: running programs may take 10s to finish; once more ends them at once/);
    gate.pass(3);
    const { exitCode, output } = await working.ended;
    expect(exitCode).toBe(0);
    expect(output).toMatch(/finished\r\n/);
    expect(output).not.toContain("hit");
    expect(output).toMatch(/queuefs: 1 acked\r\n$/);
    expect(await left()).toEqual([
      ["1", "pending", 0],
      ["2", "pending", 0],
    ]);
  });

  it("once more ends at once, and leaves no program behind", async () => {
    await place.enqueue("a", "b");
    place.gate("gate");
    const gone = place.gone("alive");
    const program = `trap "" INT TERM; exec 9> alive; echo begun; { read go < gate; } & read go < gate`;
    const working = place.cli.startOnTerminal("work", "q", "-j", "2", "--lease", "1h", ...SHELL, program);
    await working.seen(/begun.*begun/s);
    working.process.stdin.write(CTRL_C);
    await working.seen(/once more ends them at once/);
    working.process.stdin.write(CTRL_C);
    expect((await working.ended).exitCode).toBe(130);
    await gone;
    // Any process that has the store open finds that the worker is gone, whatever its leases say.
    while ((await place.status()).processing > 0) await new Promise((resolve) => setTimeout(resolve, 20));
    expect(await left()).toEqual(["0", "1"].map((id) => [id, "pending", 1]));
  });
});

describe.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)("%s", (signal) => {
  it("lets running programs finish, and ends with 0, for that is what a worker without an end is for", async () => {
    await place.enqueue("a", "b");
    const gate = place.gate("gate");
    const working = place.cli.start("work", "q", ...SHELL, "echo begun; read go < gate; echo finished");
    await working.seen(/begun/);
    working.process.kill(signal);
    await working.told(/ending/);
    if (signal === "SIGHUP") working.process.kill(signal);
    gate.pass(2);
    const { exitCode, output, errors } = await working.ended;
    expect({ exitCode, output }).toEqual({ exitCode: 0, output: "begun\nfinished\n" });
    expect(errors).toMatch(/queuefs: 1 acked\n$/);
    expect(await left()).toEqual([["1", "pending", 0]]);
  });
});

describe("a worker that is told to end", () => {
  it("releases the messages of programs that take longer than the grace, once those have ended", async () => {
    await place.enqueue("a", "b", "c");
    place.gate("gate");
    const gone = place.gone("alive");
    // One puts its things in order and says that all is well, which it is not: it was not to end by itself.
    const program = `exec 9> alive; trap "exit 0" TERM; [ $QUEUEFS_ID = 0 ] && trap "" TERM; echo begun; read go < gate`;
    const working = place.cli.start("work", "q", "-j", "2", "--grace", "100ms", "--kill-after", "100ms", ...SHELL, program);
    await working.seen(/begun\nbegun/);
    working.process.kill("SIGTERM");
    const { exitCode, errors } = await working.ended;
    await gone;
    expect(exitCode).toBe(0);
    expect(errors).toBe(
      "queuefs: ending: running programs may take 100ms to finish; once more ends them at once\nqueuefs: 0 acked, 2 released\n",
    );
    expect(await left()).toEqual(["0", "1", "2"].map((id) => [id, "pending", 0]));
  });

  it("has not made the queue complete, and its exit code does not say so", async () => {
    await place.enqueue("a", "b");
    const gate = place.gate("gate");
    const working = place.cli.start("work", "q", "--until-complete", ...SHELL, "echo begun; read go < gate");
    await working.seen(/begun/);
    working.process.kill("SIGTERM");
    await working.told(/ending/);
    gate.pass(2);
    expect((await working.ended).exitCode).toBe(143);
    expect(await left()).toEqual([["1", "pending", 0]]);
  });

  it("ends at once when it has nothing to do", async () => {
    const working = place.cli.start("work", "q", "--json", "--", "true");
    await place.enqueue("a");
    while ((await place.status()).pending + (await place.status()).processing > 0) await new Promise((resolve) => setTimeout(resolve, 20));
    working.process.kill("SIGINT");
    expect(await working.ended).toMatchObject({
      exitCode: 0,
      output: "",
      errors: '{"acked":1,"nacked":0,"dead":0,"released":0,"cancelled":0,"lost":0}\n',
    });
  });

  it("by the removal of its queue says that", async () => {
    const working = place.cli.start("work", "q", ...SHELL, "echo begun");
    await place.enqueue("a");
    await working.seen(/begun/);
    while ((await place.status()).processing > 0) await new Promise((resolve) => setTimeout(resolve, 20));
    await place.backend.removeQueue(Q);
    const { exitCode, errors } = await working.ended;
    expect(exitCode).toBe(4);
    expect(errors).toMatch(/queuefs: queue "q" not found/);
  });
});

it("loses nothing when it is killed: another worker has its messages at once, however long their leases", async () => {
  await place.enqueue("a", "b");
  const gate = place.gate("gate");
  const program = "echo begun $QUEUEFS_ID $QUEUEFS_DELIVERY_COUNT; read go < gate";
  const first = place.cli.start("work", "q", "-j", "2", "--lease", "1h", ...SHELL, program);
  await first.seen(/begun.*begun/s);
  const second = place.cli.start("work", "q", "-j", "2", "--until-complete", ...SHELL, program);
  first.process.kill("SIGKILL");
  await first.ended;
  await second.seen(/begun 0 2\nbegun 1 2\n|begun 1 2\nbegun 0 2\n/);
  // Two programs of the killed worker may be at the gate as well.
  gate.pass(4);
  expect(await second.ended).toMatchObject({ exitCode: 0, errors: "queuefs: 2 acked\n" });
});

describe("what programs write", () => {
  it("goes to a reader that has enough until it goes away; then the worker ends, and what was not wholly written is released", async () => {
    await place.enqueue(...Array.from({ length: 40 }, (_, index) => String(index)));
    const { output, errors } = await place.cli.shell([
      "set +e",
      '{ queuefs work q -j 3 --until-complete -- sh -c "cat; echo"; echo "ended with $?" >&2; } | head -n 2',
    ]).ended;
    expect(output).toMatch(/^\d+\n\d+\n$/);
    expect(errors).toMatch(/standard output was closed by its reader; what was not wholly written was released\nended with 1\n$/);
    const acked = Number(/queuefs: (\d+) acked, \d+ released\n/.exec(errors)?.[1]);
    expect(acked).toBeGreaterThanOrEqual(2);
    const rest = await left();
    expect(rest).toHaveLength(40 - acked);
    expect(new Set(rest.map(([, state, deliveries]) => `${state} ${deliveries}`))).toEqual(new Set(["pending 0"]));
  });

  it("and cannot be written, ends the worker with words", async () => {
    await place.enqueue("a");
    const { exitCode, errors } = await place.cli.shell(["queuefs work q -- echo hello > /dev/full"]).ended;
    expect(exitCode).toBe(1);
    expect(errors).toMatch(/queuefs: 0 acked, 1 released\nqueuefs: standard output cannot be written \(ENOSPC\)\n$/);
    expect(await left()).toEqual([["0", "pending", 0]]);
  });

  it("waits for a slow reader, as in any pipe, while leases are kept", async () => {
    await place.enqueue("a");
    const gate = place.gate("gate");
    // Far more than pipes hold; the reader begins only when the writer's lease would have ended twice over.
    const working = place.cli.shell([
      'queuefs work q --until-complete --lease 500ms -- sh -c "echo begun >&2; head -c 3000000 /dev/zero" | { read go < gate; wc -c; }',
    ]);
    await working.told(/begun/);
    const end = performance.now() + 1_100;
    while (performance.now() < end) {
      expect(await place.backend.dequeue(Q)).toEqual([]);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    gate.pass(1);
    expect(await working.ended).toMatchObject({ output: "3000000\n", errors: "begun\nqueuefs: 1 acked\n" });
  });

  it("reaches a terminal as it is, colours and all, beside a line that says how the work goes", async () => {
    await place.enqueue("a", "b");
    const gate = place.gate("gate");
    const program = `printf '\\033[31mred\\033[0m\\n'; [ $QUEUEFS_ID = 0 ] && exit 0; read go < gate; printf half; sleep 0.3; read go < gate; printf ' line\\n'`;
    const working = place.cli.startOnTerminal("work", "q", "--until-complete", ...SHELL, program);
    await working.seen(/1 acked, 1 running/);
    gate.pass(1);
    await working.seen(/half/);
    gate.pass(1);
    const { exitCode, output } = await working.ended;
    expect(exitCode).toBe(0);
    expect(output.split("\u001b[31mred\u001b[0m\r\n")).toHaveLength(3);
    // The half line is not drawn over.
    expect(output).toContain("half line\r\n");
    expect(output).toMatch(/queuefs: 2 acked\r\n$/);
  });

  it("reaches a terminal that cannot be steered without any progress line", async () => {
    await place.enqueue("a");
    const { output } = await place.cli.shell([
      `script -qec "TERM=dumb ${QUEUEFS.replaceAll("'", "")} work q --until-complete -- sh -c 'sleep 0.3; echo hello'" /dev/null`,
    ]).ended;
    expect(output).toBe("hello\r\nqueuefs: 1 acked\r\n");
  });
});

it("rides out a server that is away while a program ends, and acks when it is back", async () => {
  const server = await startRedisServer({ appendonly: true });
  const cli = openCommandLine({ store: server.url });
  try {
    await cli.text("mkdir", "q", "next");
    await cli.text("enqueue", "q", "a");
    const gate = place.gate("gate");
    const program = `cat | ${QUEUEFS} enqueue next > /dev/null && echo begun; read go < ${place.cli.folder}/gate`;
    const working = cli.start("work", "q", "--until-complete", ...SHELL, program);
    await working.seen(/begun/);
    await server.kill();
    gate.pass(1);
    await working.told(/queuefs: .*(?:Redis|server|ECONNREFUSED|reach|answer)/i);
    await server.restart();
    const { exitCode, errors } = await working.ended;
    expect({ exitCode, last: errors.split("\n").at(-2) }).toEqual({ exitCode: 0, last: "queuefs: 1 acked" });
    expect(await cli.json("status", "q", "next")).toEqual([
      { queue: "q", pending: 0, processing: 0 },
      { queue: "next", pending: 1, processing: 0 },
    ]);
  } finally {
    await cli.dispose();
    await server.stop();
  }
});
