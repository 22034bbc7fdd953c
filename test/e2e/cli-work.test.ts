/** `queuefs work`: what programs get, and what their ends mean for the messages. */

import { randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseQueueName } from "../../src/core/names.ts";
import { openWorkPlace, QUEUEFS, type WorkPlace } from "../support/work-place.ts";

const Q = parseQueueName("q");
const SHELL = ["--", "sh", "-c"];
const ALL_DONE = { pending: 0, processing: 0 };

let place: WorkPlace;
beforeEach(async () => {
  place = await openWorkPlace();
});
afterEach(() => place.dispose());

/** Works the queue off with a shell program. */
function workOff(program: string, ...options: readonly string[]): ReturnType<WorkPlace["cli"]["run"]> {
  return place.cli.run(["work", "q", "--until-complete", ...options, ...SHELL, program]);
}

async function deadLetters(): Promise<{ readonly id: string; readonly reason: string; readonly deliveryCount: number }[]> {
  const { items } = await place.backend.deadLetters(Q);
  return items.map(({ id, reason, deliveryCount }) => ({ id, reason, deliveryCount }));
}

describe("a program gets", () => {
  const PAYLOADS: readonly Uint8Array[] = [
    ...["", "00", "fffe", "c328", "eda080", "0d0a", "61620a", "0a"].map((hex) => Buffer.from(hex, "hex")),
    Uint8Array.from({ length: 256 }, (_, byte) => byte),
    ...["{}", "null", '{"id":"x"}', "\ufeffé\u2028", "-- -n $HOME `x`"].map((text) => Buffer.from(text)),
    randomBytes(8 * 1024 * 1024),
  ];

  it("the bytes of its message on standard input, and what it writes comes out as it is", async () => {
    await place.enqueue(...PAYLOADS);
    mkdirSync(join(place.cli.folder, "got"));
    const ended = await workOff('tee "got/$QUEUEFS_ID"');
    expect({ exitCode: ended.exitCode, errors: ended.errors }).toEqual({ exitCode: 0, errors: `queuefs: ${PAYLOADS.length} acked\n` });
    for (const [index, payload] of PAYLOADS.entries()) {
      expect({ index, same: readFileSync(join(place.cli.folder, "got", String(index))).equals(payload) }).toEqual({ index, same: true });
    }
    expect(ended.bytes.equals(Buffer.concat(PAYLOADS))).toBe(true);
  });

  it("input that it need not read", async () => {
    await place.enqueue(randomBytes(8 * 1024 * 1024), randomBytes(8 * 1024 * 1024));
    expect(await workOff('[ "$QUEUEFS_ID" = 0 ] && exit 0; exec <&-; head -c 1 /dev/zero')).toMatchObject({
      exitCode: 0,
      output: "\0",
      errors: "queuefs: 2 acked\n",
    });
  });

  it("the facts of the message, and the store from wherever it goes, in its environment", async () => {
    await place.enqueue("a");
    const { enqueuedAtMs } = (await place.messages())[0] ?? { enqueuedAtMs: 0 };
    // As if the worker itself were a program of another worker, and with a location that depends on the folder.
    const program = `env | grep ^QUEUEFS_ | sort; cd / && ${QUEUEFS} status q --json`;
    const { output } = await place.cli.shell([
      "export QUEUEFS_STORE=sqlite:store.db QUEUEFS_ID=outer QUEUEFS_COUNT=7 OTHER=kept",
      `queuefs work q --until-complete -- sh -c "${program}; echo \\$OTHER"`,
    ]).ended;
    expect(output.trim().split("\n")).toEqual([
      "QUEUEFS_COUNT=1",
      "QUEUEFS_DELIVERY_COUNT=1",
      "QUEUEFS_ID=0",
      "QUEUEFS_QUEUE=q",
      `QUEUEFS_STORE=${place.cli.store}`,
      `QUEUEFS_TIMESTAMP=${new Date(enqueuedAtMs).toISOString()}`,
      '{"queue":"q","pending":0,"processing":1}',
      "kept",
    ]);
  });

  it("no message's id of an outer worker together with several messages", async () => {
    await place.enqueue("a", "b");
    const { output } = await place.cli.shell([
      "export QUEUEFS_ID=outer QUEUEFS_DELIVERY_COUNT=5 QUEUEFS_TIMESTAMP=never",
      "queuefs work q --until-complete --batch 5 -- sh -c 'env | grep ^QUEUEFS_ | sort'",
    ]).ended;
    expect(output).toBe(`QUEUEFS_COUNT=2\nQUEUEFS_QUEUE=q\nQUEUEFS_STORE=${place.cli.store}\n`);
  });

  it("time to enqueue what follows: it is stored before the message is acked", async () => {
    await place.backend.createQueue(parseQueueName("next"));
    await place.enqueue("a");
    const gate = place.gate("gate");
    const working = place.cli.start("work", "q", "--until-complete", ...SHELL, `${QUEUEFS} enqueue next; echo stored; read go < gate`);
    await working.seen(/stored/);
    expect(await place.backend.statuses({ under: "" })).toEqual([
      { queue: "next", pending: 1, processing: 0 },
      { queue: "q", pending: 0, processing: 1 },
    ]);
    gate.pass(1);
    expect((await working.ended).exitCode).toBe(0);
    expect([await place.status("next"), await place.status()]).toEqual([{ pending: 1, processing: 0 }, ALL_DONE]);
    expect((await place.cli.json("peek", "next"))[0]?.data).toBe("a");
  });
});

describe("a program that ends", () => {
  it("with the give-up code moves its message to the dead letters, with the end of what it complained", async () => {
    await place.enqueue("a", "b");
    const program = `[ $QUEUEFS_ID = 0 ] && exit 0; printf 'x%.0s' $(seq 9000) >&2; printf '\\033[31mé is wrong\\033[0m\\n' >&2; exit`;
    const { exitCode, errors } = await workOff(`${program} 65`);
    expect(exitCode).toBe(0);
    expect(errors).toContain('queuefs: message "1" moved to the dead letters: sh exited with code 65: xxx');
    expect(errors).toMatch(/^queuefs: 1 acked, 1 dead\n$/m);
    const [letter] = await deadLetters();
    expect(letter).toMatchObject({ id: "1", deliveryCount: 1 });
    expect(letter?.reason).toMatch(/^sh exited with code 65: x{2000,3000}é is wrong$/);
    await place.enqueue("c", "d");
    expect((await workOff(`[ $QUEUEFS_DELIVERY_COUNT = 2 ] || exit 65; exit 7`, "--give-up-code", "7", "--backoff", "10ms")).exitCode).toBe(
      0,
    );
    expect((await deadLetters()).slice(1)).toEqual(["2", "3"].map((id) => ({ id, deliveryCount: 2, reason: "sh exited with code 7" })));
  });

  it("with another code or by a signal is run again after the backoff, and each time counts", async () => {
    await place.enqueue("a");
    const program = "date +%s%3N; case $QUEUEFS_DELIVERY_COUNT in 1) exit 3;; 2) kill -9 $$;; 3) exit 255;; esac";
    const { exitCode, output, errors } = await workOff(program, "--backoff", "200ms");
    expect({ exitCode, errors: errors.split("\n") }).toEqual({
      exitCode: 0,
      errors: [
        'queuefs: message "0" to be tried again: sh exited with code 3',
        'queuefs: message "0" to be tried again: sh was ended by SIGKILL',
        'queuefs: message "0" to be tried again: sh exited with code 255',
        "queuefs: 1 acked, 3 nacked",
        "",
      ],
    });
    const times = output.trim().split("\n").map(Number);
    const waits = times.slice(1).map((time, index) => time - (times[index] as number));
    // Half of each wait is certain, the other half drawn.
    expect(waits.map((wait, index) => wait >= 100 * 2 ** index)).toEqual([true, true, true]);
  });

  it("in failure as often as the queue allows leaves a dead letter that says why", async () => {
    await place.backend.configureQueue(Q, { maxDeliveries: 2 });
    await place.enqueue("a");
    const { exitCode, errors } = await workOff("echo no luck >&2; exit 1", "--backoff", "1ms");
    expect({ exitCode, last: errors.split("\n").at(-2) }).toEqual({
      exitCode: 0,
      last: "queuefs: 0 acked, 1 nacked, 1 dead",
    });
    expect(await deadLetters()).toEqual([{ id: "0", deliveryCount: 2, reason: "sh exited with code 1: no luck" }]);
  });

  it("is not waited for any longer, whatever it left running in the background", async () => {
    await place.enqueue("a");
    const gate = place.gate("gate");
    const gone = place.gone("alive");
    const { exitCode, output } = await workOff("exec 9> alive; { read go < gate; } & printf done");
    expect({ exitCode, output }).toEqual({ exitCode: 0, output: "done" });
    gate.pass(1);
    await gone;
  });
});

describe("-j N", () => {
  it("runs N at once, and takes no message for which no program is free", async () => {
    await place.enqueue(..."abcdefg");
    const gate = place.gate("gate");
    mkdirSync(join(place.cli.folder, "running"));
    const program = "mkdir running/$QUEUEFS_ID; ls running | wc -l; read go < gate; rmdir running/$QUEUEFS_ID";
    const working = place.cli.start("work", "q", "--until-complete", "-j", "3", ...SHELL, program);
    // Each waits at the gate: three can have come only together.
    await working.seen(/^(?:\d\n){3}$/);
    expect(await place.status()).toEqual({ pending: 4, processing: 3 });
    for (let lines = 4; lines <= 7; lines += 1) {
      gate.pass(1);
      await working.seen(new RegExp(`^(?:\\d\\n){${lines}}$`));
      expect(await place.status()).toEqual({ pending: 7 - lines, processing: 3 });
    }
    gate.pass(3);
    const { exitCode, output } = await working.ended;
    expect(exitCode).toBe(0);
    expect(Math.max(...output.trim().split("\n").map(Number))).toBe(3);
  });

  it("never mixes up lines of different programs", async () => {
    await place.enqueue(..."abcd");
    const gate = place.gate("gate");
    // Each writes half a line, and the rest when all have done so.
    const program = "printf $(cat); echo here >&2; read go < gate; printf '%s\\n%s' 1 $QUEUEFS_ID";
    const working = place.cli.start("work", "q", "--until-complete", "-j", "4", ...SHELL, program);
    await working.told(/^(?:here\n){4}/);
    gate.pass(4);
    const { output } = await working.ended;
    expect(output).toHaveLength(16);
    for (const [id, letter] of [..."abcd"].entries()) {
      expect(output).toContain(`${letter}1\n`);
      expect(output).toContain(String(id));
    }
  });

  it("and other numbers are refused with words when they make no sense", async () => {
    const wrong: [string[], string][] = [
      [["-j", "0"], "--jobs must be a whole number from 1 to 1000, got 0"],
      [["-j", "1000000000"], "--jobs must be a whole number from 1 to 1000, got 1000000000"],
      [["-j", "1e9"], "option '-j, --jobs <n>' argument '1e9' is invalid. it must be a whole number, got \"1e9\""],
      [["-j", ""], "option '-j, --jobs <n>' argument '' is invalid. it must be a whole number, got \"\""],
      [["--batch", "0"], "--batch must be a whole number from 1 to 1000, got 0"],
      [["--give-up-code", "0"], "--give-up-code must be a whole number from 1 to 255, got 0"],
      [["--lease", "1ms"], "--lease must be from 10ms to 7d, got 1ms"],
      [["--timeout", "25d"], "--timeout must be from 1ms to 24d, got 25d"],
    ];
    const ended = await Promise.all(wrong.map(([options]) => place.cli.run(["work", "q", ...options, "--", "true"])));
    expect(ended.map(({ exitCode, errors }) => ({ exitCode, errors }))).toEqual(
      wrong.map(([, words]) => ({ exitCode: 2, errors: `queuefs: ${words}\n` })),
    );
  });
});

describe("--batch N", () => {
  it("gives messages as JSON lines, those that are there, up to N", async () => {
    await place.enqueue("text\n", Uint8Array.of(0xff, 0), "", "{}", "fünf");
    const { exitCode, output, errors } = await workOff("echo $QUEUEFS_COUNT; cat", "--batch", "3");
    expect({ exitCode, errors }).toEqual({ exitCode: 0, errors: "queuefs: 5 acked\n" });
    const lines = output
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as unknown);
    const common = { timestamp: expect.any(String), deliveries: 1 };
    expect(lines).toEqual([
      3,
      { id: "0", data: "text\n", ...common },
      { id: "1", data: "/wA=", encoding: "base64", ...common },
      { id: "2", data: "", ...common },
      2,
      { id: "3", data: "{}", ...common },
      { id: "4", data: "fünf", ...common },
    ]);
  });

  it("takes the exit code for all of them", async () => {
    await place.enqueue(..."abcde");
    const program = "ids=$(tr -dc 0-9a-z,: | tr , '\\n' | grep -c ^id:); case $QUEUEFS_COUNT$1 in 2) exit 65;; *) exit 0;; esac";
    expect((await workOff(program, "--batch", "3")).errors).toContain(
      "queuefs: 2 messages moved to the dead letters: sh exited with code 65\n",
    );
    expect((await deadLetters()).map(({ id }) => id)).toEqual(["3", "4"]);
    await place.enqueue(..."fgh");
    const ended = await workOff("grep -q '\"deliveries\":1' && exit 1; cat", "--batch", "3", "--backoff", "1ms");
    expect(ended.errors).toContain("queuefs: 3 messages to be tried again: sh exited with code 1\n");
    expect(ended.errors).toMatch(/queuefs: 3 acked, 3 nacked\n$/);
    expect(await place.status()).toEqual(ALL_DONE);
  });

  it("leaves to others what comes while no program is free", async () => {
    await place.enqueue("a");
    const gate = place.gate("gate");
    const working = place.cli.start("work", "q", "--until-complete", "--batch", "10", ...SHELL, "echo $QUEUEFS_COUNT; read go < gate");
    await working.seen(/^1\n/);
    await place.enqueue(..."bcd");
    expect(await place.backend.dequeue(Q, { limit: 1 })).toMatchObject([{ id: "1", deliveryCount: 1 }]);
    const [held] = (await place.messages()).filter(({ state }) => state === "processing").slice(1);
    expect(held?.id).toBe("1");
    gate.pass(1);
    await working.seen(/^1\n2\n/);
    gate.pass(9);
    await place.backend.ackById(Q, [held?.id as never]);
    expect((await working.ended).errors).toBe("queuefs: 3 acked\n");
  });
});

describe("a worker", () => {
  it("does not begin for a queue or a program that is missing", async () => {
    expect(await place.cli.run(["work", "nix", "--", "true"])).toMatchObject({
      exitCode: 4,
      errors: 'queuefs: queue "nix" not found; create it first (mkdir, createQueue)\n',
    });
    expect((await place.cli.json("ls")).map(({ name, path, queue }) => name ?? path ?? queue)).not.toContain("nix");
    for (const program of ["no-such-program", "./no-such-program", "/"]) {
      expect(await place.cli.run(["work", "q", "--", program])).toMatchObject({
        exitCode: 2,
        errors: `queuefs: the program "${program}" cannot be run (there is none of that name); check its name and that it may be executed\n`,
      });
    }
    expect((await place.cli.run(["work", "q"])).errors).toBe("queuefs: missing required argument 'program'\n");
  });

  it("ends when its program turns out not to run, and wears no message out", async () => {
    writeFileSync(join(place.cli.folder, "broken"), "#!/no/such/interpreter\n", { mode: 0o755 });
    await place.enqueue("a", "b", "c");
    const { exitCode, output, errors } = await place.cli.run(["work", "q", "-j", "2", "--", "./broken"]);
    expect({ exitCode, output }).toEqual({ exitCode: 2, output: "" });
    expect(errors).toMatch(/^queuefs: 0 acked, 2 released\nqueuefs: the program ".\/broken" cannot be run \(spawn .+ENOENT\);/);
    expect((await place.messages()).map(({ state, deliveryCount }) => [state, deliveryCount])).toEqual([0, 1, 2].map(() => ["pending", 0]));
  });

  it("waits, while the system has no room for another program, without counting that against messages", async () => {
    await place.enqueue(...Array.from({ length: 30 }, (_, index) => String(index)));
    // 64 open files are few for 30 programs with three streams each. They run for long enough that asking again and again would show.
    const program = "sh -c 'sleep 0.5; echo $QUEUEFS_DELIVERY_COUNT'";
    const { output, errors } = await place.cli.shell(["ulimit -n 64", `queuefs work q -j 30 --until-complete -- ${program}`]).ended;
    expect(output).toBe("1\n".repeat(30));
    expect(errors).toContain("sh cannot be started now (spawn sh EMFILE); trying again");
    expect(Number(/queuefs: 30 acked, (\d+) released\n$/.exec(errors)?.[1])).toBeLessThan(200);
  });

  it("with --until-complete ends when all is done, what is delayed and what programs add included", async () => {
    await place.backend.enqueue(Q, [{ data: Buffer.from("late"), delayMs: 2_000 }]);
    await place.enqueue("early");
    const program = `x=$(cat); echo $x; if [ $x = early ]; then ${QUEUEFS} enqueue q added > /dev/null; fi`;
    const { exitCode, output, errors } = await workOff(program);
    expect({ exitCode, errors }).toEqual({ exitCode: 0, errors: "queuefs: 3 acked\n" });
    expect(output.trim().split("\n").sort()).toEqual(["added", "early", "late"]);
  });

  it("tells programs what it did in JSON, on standard error, since standard output belongs to the programs", async () => {
    await place.backend.configureQueue(Q, { maxDeliveries: 3 });
    await place.enqueue("1", "2", "3");
    const { exitCode, output, errors } = await workOff("exec 2>&-; exit $(cat)", "--json", "--backoff", "1ms", "--give-up-code", "2");
    expect({ exitCode, output }).toEqual({ exitCode: 0, output: "" });
    const lines = errors
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as unknown);
    expect(lines).toContainEqual({ note: 'message "1" moved to the dead letters: sh exited with code 2' });
    expect(lines.at(-1)).toEqual({ acked: 0, nacked: 4, dead: 3, released: 0, cancelled: 0, lost: 0 });
  });
});
