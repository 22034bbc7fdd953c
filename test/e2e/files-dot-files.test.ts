/** What the dot files give and do. */

import { expect, test } from "vitest";
import { overEveryStore, refusal } from "../support/file-face.ts";

overEveryStore("dot files", (face) => {
  test(".nack gives a message back to its place, later, or up", async () => {
    await face.put("/q/enqueue", "one");
    await face.put("/q/enqueue", "two");
    await face.put("/q/.nack", ` ${(await face.take()).receipt}\n`);
    const again = await face.take();
    expect(again).toMatchObject({ data: "one", deliveries: 2 });
    await face.put("/q/.nack", JSON.stringify({ receipt: again.receipt, delayMs: 3_600_000, reason: "busy" }));
    expect(await face.json("/q/peek")).toMatchObject({ data: "two" });
    const two = await face.take();
    await face.put("/q/.nack", JSON.stringify({ receipt: two.receipt, giveUp: true, reason: "bad \0 words" }));
    expect(await face.json("/q/.dead")).toMatchObject([
      { id: two.id, data: "two", reason: "bad \u2400 words", diedAt: expect.stringMatching(/Z$/) },
    ]);
    expect(await face.text("/q/status")).toBe('{"pending":1,"processing":0}');
    await refusal("not-in-processing", face.put("/q/.nack", two.receipt));
    await refusal("invalid-argument", face.put("/q/.nack", JSON.stringify({ receipt: two.receipt, delay: 5 })));
    await refusal("invalid-argument", face.put("/q/.nack", JSON.stringify({ receipt: two.receipt, delayMs: -1 })));
    await refusal("invalid-argument", face.put("/q/.nack", "{"));
    await refusal("invalid-name", face.put("/q/.nack", "{}"));
  });

  test(".extend renews the lease of the current delivery only", async () => {
    await face.put("/q/enqueue", "one");
    const { receipt } = await face.take();
    await face.put("/q/.extend", `${receipt}\n`);
    await face.put("/q/.extend", JSON.stringify({ receipt, leaseMs: 20_000 }));
    await refusal("invalid-argument", face.put("/q/.extend", JSON.stringify({ receipt, leaseMs: 1 })));
    await face.put("/q/ack", receipt);
    await refusal("not-in-processing", face.put("/q/.extend", receipt));
  });

  test(".dead puts letters back to work or drops them, some or all", async () => {
    const ids: string[] = [];
    for (const content of ["a", "b", "c", "d"]) {
      await face.put("/q/enqueue", content);
      const { id, receipt } = await face.take();
      ids.push(id);
      await face.put("/q/.nack", JSON.stringify({ receipt, giveUp: true }));
    }
    const dead = async (): Promise<string[]> => ((await face.json("/q/.dead")) as { data: string }[]).map((letter) => letter.data);
    expect(await dead()).toEqual(["a", "b", "c", "d"]);
    await face.put("/q/.dead", JSON.stringify({ redrive: [ids[1]] }));
    expect(await dead()).toEqual(["a", "c", "d"]);
    expect(await face.take()).toMatchObject({ data: "b", deliveries: 1 });
    const partly = await refusal("message-not-found", face.put("/q/.dead", JSON.stringify({ drop: [ids[0], ids[1]] })));
    expect(partly.message).toContain("1 of 2");
    expect(await dead()).toEqual(["c", "d"]);
    for (const wrong of ["{}", "[]", '{"redrive":"some"}', '{"redrive":[],"drop":[]}', '{"redrive":[],"other":1}', "all"]) {
      await refusal("invalid-argument", face.put("/q/.dead", wrong));
    }
    await face.put("/q/.dead", '{"redrive":"all"}');
    expect(await face.text("/q/status")).toBe('{"pending":2,"processing":1}');
    await face.put("/q/.nack", JSON.stringify({ receipt: (await face.take()).receipt, giveUp: true }));
    await face.put("/q/.dead", '{"drop":"all"}');
    expect(await face.text("/q/.dead")).toBe("[]");
  });

  test(".stats tells counts and settings, and not-yet-used from finished", async () => {
    expect(await face.json("/q/.stats")).toMatchObject({ pending: 0, processing: 0, enqueued: 0, settings: { maxDeliveries: 20 } });
    await face.put("/q/enqueue", "one");
    await face.put("/q/ack", (await face.take()).receipt);
    expect(await face.json("/q/.stats")).toMatchObject({
      pending: 0,
      enqueued: 1,
      delivered: 1,
      acked: 1,
      createdAt: expect.stringMatching(/Z$/),
    });
  });

  test(".wait answers when the queue is complete and not before", async () => {
    await face.put("/q/enqueue", "one");
    let answered = false;
    const waiting = face.text("/q/.wait").then((answer) => {
      answered = true;
      return answer;
    });
    const { receipt } = await face.take();
    expect(await face.text("/q/size")).toBe("0");
    expect(answered).toBe(false);
    await face.put("/q/ack", receipt);
    expect(await waiting).toBe('{"pending":0,"processing":0}');
  });

  test(".wait ends when its reader goes, its queue is removed, or the face is closed", async () => {
    await face.put("/q/enqueue", "one");
    const controller = new AbortController();
    const gone = face.fs.read("/q/.wait", { signal: controller.signal });
    controller.abort(new Error("gone"));
    await expect(gone).rejects.toThrow("gone");
    const removed = refusal("queue-not-found", face.fs.read("/q/.wait"));
    await face.fs.rm("/q");
    await removed;
    await face.fs.mkdir("/q");
    await face.put("/q/enqueue", "one");
    const handle = await face.fs.open("/q/.wait", { mode: "read" });
    const open = refusal("closed", handle.read({ length: 10 }));
    const closed = refusal("closed", face.fs.read("/q/.wait"));
    // By the time this is answered, both reads have begun to wait.
    await face.fs.stat("/q");
    await face.fs.close();
    await Promise.all([open, closed]);
  });
});
