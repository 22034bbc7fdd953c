/** Taking the queue.db of an older service over, as people do it. */

import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type CommandLine, openCommandLine } from "../support/command-line.ts";
import { startRedisServer } from "../support/redis-server.ts";
import { oldRecord, writeOldFile } from "../support/reference-file.ts";

let cli: CommandLine;
let path: string;
beforeEach(() => {
  cli = openCommandLine();
  path = join(cli.folder, "queue.db");
  writeOldFile(path, {
    queues: ["jobs", "status"],
    messages: [
      { queue: "jobs", id: "one", record: oldRecord("one", "first"), status: "processing" },
      { queue: "jobs", id: "bad", record: "not a record" },
      { queue: "jobs/status", id: "two", record: oldRecord("two", Uint8Array.of(0xff, 0)) },
      { queue: "jobs", id: "one", record: oldRecord("one", "second") },
    ],
  });
});
afterEach(() => cli.dispose());

const NOTES = [
  'queue "jobs/status" is renamed to "jobs/migrated-status"',
  'queue "status" is renamed to "migrated-status"',
  "1 messages were in processing",
  "1 records could not be decoded",
  "1 messages have a new id",
  "begin anew",
];

describe("queuefs migrate", () => {
  it("says what it would do, without doing it", async () => {
    const { exitCode, output, errors } = await cli.run(["migrate", "queue.db", "--dry-run"]);
    expect(exitCode).toBe(0);
    expect(output).toBe(
      "OLD QUEUE    QUEUE                 MESSAGES  DEAD LETTERS  NEW IDS\n" +
        "jobs         jobs                         2             1        1\n" +
        "jobs/status  jobs/migrated-status         1             0        0\n" +
        "status       migrated-status              0             0        0\n",
    );
    for (const note of [...NOTES, "nothing was changed"]) expect(errors).toContain(note);
    expect(await cli.text("ls")).toBe("");
  });

  it("takes everything over, leaves the old file alone, and can be run again", async () => {
    const before = readFileSync(path);
    const { exitCode, errors } = await cli.run(["migrate", "queue.db"]);
    expect(exitCode).toBe(0);
    for (const note of NOTES) expect(errors).toContain(note);
    expect(await cli.json("status")).toEqual([
      { queue: "jobs", pending: 2, processing: 0 },
      { queue: "jobs/migrated-status", pending: 1, processing: 0 },
      { queue: "migrated-status", pending: 0, processing: 0 },
    ]);
    expect(await cli.json("messages", "jobs")).toMatchObject([
      { id: "one", data: "first" },
      { id: "migrated-4", data: "second" },
    ]);
    expect(await cli.json("messages", "jobs/migrated-status")).toMatchObject([{ id: "two", data: "/wA=", encoding: "base64" }]);
    expect(await cli.json("dead", "jobs")).toMatchObject([
      { id: "bad", data: "not a record", reason: expect.stringContaining("not JSON") },
    ]);
    expect(await cli.json("migrate", "queue.db")).toMatchObject([
      { stored: 0, repeated: 3, putAside: 1 },
      { stored: 0, repeated: 1 },
      { stored: 0, repeated: 0 },
    ]);
    expect(await cli.text("size", "jobs")).toBe("2\n");
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  it("takes over into a Redis server as well", async () => {
    const server = await startRedisServer();
    try {
      await cli.text("migrate", "queue.db", "--to", server.url);
      expect(await cli.text("ls")).toBe("");
      const on = ["--store", server.url];
      expect(await cli.json("messages", "jobs", ...on)).toMatchObject([{ data: "first" }, { data: "second" }]);
      expect(await cli.json("dead", "jobs", ...on)).toMatchObject([{ id: "bad", data: "not a record" }]);
      await cli.text("migrate", "queue.db", "--to", server.url);
      expect(await cli.text("size", "jobs", ...on)).toBe("2\n");
      expect(await cli.json("dead", "jobs", ...on)).toHaveLength(1);
    } finally {
      await server.stop();
    }
  });

  it("refuses a message beyond the limit before anything is written, unless the limit is raised", async () => {
    expect(await cli.run(["migrate", "queue.db", "--max-message-bytes", "10"])).toMatchObject({
      exitCode: 7,
      errors: expect.stringContaining("--max-message-bytes"),
    });
    expect(await cli.text("ls")).toBe("");
    expect((await cli.run(["migrate", "queue.db", "--dry-run", "--max-message-bytes", "10"])).exitCode).toBe(7);
    expect((await cli.run(["migrate", "queue.db", "--max-message-bytes", "100000000"])).exitCode).toBe(0);
  });

  it("refuses what is no such file, and the target itself", async () => {
    writeFileSync(join(cli.folder, "text"), "hello");
    expect(await cli.run(["migrate", "none.db"])).toMatchObject({ exitCode: 4 });
    expect(await cli.run(["migrate", "text"])).toMatchObject({ exitCode: 2, errors: expect.stringContaining("not an SQLite file") });
    await cli.text("mkdir", "q");
    expect(await cli.run(["migrate", "store.db"])).toMatchObject({ exitCode: 2, errors: expect.stringContaining("the target itself") });
    copyFileSync(join(cli.folder, "store.db"), join(cli.folder, "copy.db"));
    expect(await cli.run(["migrate", "copy.db"])).toMatchObject({
      exitCode: 2,
      errors: expect.stringContaining("not a queue.db of the reference layout"),
    });
    expect(await cli.run(["migrate", "queue.db", "--to", "sqlite:queue.db"])).toMatchObject({
      exitCode: 2,
      errors: expect.stringContaining("the target itself"),
    });
    expect(await cli.text("ls")).toBe("q\n");
  });
});
