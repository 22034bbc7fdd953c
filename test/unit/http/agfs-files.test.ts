/** The queue as files over HTTP: what reads give, what writes do, and what takes no message. */

import { expect, test } from "vitest";
import { errorOf, overAgfs } from "../../support/agfs-face.ts";

overAgfs("a queue as files", (face) => {
  test("a message goes in as it is and comes out in the form of both upstreams", async () => {
    expect((await face.mkdir("/queuefs/q")).status).toBe(201);
    const written = await face.write("/queuefs/q/enqueue", "hello <b> & \u2028\n");
    expect(written).toMatchObject({ status: 200, type: "application/json" });
    expect(written.json.message).toBe("Written 16 bytes");
    const read = await face.read("/queuefs/q/dequeue");
    expect(read).toMatchObject({ status: 200, type: "application/octet-stream" });
    const message = read.json;
    expect(message.data).toBe("hello <b> & \u2028\n");
    expect(message.id).toBe(written.json.id);
    expect(Number.isNaN(Date.parse(message.timestamp))).toBe(false);
    expect(await face.status("/queuefs/q")).toEqual({ pending: 0, processing: 1 });
    expect((await face.write("/queuefs/q/ack", ` ${message.id}\n`)).json).toEqual({
      message: `Written ${message.id.length + 2} bytes`,
      acked: true,
    });
    expect(await face.status("/queuefs/q")).toEqual({ pending: 0, processing: 0 });
  });

  test("an empty queue, an empty message and the message {} are three answers", async () => {
    await face.mkdir("/queuefs/q");
    for (const file of ["dequeue", "peek"]) expect((await face.read(`/queuefs/q/${file}`)).text).toBe("{}");
    expect((await face.read("/queuefs/q/messages")).text).toBe("[]");
    expect((await face.write("/queuefs/q/enqueue", "")).json.message).toBe("Written 0 bytes");
    await face.write("/queuefs/q/enqueue", "{}");
    expect((await face.read("/queuefs/q/dequeue")).json).toMatchObject({ data: "", id: expect.any(String) });
    expect((await face.read("/queuefs/q/dequeue")).json).toMatchObject({ data: "{}", id: expect.any(String) });
    expect((await face.read("/queuefs/q/dequeue")).text).toBe("{}");
  });

  test("bytes in are bytes out, UTF-8 or not, in chunks or not, whatever type they say they have", async () => {
    await face.mkdir("/queuefs/q");
    const bytes = Uint8Array.of(0, 13, 10, 255, 254, 128);
    await face.at("/files", "/queuefs/q/enqueue", { method: "PUT", body: bytes, headers: { "content-type": "application/json" } });
    expect((await face.read("/queuefs/q/dequeue")).json).toMatchObject({ encoding: "base64", data: Buffer.from(bytes).toString("base64") });
    const chunks = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const text of ["one ", "", "two"]) controller.enqueue(new TextEncoder().encode(text));
        controller.close();
      },
    });
    await face.at("/files", "/queuefs/q/enqueue", { method: "PUT", body: chunks });
    expect((await face.read("/queuefs/q/dequeue")).json.data).toBe("one two");
    const large = "x\n".repeat(2 * 1024 * 1024);
    await face.write("/queuefs/q/enqueue", large);
    expect((await face.read("/queuefs/q/messages")).json.at(-1).data).toBe(large);
    expect((await face.read("/queuefs/q/dequeue", { stream: "true" })).json.data).toBe(large);
  });

  test("size has no line end and counts what waits; messages has all; peek and they take nothing", async () => {
    await face.mkdir("/queuefs/q");
    for (const text of ["1", "2", "3"]) await face.write("/queuefs/q/enqueue", text);
    await face.read("/queuefs/q/dequeue");
    expect((await face.read("/queuefs/q/size")).text).toBe("2");
    expect((await face.read("/queuefs/q/status")).text).toBe('{"pending":2,"processing":1}');
    expect((await face.read("/queuefs/q/peek")).json.data).toBe("2");
    expect((await face.read("/queuefs/q/messages")).json.map(({ data }: { data: string }) => data)).toEqual(["1", "2", "3"]);
    expect((await face.read("/queuefs/q/size")).text).toBe("2");
    expect((await face.write("/queuefs/q/clear", "")).json.message).toBe("Written 0 bytes");
    expect(await face.status("/queuefs/q")).toEqual({ pending: 0, processing: 0 });
  });

  test("an ack of what is not in processing is no error, changes nothing, and says so", async () => {
    await face.mkdir("/queuefs/q");
    const { id } = (await face.write("/queuefs/q/enqueue", "x")).json;
    for (const text of [id, "01900000-0000-7000-8000-000000000000"]) {
      const answer = await face.write("/queuefs/q/ack", text);
      expect(answer).toMatchObject({ status: 200, json: { message: `Written ${text.length} bytes`, acked: false } });
    }
    expect(await face.status("/queuefs/q")).toEqual({ pending: 1, processing: 0 });
    const { receipt } = (await face.read("/queuefs/q/dequeue")).json;
    expect((await face.write("/queuefs/q/ack", receipt)).json.acked).toBe(true);
    expect((await face.write("/queuefs/q/ack", receipt)).json.acked).toBe(false);
    expect((await face.write("/queuefs/q/ack", "")).status).toBe(400);
    // The dot files are for those who know them, and tell a failure.
    expect(errorOf(await face.write("/queuefs/q/.nack", receipt))).toContain("not found");
  });

  test("a missing queue is not found, whatever is asked of it", async () => {
    for (const file of ["dequeue", "peek", "size", "status", "messages"]) {
      const answer = await face.read(`/queuefs/none/${file}`);
      expect(answer.status).toBe(404);
      expect(errorOf(answer)).toContain("not found");
    }
    for (const file of ["enqueue", "ack", "clear"]) {
      const answer = await face.write(`/queuefs/none/${file}`, "x");
      expect(answer.status).toBe(404);
      expect(errorOf(answer)).toContain("not found");
    }
    expect((await face.at("/stat", "/queuefs/none/enqueue")).status).toBe(404);
    expect((await face.read("/queuefs/none/dequeue", { offset: "9" })).status).toBe(404);
    expect((await face.at("/files", "/queuefs/none", { method: "DELETE", query: { recursive: "true" } })).status).toBe(404);
  });

  test("reading what is for writing, and writing what is for reading, is denied in these words", async () => {
    await face.mkdir("/queuefs/q");
    for (const file of ["enqueue", "ack", "clear"]) {
      for (const query of [{}, { stream: "true" }, { offset: "3", size: "4" }]) {
        const answer = await face.read(`/queuefs/q/${file}`, query as Record<string, string>);
        expect(answer.status).toBe(403);
        expect(errorOf(answer)).toContain("permission denied");
      }
    }
    for (const path of ["/queuefs/q/dequeue", "/queuefs/q/size", "/queuefs/README"]) {
      const answer = await face.write(path, "x");
      expect(answer.status).toBe(403);
      expect(errorOf(answer)).toContain("permission denied");
    }
    for (const path of ["/queuefs/q", "/queuefs", "/"]) {
      expect(errorOf(await face.read(path))).toContain("is a directory");
      expect(errorOf(await face.write(path, "x"))).toContain("is a directory");
    }
  });
});

overAgfs("a read of a part", (face) => {
  test("of dequeue takes nothing behind the first byte, or of no bytes, and gives all otherwise", async () => {
    await face.mkdir("/queuefs/q");
    await face.write("/queuefs/q/enqueue", "a message that is longer than the size");
    for (const query of [{ offset: "1" }, { size: "0" }, { offset: "4096", size: "4096" }]) {
      expect(await face.read("/queuefs/q/dequeue", query as Record<string, string>)).toMatchObject({ status: 200, text: "" });
    }
    expect(await face.status("/queuefs/q")).toEqual({ pending: 1, processing: 0 });
    expect((await face.read("/queuefs/q/dequeue", { offset: "0", size: "5" })).json.data).toBe("a message that is longer than the size");
    expect(await face.status("/queuefs/q")).toEqual({ pending: 0, processing: 1 });
  });

  test("of any other file is that part", async () => {
    await face.mkdir("/queuefs/q");
    await face.write("/queuefs/q/enqueue", "x".repeat(3_000_000));
    const whole = await face.read("/queuefs/q/messages");
    for (const [offset, size] of [
      [0, 7],
      [5, 2_000_000],
      [1_048_576, 1_048_576],
      [whole.bytes.length - 3, 10],
      [whole.bytes.length + 5, 10],
    ] as const) {
      const part = await face.read("/queuefs/q/messages", { offset: String(offset), size: String(size) });
      expect(Buffer.from(part.bytes).equals(Buffer.from(whole.bytes.slice(offset, offset + size)))).toBe(true);
    }
    expect((await face.read("/queuefs/q/status", { offset: "1" })).text).toBe('"pending":1,"processing":0}');
    expect((await face.read("/queuefs/q/status", { size: "-1" })).text).toBe('{"pending":1,"processing":0}');
    const readme = await face.read("/queuefs/README");
    expect((await face.read("/queuefs/README", { offset: "2", size: "7" })).text).toBe(readme.text.slice(2, 9));
  });

  test("is refused when it is none", async () => {
    await face.mkdir("/queuefs/q");
    await face.write("/queuefs/q/enqueue", "x");
    for (const query of [{ offset: "x" }, { size: "1.5" }, { offset: "-1" }, { size: "99999999999999999999" }]) {
      const answer = await face.read("/queuefs/q/dequeue", query as Record<string, string>);
      expect(answer.status).toBe(400);
      expect(errorOf(answer)).toMatch(/invalid (offset|size) parameter/);
    }
    expect(await face.status("/queuefs/q")).toEqual({ pending: 1, processing: 0 });
  });
});

overAgfs("a read of dequeue whose client has gone", (face) => {
  test("before the answer was there: the message is back", async () => {
    await face.mkdir("/queuefs/q");
    await face.write("/queuefs/q/enqueue", "x");
    const gone = new AbortController();
    const answer = face.at("/files", "/queuefs/q/dequeue", { signal: gone.signal });
    gone.abort();
    await answer.catch(() => {});
    await expect.poll(() => face.status("/queuefs/q")).toEqual({ pending: 1, processing: 0 });
  });

  test("before the answer was sent: the message is back, and the delivery does not count", async () => {
    await face.mkdir("/queuefs/q");
    await face.write("/queuefs/q/enqueue", "x");
    const lost: (() => void)[] = [];
    const exchange = {
      signal: new AbortController().signal,
      isGone: false,
      onLost: (listener: () => void) => lost.push(listener),
      readBody: async () => new Uint8Array(0),
    };
    const answer = await face.app.fetch(new Request("http://127.0.0.1/api/v1/files?path=/queuefs/q/dequeue"), exchange);
    expect(JSON.parse(await answer.text())).toMatchObject({ data: "x", deliveries: 1 });
    expect(await face.status("/queuefs/q")).toEqual({ pending: 0, processing: 1 });
    for (const listener of lost) listener();
    await expect.poll(() => face.status("/queuefs/q")).toEqual({ pending: 1, processing: 0 });
    expect((await face.read("/queuefs/q/dequeue")).json.deliveries).toBe(1);
  });
});

overAgfs("a read that waits", (face) => {
  test("ends when the queue is complete", async () => {
    await face.mkdir("/queuefs/q");
    await face.write("/queuefs/q/enqueue", "x");
    const waiting = face.read("/queuefs/q/.wait");
    const { id } = (await face.read("/queuefs/q/dequeue")).json;
    await face.write("/queuefs/q/ack", id);
    expect((await waiting).text).toBe('{"pending":0,"processing":0}');
  });

  test("ends when the server stops, as a failure that is none of the client", async () => {
    await face.mkdir("/queuefs/q");
    await face.write("/queuefs/q/enqueue", "x");
    const waiting = face.read("/queuefs/q/.wait");
    face.app.drain();
    // 503 when it was waiting already, 504 when it was about to; reads are repeated by no client.
    expect([503, 504]).toContain((await waiting).status);
    expect((await face.read("/queuefs/q/.wait")).status).toBe(504);
    expect((await face.read("/queuefs/q/size")).text).toBe("1");
  });
});
