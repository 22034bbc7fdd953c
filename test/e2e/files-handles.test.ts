/** One open of a file: what it claims, stores, gives back and drops. */

import { beforeEach, expect, test } from "vitest";
import { type FileHandle, QueueFS } from "../../src/fs/index.ts";
import { overEveryStore, QUEUE, readInParts, refusal, utf8 } from "../support/file-face.ts";
import { interpose } from "../support/interpose.ts";

overEveryStore("one open of dequeue", (face) => {
  beforeEach(async () => {
    await face.put("/q/enqueue", "one");
    await face.put("/q/enqueue", "two");
  });
  const dequeue = (): Promise<FileHandle> => face.fs.open("/q/dequeue", { mode: "read" });

  test("claims nothing until it is read, and nothing when it is closed unread", async () => {
    const handle = await dequeue();
    expect(await handle.read({ length: 0 })).toHaveLength(0);
    expect(await handle.read({ length: 0, offset: 7 })).toHaveLength(0);
    expect(await face.text("/q/status")).toBe('{"pending":2,"processing":0}');
    await handle.close();
    expect(await face.text("/q/status")).toBe('{"pending":2,"processing":0}');
  });

  test("claims one message at most, whose bytes stay the same at every offset", async () => {
    const handle = await dequeue();
    const first = (await readInParts(handle, 3)).toString("utf8");
    const again = Buffer.from(await handle.read({ length: 1_000_000, offset: 0 })).toString("utf8");
    expect(again).toBe(first);
    expect(Buffer.from(await handle.read({ length: 4, offset: 2 })).toString("utf8")).toBe(first.slice(2, 6));
    expect(await handle.read({ length: 10, offset: first.length })).toHaveLength(0);
    await face.put("/q/ack", (JSON.parse(first) as { receipt: string }).receipt);
    expect(Buffer.from(await handle.read({ length: 1_000_000, offset: 0 })).toString("utf8")).toBe(first);
    await handle.close();
    expect(await face.text("/q/status")).toBe('{"pending":1,"processing":0}');
  });

  test("claims one message although many read it at once", async () => {
    const handle = await dequeue();
    const parts = await Promise.all(Array.from({ length: 8 }, (_, index) => handle.read({ length: 4, offset: 4 * index })));
    expect(await face.text("/q/status")).toBe('{"pending":1,"processing":1}');
    expect(Buffer.concat(parts).toString("utf8")).toMatch(/^\{"id":"/);
    await handle.close();
    expect(await face.text("/q/status")).toBe('{"pending":1,"processing":1}');
  });

  test("gives the claim back when only bytes beyond its end were asked for", async () => {
    const handle = await dequeue();
    expect(await handle.read({ length: 10, offset: 1_000_000 })).toHaveLength(0);
    expect(await face.text("/q/status")).toBe('{"pending":1,"processing":1}');
    await handle.close();
    expect(await face.text("/q/status")).toBe('{"pending":2,"processing":0}');
    expect(await face.take()).toMatchObject({ data: "one", deliveries: 1 });
  });

  test("gives the claim back when it is discarded, and it does not count as a delivery", async () => {
    const handle = await dequeue();
    await handle.read({ length: 1_000_000 });
    await handle.discard();
    await handle.discard();
    expect(await face.text("/q/status")).toBe('{"pending":2,"processing":0}');
    expect(await face.take()).toMatchObject({ data: "one", deliveries: 1 });
  });

  test("keeps the claim when it was read in part", async () => {
    const handle = await dequeue();
    await handle.read({ length: 1 });
    await handle.close();
    await handle.discard();
    expect(await face.text("/q/status")).toBe('{"pending":1,"processing":1}');
  });

  test("of an empty queue stays {} although a message comes", async () => {
    await face.put("/q/clear", "");
    const handle = await dequeue();
    expect(Buffer.from(await handle.read({ length: 1 })).toString()).toBe("{");
    await face.put("/q/enqueue", "late");
    expect(Buffer.from(await handle.read({ length: 10 })).toString()).toBe("}");
    expect(await handle.read({ length: 10 })).toHaveLength(0);
    await handle.close();
    expect(await face.text("/q/status")).toBe('{"pending":1,"processing":0}');
  });

  test("gives the claim back when the file face is closed over it", async () => {
    const handle = await dequeue();
    await handle.read({ length: 3 });
    await face.fs.close();
    await refusal("closed", handle.read({ length: 3 }));
    expect(await face.backend.status(QUEUE)).toEqual({ pending: 2, processing: 0 });
  });

  test("a whole read whose reader goes away while it claims gives the message back", async () => {
    const controller = new AbortController();
    const reason = new Error("the reader went away");
    const interrupted = new QueueFS(
      interpose(face.backend, {
        dequeue(...call) {
          const claim = face.backend.dequeue(...call);
          controller.abort(reason);
          return claim;
        },
      }),
    );
    await expect(interrupted.read("/q/dequeue", { signal: controller.signal })).rejects.toBe(reason);
    await interrupted.close();
    expect(await face.backend.status(QUEUE)).toEqual({ pending: 2, processing: 0 });
    const [first] = await face.backend.dequeue(QUEUE);
    expect(first?.deliveryCount).toBe(1);
  });

  test("a read that is aborted leaves the handle usable, with the message it claimed", async () => {
    const handle = await dequeue();
    const controller = new AbortController();
    const reading = handle.read({ length: 1000, signal: controller.signal });
    controller.abort(new Error("interrupted"));
    await expect(reading).rejects.toThrow("interrupted");
    const content = await readInParts(handle, 1000);
    expect(JSON.parse(content.toString("utf8"))).toMatchObject({ data: "one" });
    await handle.close();
    expect(await face.text("/q/status")).toBe('{"pending":1,"processing":1}');
  });

  test("a request id makes a repeat safe", async () => {
    const options = { requestId: "again" };
    const first = await face.fs.read("/q/dequeue", options);
    expect(await face.fs.read("/q/dequeue", options)).toEqual(first);
    expect(await face.text("/q/status")).toBe('{"pending":1,"processing":1}');
  });
});

overEveryStore("one open of enqueue", (face) => {
  const enqueue = (): Promise<FileHandle> => face.fs.open("/q/enqueue", { mode: "write" });

  test("stores one message of all writes at the close, and not before", async () => {
    const handle = await enqueue();
    await handle.write(utf8("one "));
    await handle.write(utf8("message"), 4);
    expect(await face.text("/q/size")).toBe("0");
    const answer = await handle.close();
    expect(answer).toEqual({ bytesWritten: 11, id: expect.any(String) });
    expect(await handle.close()).toEqual(answer);
    expect(await face.json("/q/messages")).toMatchObject([{ id: answer.id, data: "one message" }]);
  });

  test("puts bytes where they belong, with zeros between, and may be shortened", async () => {
    const handle = await enqueue();
    await handle.write(utf8("d"), 3);
    await handle.write(utf8("a"), 0);
    await handle.write(utf8("tail"));
    await handle.truncate(5);
    await handle.truncate(6);
    await handle.close();
    expect(await face.json("/q/messages")).toMatchObject([{ data: "a\0\0dt\0" }]);
  });

  test("stores nothing when nothing was written, or when it is discarded", async () => {
    const unwritten = await enqueue();
    await unwritten.truncate(0);
    await unwritten.close();
    const discarded = await enqueue();
    await discarded.write(utf8("torn"));
    await discarded.discard();
    await refusal("closed", discarded.write(utf8("late")));
    expect(await face.text("/q/size")).toBe("0");
  });

  test("keeps the bytes it was given although the writer reuses its array", async () => {
    const bytes = utf8("first");
    const handle = await enqueue();
    await handle.write(bytes);
    bytes.fill(0x78);
    await handle.close();
    expect(await face.json("/q/messages")).toMatchObject([{ data: "first" }]);
  });

  test("of a queue that is removed meanwhile fails at the close", async () => {
    const handle = await enqueue();
    await handle.write(utf8("lost"));
    await face.fs.rm("/q");
    await refusal("queue-not-found", handle.close());
    await handle.discard();
  });

  test("an id of the caller's makes a repeat safe, and other bytes a conflict", async () => {
    const answer = await face.fs.write("/q/enqueue", utf8("one"), { id: "key" });
    expect(answer).toEqual({ bytesWritten: 3, id: "key" });
    expect(await face.fs.write("/q/enqueue", utf8("one"), { id: "key" })).toEqual(answer);
    await refusal("id-conflict", face.fs.write("/q/enqueue", utf8("two"), { id: "key" }));
    await refusal("invalid-name", face.fs.write("/q/enqueue", utf8("two"), { id: "m-1" }));
    expect(await face.text("/q/size")).toBe("1");
  });
});
