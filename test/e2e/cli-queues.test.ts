/** Queues through the command line, on the default store, on memory and on Redis; and the file face. */

import { existsSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterEach, describe, expect, it } from "vitest";
import { type CommandLine, openCommandLine } from "../support/command-line.ts";
import { startRedisServer } from "../support/redis-server.ts";

let cli: CommandLine;
afterEach(() => cli.dispose());

describe("mkdir, ls and rm", () => {
  it("make, list and remove queues, and leave neighbours alone", async () => {
    cli = openCommandLine();
    expect(await cli.text("mkdir", "a", "/a/b", "a_b", "x/y/z")).toBe("created a\ncreated a/b\ncreated a_b\ncreated x/y/z\n");
    expect(await cli.json("mkdir", "a")).toEqual([{ queue: "a", outcome: "exists" }]);
    expect(await cli.text("ls")).toBe("a\na_b\nx\n");
    expect(await cli.text("ls", "x")).toBe("y\n");
    await cli.text("enqueue", "a/b", "one", "two");
    expect(await cli.text("ls", "-l", "/a/")).toBe("MODE  KIND   PENDING  PROCESSING  NAME\n0755  queue        2           0  b\n");
    expect(await cli.json("ls", "-l")).toEqual([
      { name: "a", role: "queue", mode: 0o755, pending: 0, processing: 0 },
      { name: "a_b", role: "queue", mode: 0o755, pending: 0, processing: 0 },
      { name: "x", role: "directory", mode: 0o755 },
    ]);
    expect(await cli.run(["rm", "a"])).toMatchObject({ exitCode: 15, output: "" });
    expect(await cli.run(["rm", "x"])).toMatchObject({ exitCode: 15 });
    expect(await cli.run(["rm", "nope"])).toMatchObject({ exitCode: 4 });
    expect(await cli.text("rm", "-r", "a", "x")).toBe("removed a (2 queues)\nremoved x\n");
    expect(await cli.text("ls")).toBe("a_b\n");
    expect(await cli.run(["ls", "a"])).toMatchObject({ exitCode: 4, errors: expect.stringContaining('"/a"') });
  });

  it("list control files with -a, dot files too, and a control file by itself", async () => {
    cli = openCommandLine();
    await cli.text("mkdir", "q", "q/child");
    expect((await cli.text("ls", "-a", "q")).trim().split("\n")).toEqual([
      ...[
        "enqueue",
        "dequeue",
        "peek",
        "size",
        "status",
        "messages",
        "clear",
        "ack",
        ".nack",
        ".extend",
        ".wait",
        ".dead",
        ".stats",
        "child",
      ],
    ]);
    expect(await cli.text("ls", "-l", "q/status")).toContain("0444  control");
  });

  it("set how often a message is tried, at the making and later", async () => {
    cli = openCommandLine();
    await cli.text("mkdir", "q", "--max-deliveries", "3");
    expect(JSON.parse(await cli.text("cat", "/q/.stats"))).toMatchObject({ settings: { maxDeliveries: 3 } });
    await cli.text("mkdir", "q", "--max-deliveries", "0");
    expect(JSON.parse(await cli.text("cat", "/q/.stats"))).toMatchObject({ settings: { maxDeliveries: 0 } });
    await cli.text("mkdir", "q");
    expect(JSON.parse(await cli.text("cat", "/q/.stats"))).toMatchObject({ settings: { maxDeliveries: 0 } });
    expect((await cli.run(["mkdir", "p", "--max-deliveries", "-1"])).exitCode).toBe(2);
  });

  it("refuse names that no queue can have, before anything is made", async () => {
    cli = openCommandLine();
    for (const name of ["status", "jobs/ack", ".hidden", "a//b", "a/", "", "..", "a\nb", "x".repeat(256), Array(33).fill("d").join("/")]) {
      expect({ name, ...(await cli.run(["mkdir", "good", name])) }).toMatchObject({
        name,
        exitCode: 2,
        output: "",
        errors: expect.stringContaining("queue name"),
      });
    }
    expect(await cli.text("ls")).toBe("");
  });
});

describe("the store", () => {
  it("is a file in the user's data folder, for the user alone, unless one is named", async () => {
    cli = openCommandLine({ environment: { QUEUEFS_STORE: "" } });
    await cli.text("mkdir", "q");
    expect(existsSync(join(cli.folder, "data", "queuefs", "queue.db"))).toBe(true);
    expect(statSync(join(cli.folder, "data", "queuefs")).mode & 0o777).toBe(0o700);
    await cli.text("mkdir", "elsewhere", "--store", "sqlite:other.db");
    expect(existsSync(join(cli.folder, "other.db"))).toBe(true);
    expect(await cli.text("--store", "sqlite:other.db", "ls")).toBe("elsewhere\n");
    expect(await cli.text("ls")).toBe("q\n");
  });

  it("may be memory, which says that it ends with the command", async () => {
    cli = openCommandLine({ store: "memory:" });
    expect(await cli.run(["mkdir", "q"])).toMatchObject({
      exitCode: 0,
      output: "created q\n",
      errors: expect.stringContaining("ends with this command"),
    });
    expect(await cli.run(["size", "q"])).toMatchObject({ exitCode: 4 });
    expect(await cli.run(["mkdir", "q", "--json"])).toMatchObject({ exitCode: 0, errors: "" });
  });

  it("may be a Redis server, with the same answers", async () => {
    const server = await startRedisServer();
    try {
      cli = openCommandLine({ store: server.url });
      await cli.text("mkdir", "q", "p");
      await cli.run(["enqueue", "q"], Buffer.of(0xff, 0, 10));
      await cli.run(["enqueue", "q", "--lines"], "a\nb\n");
      expect(await cli.json("status")).toEqual([
        { queue: "p", pending: 0, processing: 0 },
        { queue: "q", pending: 3, processing: 0 },
      ]);
      expect((await cli.run(["peek", "q", "--raw"])).bytes).toEqual(Buffer.of(0xff, 0, 10));
      const taken = await cli.json("dequeue", "q", "-n", "2");
      expect(taken.map((message) => message.data)).toEqual(["/wAK", "a"]);
      await cli.text("ack", "q", String(taken[0]?.receipt), String(taken[1]?.id));
      await cli.text("dequeue", "q", "--receipt-file", "receipt");
      expect((await cli.run(["wait", "q", "--timeout", "0"])).exitCode).toBe(8);
      expect((await cli.run(["dequeue", "q"])).exitCode).toBe(3);
      expect((await cli.json("doctor")).filter((finding) => finding.severity === "error")).toEqual([]);
      expect(await cli.json("clear", "q")).toEqual([{ queue: "q", pending: 0, processing: 1 }]);
      expect((await cli.run(["wait", "--timeout", "5s"])).exitCode).toBe(0);
    } finally {
      await server.stop();
    }
  });

  it("is refused with words when it is no store", async () => {
    cli = openCommandLine();
    expect((await cli.run(["ls", "--store", "nonsense"])).exitCode).toBe(2);
    expect((await cli.run(["ls", "--store", "sqlite:no/such/folder/x.db"])).exitCode).not.toBe(0);
    const away = await cli.run(["ls", "--store", "redis://127.0.0.1:1", "--json"]);
    expect(away.exitCode).toBe(9);
    const lines = away.errors
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines.at(-1)).toMatchObject({ error: { code: "store-unreachable", exitCode: 9 } });
  });
});

describe("doctor", () => {
  it("finds a sound store sound", async () => {
    cli = openCommandLine();
    await cli.text("mkdir", "q");
    const people = await cli.run(["doctor"]);
    expect(people).toMatchObject({
      exitCode: 0,
      errors: "",
      output: expect.stringMatching(/^store: sqlite at .*\nRESULT +CHECK +WHAT WAS FOUND\nok +integrity/),
    });
    for (const finding of await cli.json("doctor"))
      expect(finding).toEqual({
        severity: expect.stringMatching(/^(ok|warning)$/),
        check: expect.any(String),
        message: expect.any(String),
      });
  });

  it("finds counters that do not agree with the messages, and says so with its exit code", async () => {
    cli = openCommandLine();
    await cli.text("mkdir", "q");
    await cli.text("enqueue", "q", "a");
    const database = new Database(join(cli.folder, "store.db"));
    const tables = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%pending%'").pluck().all();
    database.exec(`UPDATE ${String(tables[0])} SET pending = pending + 5`);
    database.close();
    const { exitCode, output } = await cli.run(["doctor", "--json"]);
    expect(exitCode).toBe(16);
    expect(output).toContain('"severity":"error","check":"counters"');
  });

  it("says why a store cannot be opened", async () => {
    cli = openCommandLine();
    mkdirSync(join(cli.folder, "f"));
    writeFileSync(join(cli.folder, "store.db"), "this is no database, however long it may be ".repeat(200));
    const people = await cli.run(["doctor"]);
    expect(people.exitCode).not.toBe(0);
    expect(people.output).toMatch(/error +open +.*store\.db/);
    expect(await cli.run(["doctor", "--store", "redis://127.0.0.1:1"])).toMatchObject({
      exitCode: 9,
      output: expect.stringContaining("error"),
    });
  });
});

describe("cat and write", () => {
  it("read and write control files", async () => {
    cli = openCommandLine();
    await cli.text("mkdir", "q");
    const { output } = await cli.run(["write", "/q/enqueue"], Buffer.of(0xff, 0, 10));
    expect(output).toMatch(/^m-\S+\n$/);
    expect(await cli.json("write", "q/enqueue", "second")).toEqual([{ path: "/q/enqueue", id: expect.stringMatching(/^m-/) }]);
    await cli.run(["write", "/q/enqueue"], "");
    expect(await cli.text("cat", "/q/status")).toBe('{"pending":3,"processing":0}');
    expect(await cli.text("cat", "q/size")).toBe("3");
    const taken = JSON.parse(await cli.text("cat", "/q/dequeue")) as Record<string, string>;
    expect(taken).toMatchObject({ data: "/wAK", encoding: "base64" });
    expect((await cli.run(["write", "/q/ack"], `${taken.receipt}\n`)).exitCode).toBe(0);
    expect(await cli.run(["write", "/q/ack", taken.receipt as string])).toMatchObject({ exitCode: 5 });
    expect((await cli.run(["write", "/q/clear"], "")).exitCode).toBe(0);
    expect(await cli.text("cat", "/q/dequeue")).toBe("{}");
    expect((await cli.run(["cat", "/q/enqueue"])).exitCode).toBe(13);
    expect((await cli.run(["write", "/q/size", "1"])).exitCode).toBe(13);
    expect((await cli.run(["cat", "/q"])).exitCode).toBe(14);
    expect((await cli.run(["cat", "/q/nope"])).exitCode).toBe(4);
    expect((await cli.run(["cat", "/nope/size"])).exitCode).toBe(4);
  });

  it("give a message back whose reader has gone", async () => {
    cli = openCommandLine();
    await cli.text("mkdir", "q");
    await cli.run(["enqueue", "q"], "x".repeat(8 * 1024 * 1024));
    expect((await cli.shell(["queuefs cat /q/dequeue | head -c 1 > first", "cat first"]).ended).output).toBe("{");
    expect(await cli.json("status", "q")).toEqual([{ queue: "q", pending: 1, processing: 0 }]);
  });
});
