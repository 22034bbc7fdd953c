/** What the eight control files give and do. */

import { expect, test } from "vitest";
import { overEveryStore, QUEUE, readInParts, refusal, utf8 } from "../support/file-face.ts";

overEveryStore("control files", (face) => {
  test("the answers have exactly their shape", async () => {
    const before = Date.now();
    await face.put("/q/enqueue", "one");
    await face.put("/q/enqueue", "two");
    expect(await face.text("/q/size")).toBe("2");
    expect(await face.text("/q/status")).toBe('{"pending":2,"processing":0}');
    const taken = (await face.json("/q/dequeue")) as { id: string; data: string; receipt: string; timestamp: string; deliveries: number };
    expect(Object.keys(taken)).toEqual(["id", "data", "receipt", "timestamp", "deliveries"]);
    expect(taken).toMatchObject({ data: "one", deliveries: 1 });
    expect(taken.timestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(Math.abs(Date.parse(taken.timestamp) - before)).toBeLessThan(60_000);
    expect(await face.text("/q/size")).toBe("1");
    expect(await face.text("/q/status")).toBe('{"pending":1,"processing":1}');
    const peeked = (await face.json("/q/peek")) as object;
    expect(Object.keys(peeked)).toEqual(["id", "data", "timestamp", "deliveries"]);
    expect(peeked).toMatchObject({ data: "two", deliveries: 0 });
    expect(await face.json("/q/messages")).toMatchObject([
      { data: "one", state: "processing" },
      { data: "two", state: "pending" },
    ]);
    await face.put("/q/ack", taken.receipt);
    expect(await face.text("/q/status")).toBe('{"pending":1,"processing":0}');
  });

  test("reading what only looks changes nothing", async () => {
    await face.put("/q/enqueue", "one");
    await face.put("/q/enqueue", "two");
    await face.take();
    const before = [await face.text("/q/messages"), await face.text("/q/status")];
    for (const file of ["peek", "size", "status", "messages", ".dead"]) await face.fs.read(`/q/${file}`);
    for (const path of ["/", "/q", "/q/dequeue", "/q/enqueue", "/q/clear"]) {
      await face.fs.stat(path);
      await face.fs.touch(path);
    }
    await face.fs.readdir("/q", { all: true });
    await face.fs.truncate("/q/enqueue", 0);
    await face.fs.truncate("/q/clear", 5);
    expect([await face.text("/q/messages"), await face.text("/q/status")]).toEqual(before);
  });

  test("clear removes all, whatever was written, and later acks are stale", async () => {
    for (const content of ["", "no", "x".repeat(100_000)]) {
      await face.put("/q/enqueue", "one");
      await face.put("/q/enqueue", "two");
      const { receipt } = await face.take();
      await face.put("/q/clear", content);
      expect(await face.text("/q/status")).toBe('{"pending":0,"processing":0}');
      await refusal("not-in-processing", face.put("/q/ack", receipt));
    }
  });

  test("messages lists more than one page, in order", async () => {
    const count = 1_234;
    await face.backend.enqueue(
      QUEUE,
      Array.from({ length: count }, (_, index) => ({ data: utf8(`message ${index}`) })),
    );
    const listed = (await face.json("/q/messages")) as { data: string }[];
    expect(listed.map((one) => one.data)).toEqual(Array.from({ length: count }, (_, index) => `message ${index}`));
    const handle = await face.fs.open("/q/messages", { mode: "read" });
    expect((await readInParts(handle, 1000)).toString("utf8")).toBe(await face.text("/q/messages"));
    await handle.close();
  });
});

overEveryStore("ack", (face) => {
  test("a receipt or an id, white space around it ignored", async () => {
    for (const surround of [(name: string) => name, (name: string) => `${name}\n`, (name: string) => ` \t\r\n${name}\r\n `]) {
      await face.put("/q/enqueue", "one");
      await face.put("/q/ack", surround((await face.take()).receipt));
      await face.put("/q/enqueue", "two");
      await face.put("/q/ack", surround((await face.take()).id));
      expect(await face.text("/q/status")).toBe('{"pending":0,"processing":0}');
    }
  });

  test("everything else is refused with a clear error and changes nothing", async () => {
    await face.fs.mkdir("/other");
    await face.put("/q/enqueue", "in work");
    await face.put("/q/enqueue", "waiting");
    await face.put("/other/enqueue", "elsewhere");
    const taken = await face.take();
    const elsewhere = await face.take("/other");
    const [, waiting] = (await face.json("/q/messages")) as [unknown, { id: string }];
    const before = await face.text("/q/messages");
    const words = await refusal("not-in-processing", face.put("/q/ack", waiting.id));
    expect(words.message).toContain("not found in processing");
    expect([words.errno, words.httpStatus]).toEqual(["ENOENT", 409]);
    await refusal("not-in-processing", face.put("/q/ack", "unknown"));
    await refusal("not-in-processing", face.put("/q/ack", "r-1-1-1"));
    await refusal("not-in-processing", face.put("/q/ack", elsewhere.id));
    await refusal("not-in-processing", face.put("/q/ack", elsewhere.receipt));
    await refusal("invalid-argument", face.put("/q/ack", ""));
    await refusal("invalid-argument", face.put("/q/ack", " \n\t"));
    await refusal("invalid-argument", face.put("/q/ack", "x".repeat(1024 * 1024)));
    await refusal("invalid-argument", face.fs.write("/q/ack", Uint8Array.of(0xff, 0xfe)));
    await refusal("invalid-name", face.put("/q/ack", `${taken.id} ${taken.id}`));
    await refusal("invalid-name", face.put("/q/ack", `${taken.id}\0`));
    await refusal("invalid-name", face.put("/q/ack", "x".repeat(300)));
    expect(await face.text("/q/messages")).toBe(before);
    await face.put("/q/ack", taken.id);
    await refusal("not-in-processing", face.put("/q/ack", taken.id));
    await refusal("not-in-processing", face.put("/q/ack", taken.receipt));
    expect(await face.text("/q/status")).toBe('{"pending":1,"processing":0}');
    expect(await face.text("/other/status")).toBe('{"pending":0,"processing":1}');
  });
});
