/** Tasks as files: what they give, how their end is waited for, how they are removed, and where messages name them. */

import { expect, test } from "vitest";
import { parseTaskId } from "../../src/core/names.ts";
import { Tasks } from "../../src/task/index.ts";
import { overEveryStore, QUEUE, refusal, utf8 } from "../support/file-face.ts";

overEveryStore("tasks as files", (face) => {
  /** A task with one message for each text. */
  const make = async (id: string, ...texts: readonly string[]): Promise<void> => {
    const messages = texts.map((text) => ({ data: utf8(text) }));
    await face.backend.createTask({ id: parseTaskId(id), type: "import", resource: "/a b", meta: { by: "me" } }, [
      { queue: QUEUE, messages },
    ]);
  };
  const ackOne = async (): Promise<unknown> => face.put("/q/ack", (await face.take()).receipt);

  test("a task is one line of JSON", async () => {
    await make("one", "a", "b");
    const text = await face.text("/.tasks/one");
    expect(text.endsWith("}\n")).toBe(true);
    const task = JSON.parse(text) as Record<string, unknown>;
    expect(Object.keys(task)).toEqual(["id", "type", "resource", "status", "progress", "sealed", "meta", "createdAt", "updatedAt"]);
    expect(task).toMatchObject({
      id: "one",
      type: "import",
      resource: "/a b",
      status: "pending",
      progress: { total: 2, done: 0, failed: 0, cancelled: 0, unacked: 2 },
      sealed: true,
      meta: { by: "me" },
      createdAt: expect.stringMatching(/Z$/),
    });
    await ackOne();
    expect(await face.json("/.tasks/one")).toMatchObject({ status: "running", progress: { done: 1, unacked: 1 } });
    const { id, receipt } = await face.take();
    await face.put("/q/.nack", JSON.stringify({ receipt, giveUp: true, reason: "no such page" }));
    expect(await face.json("/.tasks/one")).toMatchObject({
      status: "failed",
      progress: { total: 2, done: 1, failed: 1, unacked: 0 },
      error: { reason: "no such page", queue: "q", message: id },
      finishedAt: expect.stringMatching(/Z$/),
    });
  });

  test("an open handle gives the same bytes at every offset", async () => {
    await make("one", "a");
    const handle = await face.fs.open("/.tasks/one", { mode: "read" });
    const first = await handle.read({ length: 1_000, offset: 0 });
    await ackOne();
    expect(await handle.read({ length: 1_000, offset: 0 })).toEqual(first);
    expect(await handle.read({ length: 5, offset: 3 })).toEqual(first.slice(3, 8));
    expect(await handle.read({ length: 5, offset: first.byteLength })).toHaveLength(0);
    await handle.close();
  });

  test("the directory lists the ids, the newest first, and is seen in the root with all dot files", async () => {
    expect(await face.fs.readdir("/.tasks")).toEqual([]);
    const ids = Array.from({ length: 5 }, (_, index) => `task-${index}`);
    for (const id of ids) await make(id, "a");
    expect((await face.fs.readdir("/.tasks")).map(({ name }) => name)).toEqual(ids.toReversed());
    for (const entry of await face.fs.readdir("/.tasks")) {
      expect(entry).toMatchObject({ kind: "file", role: "task", mode: 0o444, size: 0 });
      expect(await face.fs.stat(`/.tasks/${entry.name}`)).toEqual(entry);
    }
    expect((await face.fs.readdir("/", { all: true })).map(({ name }) => name)).toEqual([".tasks", "q"]);
    expect((await face.fs.readdir("/")).map(({ name }) => name)).toEqual(["q"]);
    expect(await face.fs.stat("/.tasks/")).toMatchObject({ name: ".tasks", kind: "directory", role: "tasks", mode: 0o755 });
    expect(await face.fs.stat("/.tasks/task-0/wait")).toMatchObject({ name: "wait", kind: "file", role: "task", mode: 0o444 });
  });

  test("wait answers when the task has ended, however it ended, and not before", async () => {
    await make("done", "a");
    let answered = false;
    const waiting = face.json<{ status: string }>("/.tasks/done/wait").then((task) => {
      answered = true;
      return task;
    });
    const { receipt } = await face.take();
    expect(await face.json("/.tasks/done")).toMatchObject({ status: "running" });
    expect(answered).toBe(false);
    await face.put("/q/ack", receipt);
    expect(await waiting).toMatchObject({ status: "completed" });
    expect(await face.text("/.tasks/done/wait")).toBe(await face.text("/.tasks/done"));
    await make("off", "a");
    const other = face.json<{ status: string }>("/.tasks/off/wait");
    await new Tasks(face.backend).cancel("off", { reason: "no longer wanted" });
    expect(await other).toMatchObject({ status: "cancelled", error: { reason: "no longer wanted" } });
  });

  test("wait ends when its reader goes or the face is closed", async () => {
    await make("one", "a");
    const controller = new AbortController();
    const gone = face.fs.read("/.tasks/one/wait", { signal: controller.signal });
    controller.abort(new Error("gone"));
    await expect(gone).rejects.toThrow("gone");
    const handle = await face.fs.open("/.tasks/one/wait", { mode: "read" });
    const open = refusal("closed", handle.read({ length: 10 }));
    const closed = refusal("closed", face.fs.read("/.tasks/one/wait"));
    // By the time this is answered, both reads have begun to wait.
    await face.fs.stat("/.tasks/one");
    await face.fs.close();
    await Promise.all([open, closed]);
  });

  test("what is not there is not found, and what cannot be is refused", async () => {
    await make("one", "a");
    for (const path of ["/.tasks/nope", "/.tasks/nope/wait"]) {
      const error = await refusal("task-not-found", face.fs.read(path));
      expect(error.errno).toBe("ENOENT");
      await refusal("task-not-found", face.fs.stat(path));
      await refusal("task-not-found", face.fs.open(path, { mode: "read" }));
    }
    await refusal("path-not-found", face.fs.read("/.tasks/a b"));
    for (const path of ["/.tasks/one/", "/.tasks/one/size", "/.tasks/one/wait/x"]) await refusal("not-a-directory", face.fs.read(path));
    for (const path of ["/.tasks/one", "/.tasks/one/wait"]) await refusal("not-a-directory", face.fs.readdir(path));
    await refusal("task-not-found", face.fs.readdir("/.tasks/nope"));
    await refusal("is-a-directory", face.fs.read("/.tasks"));
    for (const path of ["/.tasks/one", "/.tasks/one/wait"]) {
      const error = await refusal("wrong-mode", face.put(path, "x"));
      expect(error.errno).toBe("EACCES");
      await refusal("wrong-mode", face.fs.open(path, { mode: "write" }));
      await refusal("wrong-mode", face.fs.open(path, { mode: "read-write" }));
      await refusal("wrong-mode", face.fs.truncate(path, 0));
      await refusal("invalid-argument", face.fs.read(path, { requestId: "r" }));
      await face.fs.touch(path);
    }
    await refusal("task-not-found", face.fs.touch("/.tasks/nope"));
    for (const path of ["/.tasks", "/.tasks/new", "/.tasks/one/wait"]) {
      expect((await refusal("reserved-name", face.fs.mkdir(path))).errno).toBe("EINVAL");
    }
    await refusal("unsupported", face.fs.rename("/.tasks/one", "/two"));
  });

  test("removing takes away the record of a task that has ended, and nothing else", async () => {
    await make("one", "a");
    const active = await refusal("task-active", face.fs.rm("/.tasks/one"));
    expect(active.errno).toBe("EBUSY");
    await refusal("wrong-mode", face.fs.rm("/.tasks/one/wait"));
    for (const recursive of [false, true]) await refusal("wrong-mode", face.fs.rm("/.tasks", { recursive }));
    await ackOne();
    expect(await face.fs.rm("/.tasks/one")).toBe(1);
    for (const path of ["/.tasks/one", "/.tasks/one/wait"]) await refusal("task-not-found", face.fs.rm(path));
    expect(await face.fs.readdir("/.tasks")).toEqual([]);
    expect(await face.text("/q/status")).toBe('{"pending":0,"processing":0}');
  });

  test("messages name the task that owns them, after all their other keys", async () => {
    await face.put("/q/enqueue", "nobody's");
    await make("one", "a", "b");
    const plain = await face.take();
    expect(Object.keys(plain)).toEqual(["id", "data", "receipt", "timestamp", "deliveries"]);
    expect(Object.entries(await face.json<object>("/q/peek")).at(-1)).toEqual(["task", "one"]);
    const owned = await face.take();
    expect(Object.entries(owned).at(-1)).toEqual(["task", "one"]);
    expect(await face.json("/q/messages")).toEqual([
      expect.not.objectContaining({ task: expect.anything() }),
      expect.objectContaining({ data: "a", task: "one" }),
      expect.objectContaining({ data: "b", task: "one" }),
    ]);
    await face.put("/q/.nack", JSON.stringify({ receipt: owned.receipt, giveUp: true, reason: "bad" }));
    const [letter] = await face.json<[object]>("/q/.dead");
    expect(Object.entries(letter).at(-1)).toEqual(["task", "one"]);
  });

  test("a nack of a message whose task was cancelled settles it", async () => {
    await make("one", "a");
    const { receipt } = await face.take();
    await new Tasks(face.backend).cancel("one");
    expect(await face.json("/.tasks/one")).toMatchObject({ status: "cancelling" });
    await face.put("/q/.nack", receipt);
    expect(await face.json("/.tasks/one")).toMatchObject({ status: "cancelled", progress: { cancelled: 1 } });
    await refusal("not-in-processing", face.put("/q/.nack", receipt));
  });

  test("watch hints at changes of tasks, also where no queue changes", async () => {
    await make("one", "a");
    for (const path of ["/.tasks", "/.tasks/one", "/.tasks/one/wait", "/"]) {
      const watch = face.fs.watch(path);
      const first = watch.next();
      await new Tasks(face.backend).update("one", { stage: path });
      expect((await first).done).toBe(false);
      await watch.return?.();
    }
    await refusal("task-not-found", face.fs.watch("/.tasks/nope").next());
  });
});
