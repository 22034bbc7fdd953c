/** Errors of the file face keep their meaning. */

import { expect, test } from "vitest";
import { CONTROL_FILES } from "../../src/core/control-files.ts";
import { overEveryStore, QUEUE, refusal, utf8 } from "../support/file-face.ts";

overEveryStore("errors of files", (face) => {
  test("a missing queue is not found on every control file, whatever is done", async () => {
    for (const [file, row] of Object.entries(CONTROL_FILES)) {
      const path = `/missing/${file}`;
      if ("read" in row) {
        await refusal("queue-not-found", face.fs.read(path));
        await refusal("queue-not-found", face.fs.open(path, { mode: "read" }));
      }
      if ("write" in row) {
        const content = file === ".dead" ? '{"drop":["x"]}' : file === ".extend" || file === ".nack" ? "r-1-1-1" : "x";
        await refusal("queue-not-found", face.put(path, content));
        await refusal("queue-not-found", face.fs.open(path, { mode: "write" }));
        await refusal("queue-not-found", face.fs.truncate(path, 0));
      }
      await refusal("queue-not-found", face.fs.touch(path));
    }
    await refusal("queue-not-found", face.fs.readdir("/missing"));
    await refusal("queue-not-found", face.fs.readdir("/missing/size"));
    await refusal("queue-not-found", face.fs.watch("/missing").next());
  });

  test("the wrong way is refused as a permission, before anything happens", async () => {
    await face.put("/q/enqueue", "stays");
    for (const [file, row] of Object.entries(CONTROL_FILES)) {
      const path = `/q/${file}`;
      if (!("read" in row)) {
        expect((await refusal("wrong-mode", face.fs.read(path))).message).toContain("permission denied");
        await refusal("wrong-mode", face.fs.open(path, { mode: "read" }));
        await refusal("wrong-mode", face.fs.open(path, { mode: "read-write" }));
      }
      if (!("write" in row)) {
        expect((await refusal("wrong-mode", face.put(path, "x"))).message).toContain("permission denied");
        await refusal("wrong-mode", face.fs.open(path, { mode: "write" }));
        await refusal("wrong-mode", face.fs.truncate(path, 0));
      }
    }
    const reading = await face.fs.open("/q/size", { mode: "read" });
    await refusal("wrong-mode", reading.write(utf8("x")));
    const writing = await face.fs.open("/q/enqueue", { mode: "write" });
    await refusal("wrong-mode", writing.read({ length: 1 }));
    await Promise.all([reading.close(), writing.close()]);
    expect(await face.text("/q/status")).toBe('{"pending":1,"processing":0}');
  });

  test("a directory where a file is needed, and the other way round", async () => {
    await face.fs.mkdir("/plain/x");
    for (const path of ["/", "/q", "/q/", "/plain"]) {
      expect((await refusal("is-a-directory", face.fs.read(path))).message).toContain("is a directory");
      await refusal("is-a-directory", face.put(path, "x"));
      await refusal("is-a-directory", face.fs.open(path, { mode: "read" }));
      await refusal("is-a-directory", face.fs.truncate(path, 0));
    }
    await refusal("not-a-directory", face.fs.readdir("/q/size"));
    for (const path of ["/q/size/", "/q/size/.", "/q/size/x", "/q/size/x/status", "/q/.wait/x"])
      await refusal("not-a-directory", face.fs.read(path));
    for (const path of ["/q/unknown", "/q/unknown/x", "/q/.hidden", "/q/.tasks", "/.other", "/size", "/size/x"])
      await refusal("path-not-found", face.fs.read(path));
  });

  test("moving is refused, and never as something to be copied instead", async () => {
    expect((await refusal("unsupported", face.fs.rename("/q", "/r"))).errno).toBe("ENOTSUP");
    await refusal("unsupported", face.fs.rename("/q/size", "/q/other"));
    await refusal("queue-not-found", face.fs.rename("/missing", "/r"));
  });

  test("options of another file, unknown ones and wrong types are refused by name", async () => {
    await face.put("/q/enqueue", "stays");
    await refusal("invalid-argument", face.fs.read("/q/peek", { requestId: "x" }));
    await refusal("invalid-argument", face.fs.write("/q/clear", utf8(""), { id: "x" }));
    await refusal("invalid-argument", face.fs.open("/q/peek", {} as never));
    await refusal("invalid-argument", face.fs.open("/q/peek", { mode: "append" } as never));
    await refusal("invalid-argument", face.fs.write("/q/enqueue", "text" as never));
    const handle = await face.fs.open("/q/peek", { mode: "read" });
    for (const length of [-1, 1.5, Number.NaN, "1"]) await refusal("invalid-argument", handle.read({ length: length as number }));
    await refusal("invalid-argument", handle.read({ length: 1, offset: -1 }));
    await handle.close();
    expect(await face.text("/q/size")).toBe("1");
  });

  test("after the close of the face everything is refused as closed, and closing twice is harmless", async () => {
    await face.fs.close();
    await face.fs.close();
    await refusal("closed", face.fs.read("/q/size"));
    await refusal("closed", face.fs.mkdir("/r"));
    await refusal("closed", face.fs.stat("/"));
    expect(() => face.fs.watch("/q")).toThrow("closed");
    expect(await face.backend.status(QUEUE)).toEqual({ pending: 0, processing: 0 });
  });
});
