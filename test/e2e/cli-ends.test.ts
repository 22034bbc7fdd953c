/** How commands end: exit codes, errors for people and for programs, readers that go away, terminals that must not be steered. */

import { once } from "node:events";
import { readFileSync } from "node:fs";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type CommandLine, openCommandLine } from "../support/command-line.ts";

let cli: CommandLine;
beforeEach(() => {
  cli = openCommandLine();
});
afterEach(() => cli.dispose());

const version = (JSON.parse(readFileSync("package.json", "utf8")) as { readonly version: string }).version;

describe("usage", () => {
  it("prints version and help on standard output", async () => {
    expect(await cli.run(["--version"])).toMatchObject({ exitCode: 0, output: `${version}\n`, errors: "" });
    const help = await cli.run(["--help"]);
    expect(help).toMatchObject({ exitCode: 0, errors: "" });
    for (const command of ["mkdir", "enqueue", "status", "migrate"]) expect(help.output).toMatch(new RegExp(`^ {2}${command} `, "m"));
    expect(await cli.run(["help", "wait"])).toMatchObject({ exitCode: 0, output: expect.stringContaining("Usage: queuefs wait") });
  });

  it("is wrong with exit code 2 and one line that says why", async () => {
    const wrong: [string[], string][] = [
      [[], "queuefs: name a command; queuefs --help lists them\n"],
      [["statu"], "queuefs: unknown command 'statu'\n(Did you mean status?)\n"],
      [["size"], "queuefs: missing required argument 'queue'\n"],
      [["size", "a", "b"], "queuefs: too many arguments for 'size'. Expected 1 argument but got 2.\n"],
      [["ls", "--store", ""], "queuefs: --store needs a location: memory:, sqlite:FILE, redis://… or http://…\n"],
      [["ls", "--store"], "queuefs: option '--store <location>' argument missing\n"],
    ];
    for (const [commandArguments, errors] of wrong) {
      expect(await cli.run(commandArguments)).toMatchObject({ exitCode: 2, output: "", errors });
    }
  });

  it("tells errors to programs as JSON", async () => {
    const { exitCode, output, errors } = await cli.run(["size", "nope", "--json"]);
    expect({ exitCode, output }).toEqual({ exitCode: 4, output: "" });
    expect(JSON.parse(errors)).toEqual({ error: { code: "queue-not-found", message: expect.stringContaining('"nope"'), exitCode: 4 } });
    expect(JSON.parse((await cli.run(["--json", "bogus"])).errors)).toEqual({
      error: { code: "invalid-argument", message: "unknown command 'bogus'", exitCode: 2 },
    });
  });
});

describe("a reader that has enough", () => {
  it("ends a listing without a word", async () => {
    await cli.text("mkdir", "q");
    await cli.run(["enqueue", "q", "--lines"], "some words\n".repeat(20_000));
    for (const command of ["queuefs messages q --json", "queuefs messages q", "queuefs cat /q/messages"]) {
      const { output, errors } = await cli.shell(["set +e", `{ ${command}; echo "ended with $?" >&2; } | head -c 10 | wc -c`]).ended;
      expect({ command, output: output.trim(), errors }).toEqual({ command, output: "10", errors: "ended with 0\n" });
    }
  });

  it("does not end an enqueue, whose work is to store", async () => {
    await cli.text("mkdir", "q");
    const { errors } = await cli.shell(["set +e", 'seq 50000 | { queuefs enqueue q --lines; echo "ended with $?" >&2; } | head -n 1'])
      .ended;
    expect(errors).toBe("ended with 0\n");
    expect(await cli.text("size", "q")).toBe("50000\n");
  });
});

it("tells when the output cannot be written, and gives the message back", async () => {
  await cli.text("mkdir", "q");
  await cli.text("enqueue", "q", "a");
  const { exitCode, errors } = await cli.shell(["queuefs dequeue q > /dev/full"]).ended;
  expect({ exitCode, errors }).toEqual({ exitCode: 1, errors: "queuefs: standard output cannot be written (ENOSPC)\n" });
  expect(await cli.json("status", "q")).toEqual([{ queue: "q", pending: 1, processing: 0 }]);
});

describe("signals", () => {
  it("end an enqueue that waits for its input, and store nothing of an unfinished message", async () => {
    await cli.text("mkdir", "q");
    const whole = cli.startOnTerminal("enqueue", "q");
    await whole.seen(/reading from the terminal/);
    whole.process.stdin.write("half a mess\u0003");
    expect((await whole.ended).exitCode).toBe(130);
    const lines = cli.start("enqueue", "q", "--lines");
    lines.process.stdin.write("done\nhalf");
    await lines.seen(/\n/);
    lines.process.kill("SIGTERM");
    expect(await lines.ended).toMatchObject({ exitCode: 143, errors: "queuefs: not finished: 1 message was stored\n" });
    expect((await cli.json("messages", "q")).map((message) => message.data)).toEqual(["done"]);
  });

  it("end a command that waits for a store which does not answer", async () => {
    const connections: Socket[] = [];
    const silent = createServer((socket) => connections.push(socket.on("error", () => {})));
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    const { port } = silent.address() as AddressInfo;
    const started = cli.start("ls", "--store", `redis://127.0.0.1:${port}`);
    await once(silent, "connection");
    started.process.kill("SIGINT");
    expect(await started.ended).toMatchObject({ exitCode: 130, output: "", errors: "" });
    for (const socket of connections) socket.destroy();
    await new Promise((resolve) => silent.close(resolve));
  });
});

describe("a terminal", () => {
  const NASTY = "evil\u001b]0;owned\u0007\u001b[2J\u009b31m\u202e";
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not arrive
  const STEERING = /\u001b(?!\[(1|22|32|33|39|31)m)|\u0007|\u009b|\u202e/;

  it("is not steered by what messages hold, whatever the command", async () => {
    await cli.text("mkdir", "q");
    await cli.run(["enqueue", "q"], NASTY);
    const letter = await cli.json("dequeue", "q");
    await cli.text("nack", "q", String(letter[0]?.receipt), "--give-up", "--reason", NASTY);
    await cli.run(["enqueue", "q"], NASTY);
    for (const command of [
      ["peek", "q"],
      ["peek", "q", "--raw"],
      ["peek", "q", "--json"],
      ["messages", "q"],
      ["messages", "q", "--json"],
      ["cat", "/q/peek"],
      ["cat", "/q/messages"],
      ["dead", "q"],
      ["dead", "q", "--json"],
      ["dequeue", "q"],
      ["ls", NASTY],
    ]) {
      const started = cli.startOnTerminal(...command);
      const { output } = await started.ended;
      expect({ command, steered: STEERING.test(output) }).toEqual({ command, steered: false });
      expect({ command, shown: output.includes("evil") }).toEqual({ command, shown: true });
    }
  });

  it("gets the same JSON in other words", async () => {
    await cli.text("mkdir", "q");
    await cli.run(["enqueue", "q"], NASTY);
    const { output } = await cli.startOnTerminal("peek", "q", "--json").ended;
    expect((JSON.parse(output) as { readonly data: string }).data).toBe(NASTY);
  });

  it("gets colours, a pipe and NO_COLOR none", async () => {
    await cli.text("mkdir", "q");
    expect((await cli.startOnTerminal("status", "q").ended).output).toContain("\u001b[32m");
    expect(await cli.text("status", "q")).not.toContain("\u001b");
    await cli.dispose();
    cli = openCommandLine({ environment: { NO_COLOR: "1" } });
    await cli.text("mkdir", "q");
    expect((await cli.startOnTerminal("status", "q").ended).output).not.toContain("\u001b");
  });
});

it("writes what --raw gives into a file unchanged, whatever it is", async () => {
  await cli.text("mkdir", "q");
  await cli.run(["enqueue", "q"], "\u001b[2J\r\n");
  await cli.shell(["queuefs peek q --raw > out"]).ended;
  expect(readFileSync(join(cli.folder, "out"), "utf8")).toBe("\u001b[2J\r\n");
});
