/** The tree that AGFS clients see: looking at it, making and removing queues in it, and ways that lead out of it. */

import { afterEach, describe, expect, test } from "vitest";
import type { Backend } from "../../../src/backend/contract.ts";
import { openMemory } from "../../../src/backend/memory/index.ts";
import { QueueFSError } from "../../../src/core/errors.ts";
import { parseQueueName } from "../../../src/core/names.ts";
import { type App, createApp } from "../../../src/http/index.ts";
import { type Answered, askingOf, errorOf, overAgfs } from "../../support/agfs-face.ts";

const CONTROL_FILES = ["enqueue", "dequeue", "peek", "size", "status", "messages", "clear", "ack"];

function names(listing: Answered): string[] {
  expect(listing.status).toBe(200);
  return (listing.json.files as { name: string }[]).map(({ name }) => name);
}

overAgfs("looking", (face) => {
  test("shows the mount point, the README first, queues, their control files and the queues under them", async () => {
    await face.mkdir("/queuefs/a/b");
    await face.mkdir("/queuefs/q");
    await face.mkdir("/queuefs/q/child");
    expect(names(await face.ask("/directories"))).toEqual(["queuefs"]);
    expect(names(await face.at("/directories", "/"))).toEqual(["queuefs"]);
    expect(names(await face.at("/directories", "/queuefs"))).toEqual(["README", "a", "q"]);
    expect(names(await face.at("/list", "/queuefs/a/"))).toEqual(["b"]);
    expect(names(await face.at("/directories", "/queuefs/q"))).toEqual([...CONTROL_FILES, "child"]);
    expect(errorOf(await face.at("/directories", "/queuefs/q/size"))).toContain("not a directory");
    expect(errorOf(await face.at("/directories", "/queuefs/README"))).toContain("not a directory");
    expect(errorOf(await face.at("/directories", "/queuefs/none"))).toContain("not found");
  });

  test("tells of each thing in the form that all clients read", async () => {
    await face.mkdir("/queuefs/a/b");
    const told: [string, string, number, boolean, string][] = [
      ["/", "/", 0o755, true, "root"],
      ["/queuefs", "queuefs", 0o755, true, "mount-point"],
      ["/queuefs/README", "README", 0o444, false, "doc"],
      ["/queuefs/a", "a", 0o755, true, "directory"],
      ["/queuefs/a/b", "b", 0o755, true, "queue"],
      ["/queuefs/a/b/enqueue", "enqueue", 0o222, false, "control"],
      ["/queuefs/a/b/dequeue", "dequeue", 0o444, false, "control"],
      ["/queuefs/a/b/size", "size", 0o444, false, "status"],
    ];
    for (const [path, name, mode, isDir, type] of told) {
      const { status, json } = await face.at("/stat", path);
      expect({ path, status, ...json }).toMatchObject({
        path,
        status: 200,
        name,
        mode,
        isDir,
        meta: { Name: "queuefs", Type: type, Content: {} },
      });
      expect(json.modTime).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$/);
      expect(Number.isInteger(json.size)).toBe(true);
    }
    expect((await face.at("/stat", "/queuefs/README")).json.size).toBe((await face.read("/queuefs/README")).bytes.length);
  });

  test("has no effect, on dequeue neither", async () => {
    await face.mkdir("/queuefs/q");
    await face.write("/queuefs/q/enqueue", "x");
    for (const file of CONTROL_FILES) {
      expect((await face.at("/stat", `/queuefs/q/${file}`)).status).toBe(200);
      expect(await face.at("/touch", `/queuefs/q/${file}`, { method: "POST" })).toMatchObject({
        status: 200,
        json: { message: "touched" },
      });
      expect((await face.at("/files", `/queuefs/q/${file}`, { method: "POST" })).json).toEqual({ message: "file created" });
    }
    expect(await face.status("/queuefs/q")).toEqual({ pending: 1, processing: 0 });
  });

  test("shows by the time of peek that something was enqueued", async () => {
    await face.mkdir("/queuefs/q");
    let before = "";
    for (const text of ["1", "2", "3"]) {
      await face.write("/queuefs/q/enqueue", text);
      await expect.poll(async () => (await face.at("/stat", "/queuefs/q/peek")).json.modTime > before).toBe(true);
      before = (await face.at("/stat", "/queuefs/q/peek")).json.modTime;
    }
  });
});

overAgfs("making and removing", (face) => {
  test("a directory that is there already is as good as one that was made", async () => {
    for (const path of ["/queuefs/q", "/queuefs/q", "/queuefs/x/y/z", "/queuefs", "/"]) {
      expect(await face.mkdir(path), path).toMatchObject({ status: 201, json: { message: "directory created" } });
    }
    expect((await face.at("/mkdir", "/queuefs/other", { method: "POST" })).status).toBe(201);
    expect(names(await face.at("/directories", "/queuefs"))).toEqual(["README", "other", "q", "x"]);
    for (const path of ["/queuefs/size", "/queuefs/q/ack", "/queuefs/.hidden", "/queuefs/q/dequeue/r"])
      expect((await face.mkdir(path)).status, path).toBe(400);
    expect(errorOf(await face.mkdir("/elsewhere/q"))).toContain("not found");
  });

  test("removing takes no queue with work unless it is recursive, and the mount point never", async () => {
    await face.mkdir("/queuefs/q/under");
    await face.mkdir("/queuefs/q");
    await face.write("/queuefs/q/under/enqueue", "x");
    const remove = (path: string, recursive?: string): Promise<Answered> =>
      face.at("/files", path, { method: "DELETE", query: recursive === undefined ? {} : { recursive } });
    for (const path of ["/queuefs/q", "/queuefs/q/under"]) {
      const refused = await remove(path);
      expect(refused.status).toBe(409);
      expect(errorOf(refused)).toContain("not empty");
    }
    for (const path of ["/queuefs/q/size", "/queuefs/README", "/queuefs", "/queuefs/", "/queuefs/q/..", "/"]) {
      for (const recursive of ["true", "false"]) {
        const refused = await remove(path, recursive);
        expect(refused.status, path).toBe(403);
        expect(errorOf(refused)).toContain("permission denied");
      }
    }
    expect(await face.status("/queuefs/q/under")).toEqual({ pending: 1, processing: 0 });
    expect((await remove("/queuefs/q", "true")).json).toEqual({ message: "deleted" });
    expect(errorOf(await remove("/queuefs/q", "true"))).toContain("not found");
    await face.mkdir("/queuefs/empty");
    expect((await face.at("/directories", "/queuefs/empty", { method: "DELETE" })).json).toEqual({ message: "deleted" });
    expect(names(await face.at("/directories", "/queuefs"))).toEqual(["README"]);
  });

  test("what does not change anything succeeds where writing would", async () => {
    await face.mkdir("/queuefs/q");
    for (const file of ["enqueue", "ack", "clear"])
      expect((await face.at("/truncate", `/queuefs/q/${file}`, { method: "POST", query: { size: "0" } })).json).toEqual({
        message: "truncated",
      });
    expect((await face.at("/truncate", "/queuefs/q/size", { method: "POST", query: { size: "0" } })).status).toBe(403);
    expect(errorOf(await face.at("/truncate", "/queuefs/q/ack", { method: "POST" }))).toBe("size parameter is required");
    expect((await face.at("/truncate", "/queuefs/q/ack", { method: "POST", query: { size: "x" } })).status).toBe(400);
    expect((await face.at("/touch", "/queuefs/none/size", { method: "POST" })).status).toBe(404);
    expect(errorOf(await face.at("/files", "/queuefs/q", { method: "POST" }))).toContain("is a directory");
    expect(errorOf(await face.at("/files", "/queuefs/q/new.txt", { method: "POST" }))).toContain("not found");
    expect(errorOf(await face.write("/queuefs/q/new.txt", "x"))).toContain("not found");
  });

  test("a queue called README is a queue, and the file gives way to it", async () => {
    expect((await face.at("/stat", "/queuefs/README")).json.isDir).toBe(false);
    await face.mkdir("/queuefs/README");
    expect((await face.at("/stat", "/queuefs/README")).json.isDir).toBe(true);
    expect(names(await face.at("/directories", "/queuefs"))).toEqual(["README"]);
    await face.write("/queuefs/README/enqueue", "x");
    expect((await face.read("/queuefs/README/dequeue")).json.data).toBe("x");
    await face.at("/files", "/queuefs/README", { method: "DELETE", query: { recursive: "true" } });
    expect((await face.read("/queuefs/README")).text).toContain("QueueFS");
  });
});

overAgfs("paths", (face) => {
  test("are decoded as forms, and cleaned", async () => {
    await face.mkdir("/queuefs/two words & more/ü+");
    expect(await face.backend.listQueues()).toEqual({ items: ["two words & more/ü+"] });
    for (const path of [
      "/queuefs/two+words+%26+more/%C3%BC%2B/size",
      "/queuefs//two%20words%20%26%20more/./%c3%bc%2B/size/",
      "/../../queuefs/x/../two+words+%26+more/%C3%BC%2B/peek/../size",
      "queuefs/two+words+%26+more/%C3%BC%2B/size",
    ])
      expect(await face.ask(`/files?path=${path}`), path).toMatchObject({ status: 200, text: "0" });
  });

  test("that lead elsewhere, are malformed or missing are told as that, and nothing is done", async () => {
    const told: [string, number, RegExp][] = [
      ["path=/etc/rc", 404, /not found/],
      ["path=/queuefs/../etc/passwd", 404, /not found/],
      ["path=/queuefsx/q/size", 404, /not found/],
      ["path=/queuefs/%2e%2e/%2e%2e/etc", 404, /not found/],
      ["path=/queuefs/a%00b/size", 400, /control/],
      ["path=/queuefs/%ff/size", 400, /UTF-8/],
      ["path=/queuefs/q/size&path=/queuefs/r/size", 400, /twice/],
      [`path=/queuefs/${"x".repeat(300)}/size`, 400, /255/],
      [`path=/queuefs/${"x/".repeat(40)}size`, 400, /32/],
      ["path=", 400, /path parameter is required/],
      ["", 400, /path parameter is required/],
    ];
    for (const [query, status, words] of told) {
      for (const asking of [{}, { method: "PUT", body: "x" }]) {
        const answer = await face.ask(`/files?${query}`, asking);
        expect({ query, status: answer.status }).toEqual({ query, status });
        expect(errorOf(answer)).toMatch(words);
      }
    }
    expect(await face.backend.listQueues()).toEqual({ items: [] });
  });

  test("of tasks are files of the hidden directory", async () => {
    await face.backend.createQueue(parseQueueName("q"));
    const { task } = await face.backend.createTask({ type: "import" });
    expect(names(await face.at("/directories", "/queuefs/.tasks"))).toEqual([task.id]);
    expect((await face.read(`/queuefs/.tasks/${task.id}`)).json).toMatchObject({ id: task.id, type: "import", status: "completed" });
    expect((await face.read(`/queuefs/.tasks/${task.id}/wait`)).json.status).toBe("completed");
    expect((await face.at("/stat", `/queuefs/.tasks/${task.id}`)).json.meta.Type).toBe("task");
  });
});

describe("the mount point", () => {
  let backend: Backend;
  let app: App;
  const face = askingOf(() => app);
  afterEach(async () => {
    await app.close();
    await backend.close();
  });

  test("may have several components, of which a listing shows the next", async () => {
    backend = await openMemory();
    app = createApp(backend, { mount: "/data/queues/" });
    await face.mkdir("/data/queues/q");
    expect(names(await face.at("/directories", "/"))).toEqual(["data"]);
    expect(names(await face.at("/directories", "/data"))).toEqual(["queues"]);
    expect(names(await face.at("/directories", "/data/queues"))).toEqual(["README", "q"]);
    expect((await face.at("/stat", "/data")).json).toMatchObject({ name: "data", isDir: true });
    expect((await face.at("/files", "/data", { method: "DELETE", query: { recursive: "true" } })).status).toBe(403);
    expect(errorOf(await face.at("/stat", "/data/other"))).toContain("not found");
    expect(errorOf(await face.mkdir("/queuefs/q"))).toContain("/data/queues");
    expect((await face.ask("/mounts")).json.mounts[0].path).toBe("/data/queues");
  });

  test("may be the root", async () => {
    backend = await openMemory();
    app = createApp(backend, { mount: "/" });
    await face.mkdir("/q");
    await face.write("/q/enqueue", "x");
    expect(names(await face.at("/directories", "/"))).toEqual(["README", "q"]);
    expect((await face.at("/stat", "/")).json.name).toBe("/");
    expect((await face.read("/q/dequeue")).json.data).toBe("x");
    expect((await face.at("/files", "/", { method: "DELETE", query: { recursive: "true" } })).status).toBe(403);
  });

  test("must be a path whose components could be queues", async () => {
    backend = await openMemory();
    app = createApp(backend);
    for (const mount of ["queue", "", "/size", "/a/.b", `/${"x".repeat(300)}`])
      expect(() => createApp(backend, { mount }), mount).toThrow(QueueFSError);
  });
});
