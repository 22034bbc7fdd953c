/** The main job, `npm run demo`, run as people run it; and the proof at its end, which must see every way in which a result can be wrong. */

import { spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { checksumOf, findDocuments, sectionsOf } from "../../examples/import/documents.ts";
import { SearchIndex } from "../../examples/import/search-index.ts";
import { type Check, verifyImport } from "../../examples/import/verify.ts";
import { checkCompleted, checkFailed, checkMoment } from "../../examples/import/verify-task.ts";
import type { QueueStatus, Statistics } from "../../src/core/message.ts";
import type { QueueName, TaskId } from "../../src/core/names.ts";
import type { Task, TaskProgress, TaskStatus } from "../../src/core/task.ts";

const root = join(import.meta.dirname, "..", "..");
/** What is imported: a copy, so that whoever edits the repository meanwhile does not change an input. */
const PARTS = ["README.md", "CONTRIBUTING.md", "docs", "src/core", "src/queue"];

let place = "";
let folder = "";
let documents: readonly string[] = [];

beforeAll(() => {
  place = mkdtempSync(join(tmpdir(), "queuefs-demo-"));
  folder = join(place, "documents");
  for (const part of PARTS) cpSync(join(root, part), join(folder, part), { recursive: true });
  documents = findDocuments(folder).documents;
});

afterAll(() => rmSync(place, { recursive: true, force: true }));

interface Ended {
  readonly exitCode: number | null;
  readonly output: string;
  readonly errors: string;
}

/** Runs a program in the repository to its end. */
function run(program: string, programArguments: readonly string[]): Promise<Ended> {
  const child = spawn(program, [...programArguments], { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  let errors = "";
  child.stdout.setEncoding("utf8").on("data", (part: string) => {
    output += part;
  });
  child.stderr.setEncoding("utf8").on("data", (part: string) => {
    errors += part;
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (exitCode) => resolve({ exitCode, output, errors }));
  });
}

describe("npm run demo", () => {
  it("imports every document although a worker is killed, and reports the broken one of a second run; proves both, and exits 0", async () => {
    const { exitCode, output, errors } = await run("npm", ["run", "--silent", "demo", "--", folder]);
    expect(errors).toBe("");
    expect(exitCode, output).toBe(0);
    expect(documents.length).toBeGreaterThan(20);
    const [first, second] = [...output.matchAll(/task (\S+) made, with (\d+) documents in import\/parse, in one step$/gm)].map((made) => ({
      id: made[1] as string,
      documents: Number(made[2]),
    }));
    expect([first?.documents, second?.documents]).toEqual([documents.length, 9]);
    expect(output).toMatch(/task running, \d+ of \d+ messages done \(\d+ %\)/);

    const killed = /worker [12] KILLED \(signal SIGKILL\) in the middle of a step: import\/(?:parse|index) of (\S+)/.exec(output);
    const lost = killed?.[1] as string;
    expect(documents).toContain(lost);
    expect(output).toMatch(/worker 3 starts, process \d+/);
    expect(output).toMatch(new RegExp(`worker [123] has ${lost.replaceAll(".", "\\.")} now: delivery 2, \\d+ ms after the kill`));
    const ended = output.indexOf(`the task ended as completed: ${2 * documents.length} messages done, 0 failed`);
    expect(ended).toBeGreaterThan(output.indexOf(": delivery 2,"));
    expect(output.indexOf("complete: one snapshot of both queues")).toBeGreaterThan(ended);
    expect(output).toMatch(/worker [12] gives up on cut-off\.md: its bytes are not valid UTF-8/);

    const proof = [...output.matchAll(/^ {2}(ok {2}|FAIL) {2}(.+)$/gm)].map(([, verdict, text]) => `${verdict?.trim()} ${text}`);
    const moment = "ok the task ended when both queues were complete: neither was seen without the other";
    expect(proof).toEqual([
      `ok the task is completed: ${2 * documents.length} of its ${2 * documents.length} messages done, 0 failed, 0 left`,
      moment,
      `ok ${documents.length} documents, ${documents.length} results: one for each`,
      expect.stringMatching(/^ok each has the checksum, the sections and the words of its file \(\d+ sections, \d+ words\)$/),
      `ok each is found by its rarest word (${documents.length} searches)`,
      `ok each queue took ${documents.length} messages and saw ${documents.length} acks; none is left, none is a dead letter`,
      expect.stringMatching(
        new RegExp(`^ok ${lost.replaceAll(".", "\\.")}, cut off with worker [12], was delivered again to worker [123]$`),
      ),
      "ok the task is failed: 16 of its 17 messages done, 1 failed, 0 left",
      "ok its report names cut-off.md and no other: its bytes are not valid UTF-8",
      moment,
      "ok 8 documents, 8 results: one for each",
      expect.stringMatching(/^ok each has the checksum, the sections and the words of its file/),
      "ok each is found by its rarest word (8 searches)",
    ]);
    expect(output).toMatch(/"receipt" is in \d+ documents\n {4}\S+\.(?:md|ts) +\S/);
    const status = ["import/parse", "import/index"].map((queue) => `  ${queue.padEnd(14)} {"pending":0,"processing":0}`).join("\n");
    const tasks = `  task ${first?.id}  completed  ${2 * documents.length} done, 0 failed\n  task ${second?.id}  failed     16 done, 1 failed`;
    expect(output).toContain(`Final status\n${status}\n${tasks}\n\nNothing was lost.`);
    // In a pipe nothing moves the cursor.
    expect(output).not.toContain("\u001b");
  });

  it("refreshes the counts in place on a terminal, and leaves the events and the proof above", async () => {
    const few = join(place, "few");
    mkdirSync(few);
    for (const name of ["one", "two", "three", "four", "five"]) writeFileSync(join(few, `${name}.md`), `# ${name}\nthe words of ${name}\n`);
    const command = `stty cols 120 rows 40; npm run --silent demo -- '${few}' --pace 60`;
    const { exitCode, output } = await run("script", ["-qec", command, "/dev/null"]);
    expect(exitCode, output).toBe(0);
    const drawn = output.replaceAll("\r", "").split("\u001b[5A\u001b[0J");
    expect(drawn.length).toBeGreaterThan(4);
    expect(drawn[0]).toMatch(
      /pending +processing\n {2}import\/parse +\d+ +\d+\n {2}import\/index +\d+ +\d+\n {2}[█░]{30} {2}\d+ % {2}task \w+, \d+ of \d+ messages done\n$/,
    );
    expect(drawn.slice(1).join("")).toMatch(
      /complete: one snapshot[\s\S]*5 documents, 5 results[\s\S]*Once more, 5 documents and a broken one/,
    );
    expect(drawn.at(-1)).toMatch(/the task ended as failed: 10 messages done, 1 failed[\s\S]*names cut-off\.md[\s\S]*Nothing was lost/);
  });

  it("ends with 1 and says why when there is too little to import", async () => {
    const empty = join(place, "empty");
    mkdirSync(empty);
    const { exitCode, errors } = await run("npm", ["run", "--silent", "demo", "--", empty]);
    expect(exitCode).toBe(1);
    expect(errors).toBe(`the import failed: ${empty} has 0 documents; the import needs at least 4, choose another folder\n`);
  });
});

/** Statistics of a queue that took and acked some messages. */
function statisticsOf(acked: number, changed: Partial<Statistics> = {}): Statistics {
  return {
    pending: 0,
    processing: 0,
    delayed: 0,
    dead: 0,
    enqueued: acked,
    delivered: acked,
    acked,
    returned: 0,
    deadLettered: 0,
    cleared: 0,
    createdAtMs: 0,
    settings: { maxDeliveries: 20 },
    ...changed,
  };
}

describe("the proof of the demo", () => {
  let index: SearchIndex;
  let indexes = 0;

  /** Indexes the documents as the workers do, those left out excepted. */
  function indexAll(leftOut: readonly string[] = []): void {
    indexes += 1;
    index = new SearchIndex(join(place, `index-${indexes}.db`));
    for (const document of documents) {
      if (leftOut.includes(document)) continue;
      const bytes = readFileSync(join(folder, document));
      index.store(`id-of-${document}`, { document, checksum: checksumOf(bytes), sections: sectionsOf(document, bytes.toString("utf8")) });
    }
  }

  function verify(statistics: Statistics = statisticsOf(documents.length)): Check[] {
    const checks = verifyImport({ folder, documents, index, statistics: new Map([["import/parse", statistics]]) });
    index.close();
    return checks;
  }

  const failures = (checks: readonly Check[]): string[] => checks.filter(({ passed }) => !passed).map(({ text }) => text);

  it("passes when every document has its result, however often it was stored", () => {
    indexAll();
    for (const document of documents.slice(0, 3)) {
      const bytes = readFileSync(join(folder, document));
      index.store(`id-of-${document}`, { document, checksum: checksumOf(bytes), sections: sectionsOf(document, bytes.toString("utf8")) });
    }
    expect(failures(verify())).toEqual([]);
  });

  it("fails when a result is missing, and names the document", () => {
    indexAll(["README.md"]);
    const failed = failures(verify());
    expect(failed[0]).toBe("no result: README.md");
    expect(failed[1]).toMatch(/^not found by its own word: README\.md \("\w+"\)$/);
    expect(failed).toHaveLength(2);
  });

  it("fails when a document has two results", () => {
    indexAll();
    index.store("another-id", { document: "README.md", checksum: "", sections: [] });
    expect(failures(verify())).toEqual(["more than one result: README.md", "not what the file holds: README.md"]);
  });

  it("fails when a result has other words, or fewer, than the file", () => {
    indexAll(["README.md", "CONTRIBUTING.md"]);
    for (const document of ["README.md", "CONTRIBUTING.md"]) {
      const bytes = readFileSync(join(folder, document));
      index.store(`id-of-${document}`, {
        document,
        checksum: checksumOf(bytes),
        sections: sectionsOf(document, bytes.toString("utf8")).slice(1),
      });
    }
    expect(failures(verify())[0]).toBe("not what the file holds: CONTRIBUTING.md, README.md");
  });

  it("fails when there is a result of no document", () => {
    indexAll();
    index.store("id-of-nothing", { document: "nothing.md", checksum: "", sections: [] });
    expect(failures(verify())).toEqual(["result without a document: nothing.md"]);
  });

  it.each([
    ["a message is left", { pending: 1 }],
    ["a message is in processing", { processing: 1 }],
    ["there is a dead letter", { dead: 1 }],
    ["fewer were acked", { acked: 1 }],
    ["more were enqueued", { enqueued: 1_000_000 }],
  ])("fails when %s", (_what, changed) => {
    indexAll();
    const failed = failures(verify(statisticsOf(documents.length, changed)));
    expect(failed).toEqual([
      expect.stringMatching(/^import\/parse: \d+ enqueued, \d+ acked, \d+ pending, \d+ processing, \d+ dead letters$/),
    ]);
  });
});

describe("the proof of the demo about its tasks", () => {
  const broken = { document: "broken.md", reason: "no text" };

  function taskOf(status: TaskStatus, progress: Partial<TaskProgress>): Task {
    const counts = { total: 0, done: 0, failed: 0, cancelled: 0, unacked: 0, ...progress };
    const error = status === "failed" ? { error: { reason: broken.reason } } : {};
    return { id: "task" as TaskId, type: "import", status, sealed: true, progress: counts, createdAtMs: 0, updatedAtMs: 0, ...error };
  }

  it("passes a completed task of which every message is done, and no other", () => {
    expect(checkCompleted(taskOf("completed", { total: 10, done: 10 }), 5)).toMatchObject({ passed: true });
    for (const task of [
      taskOf("running", { total: 10, done: 9, unacked: 1 }),
      taskOf("failed", { total: 10, done: 9, failed: 1 }),
      taskOf("completed", { total: 9, done: 9 }),
      taskOf("completed", { total: 11, done: 10, cancelled: 1 }),
    ])
      expect(checkCompleted(task, 5)).toMatchObject({ passed: false, text: expect.stringMatching(/^the task is \w+, not completed: /) });
  });

  it("passes a failed task whose report names the broken document alone, with its error", () => {
    const task = taskOf("failed", { total: 11, done: 10, failed: 1 });
    expect(checkFailed(task, [broken], broken, 5).map(({ passed }) => passed)).toEqual([true, true]);
    for (const report of [
      [],
      [broken, { ...broken, document: "other.md" }],
      [{ ...broken, reason: "other" }],
      [{ ...broken, document: "b" }],
    ])
      expect(checkFailed(task, report, broken, 5).map(({ passed }) => passed)).toEqual([true, false]);
    expect(checkFailed(taskOf("completed", { total: 10, done: 10 }), [], broken, 5).map(({ passed }) => passed)).toEqual([false, false]);
    expect(checkFailed(taskOf("failed", { total: 11, done: 9, failed: 1, unacked: 1 }), [broken], broken, 5)[0]?.passed).toBe(false);
  });

  it("fails when the task ended before its queues were complete, or after", () => {
    const status = (pending: number, processing: number): QueueStatus =>
      ({ queue: "import/parse" as QueueName, pending, processing }) as QueueStatus;
    expect(checkMoment([status(0, 0)], "completed").passed).toBe(true);
    expect(checkMoment([status(0, 0), status(0, 1)], "completed").text).toBe("the task had ended, yet import/parse was not complete");
    expect(checkMoment([status(0, 0)], "running").text).toBe("both queues were complete, yet the task was running");
  });
});
