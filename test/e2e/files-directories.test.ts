/** Directories of the file face, their removal, and hints of changes in them. */

import { expect, test } from "vitest";
import { CONTROL_FILES, isControlFileName } from "../../src/core/control-files.ts";
import { overEveryStore, QUEUE, refusal, utf8 } from "../support/file-face.ts";

const EIGHT = ["enqueue", "dequeue", "peek", "size", "status", "messages", "clear", "ack"];
const DOT_FILES = [".nack", ".extend", ".wait", ".dead", ".stats"];

overEveryStore("directories", (face) => {
  const names = async (path: string, options?: { all: boolean }): Promise<string[]> =>
    (await face.fs.readdir(path, options)).map((entry) => entry.name);

  test("a queue lists its files next to the queues under it, a plain directory only those", async () => {
    expect(await face.fs.mkdir("/p")).toBe("created");
    expect(await face.fs.mkdir("/p/c/")).toBe("created");
    expect(await face.fs.mkdir("/p/c")).toBe("exists");
    expect(await face.fs.mkdir("/deep/er/queue")).toBe("created");
    expect(await names("/")).toEqual(["deep", "p", "q"]);
    expect(await names("/p")).toEqual([...EIGHT, "c"]);
    expect(await names("//p/./", { all: true })).toEqual([...EIGHT, ...DOT_FILES, "c"]);
    expect(await names("/deep")).toEqual(["er"]);
    expect(await face.text("/p/status")).toBe('{"pending":0,"processing":0}');
    expect(await face.text("/p/c/status")).toBe('{"pending":0,"processing":0}');
    await refusal("queue-not-found", face.fs.read("/deep/status"));
    expect(await face.fs.mkdir("/deep")).toBe("created");
    expect(await names("/deep")).toEqual([...EIGHT, "er"]);
  });

  test("a listing shows each child once and in order, however many queues lie under it", async () => {
    const made = ["a", "a-b", "a/b", "a/c/d", "a.b", "B", "日本/q", "\u{ffff}", "\u{10ffff}/x", "\u{10ffff}/\u{10ffff}y"];
    for (const name of made) await face.fs.mkdir(`/tree/${name}`);
    for (let index = 0; index < 5; index += 1) await face.fs.mkdir(`/tree/many/${index}`);
    expect(await names("/tree")).toEqual(["B", "a", "a-b", "a.b", "many", "日本", "\u{ffff}", "\u{10ffff}"]);
    const roles = Object.fromEntries((await face.fs.readdir("/tree")).map((entry) => [entry.name, entry.role]));
    expect(roles).toMatchObject({ a: "queue", many: "directory", "\u{10ffff}": "directory", B: "queue" });
  });

  test("stat tells what is there, with modes and without effects", async () => {
    await face.fs.mkdir("/deep/queue");
    expect(await face.fs.stat("/")).toMatchObject({ name: "", kind: "directory", role: "root", mode: 0o755 });
    expect(await face.fs.stat("/deep/")).toMatchObject({ name: "deep", kind: "directory", role: "directory" });
    expect(await face.fs.stat("/deep/queue")).toMatchObject({ name: "queue", kind: "directory", role: "queue", mode: 0o755 });
    for (const entry of (await face.fs.readdir("/q", { all: true })).filter((one) => one.kind === "file")) {
      expect(isControlFileName(entry.name) && entry.mode === CONTROL_FILES[entry.name].mode).toBe(true);
      expect(await face.fs.stat(`/q/${entry.name}`)).toEqual(entry);
      expect(entry.size).toBe(0);
    }
    expect(await face.fs.stat(utf8("/q/status"))).toMatchObject({ mode: 0o444 });
    await refusal("queue-not-found", face.fs.stat("/missing"));
    await refusal("queue-not-found", face.fs.stat("/missing/size"));
    await refusal("queue-not-found", face.fs.stat("/q/child"));
    await refusal("path-not-found", face.fs.stat("/q/.hidden"));
    await refusal("path-not-found", face.fs.stat("/size"));
  });

  test("names that belong to files are refused at creation", async () => {
    for (const path of ["/size", "/jobs/ack", "/q/enqueue", "/q/enqueue/x", "/.tasks", "/q/.wait"])
      await refusal("reserved-name", face.fs.mkdir(path));
    for (const path of ["/a/..", "relative", "", "/a\nb", `/${"x".repeat(256)}`, "/a\0"])
      await refusal("invalid-name", face.fs.mkdir(path));
    await refusal("invalid-name", face.fs.mkdir(Uint8Array.of(0x2f, 0xff)));
    expect(await names("/")).toEqual(["q"]);
  });

  test("removing touches what is named and nothing else", async () => {
    for (const name of ["a", "a/b", "a_b", "ab", "plain/x"]) await face.fs.mkdir(`/${name}`);
    await face.put("/a_b/enqueue", "stays");
    await refusal("not-empty", face.fs.rm("/a"));
    await refusal("not-empty", face.fs.rm("/plain"));
    await refusal("queue-not-found", face.fs.rm("/missing"));
    await refusal("queue-not-found", face.fs.rm("/missing", { onlyComplete: true }));
    await refusal("queue-not-found", face.fs.rm("/missing", { recursive: true }));
    await refusal("wrong-mode", face.fs.rm("/a/status"));
    await refusal("queue-not-found", face.fs.rm("/missing/status"));
    await refusal("invalid-argument", face.fs.rm("/"));
    await refusal("invalid-argument", face.fs.rm("/", { recursive: true }));
    expect(await face.fs.rm("/a", { recursive: true })).toBe(2);
    expect(await face.fs.rm("/plain", { recursive: true })).toBe(1);
    expect(await names("/")).toEqual(["a_b", "ab", "q"]);
    expect(await face.text("/a_b/size")).toBe("1");
    expect(await face.fs.rm("/ab")).toBe(1);
  });

  test("rm of complete queues only refuses one with pending messages, or messages in processing", async () => {
    await face.put("/q/enqueue", "one");
    const onlyComplete = true;
    expect((await refusal("not-empty", face.fs.rm("/q", { onlyComplete }))).message).toContain("not empty");
    const { id } = await face.take();
    await refusal("not-empty", face.fs.rm("/q", { onlyComplete }));
    await face.fs.mkdir("/q/under");
    await refusal("not-empty", face.fs.rm("/q", { onlyComplete, recursive: true }));
    await face.put("/q/ack", id);
    await refusal("not-empty", face.fs.rm("/q", { onlyComplete }));
    expect(await face.fs.rm("/q", { onlyComplete, recursive: true })).toBe(2);
  });
});

overEveryStore("watch", (face) => {
  test("hints at changes of the watched queue, made by whomever", async () => {
    const watch = face.fs.watch("/q");
    const first = watch.next();
    await face.backend.enqueue(QUEUE, [{ data: utf8("one") }]);
    const { done, value } = await first;
    expect(done).toBe(false);
    expect(value.queues === undefined || value.queues.includes("q")).toBe(true);
    await watch.return?.();
    expect(await watch.next()).toEqual({ done: true, value: undefined });
  });

  test("ends with its signal and with the face", async () => {
    const controller = new AbortController();
    const byItself = face.fs.watch("/", { signal: controller.signal }).next();
    controller.abort();
    expect((await byItself).done).toBe(true);
    const withFace = face.fs.watch("/q/status");
    const ended = (async () => {
      for await (const _change of withFace) {
        // Any hint will do; only the end is waited for.
      }
      return "ended";
    })();
    await face.fs.close();
    expect(await ended).toBe("ended");
  });
});
