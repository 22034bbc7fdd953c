/** Looking without changing: peek and messages. */

import assert from "node:assert/strict";
import { isQueueFSError } from "../../core/errors.ts";
import { DEFAULT_PAGE_ITEMS } from "../../core/limits.ts";
import { section } from "./case.ts";
import { ack, bytes, content, counts, everyMessage, fingerprint, JOBS, make, put, refused, take, takeTexts, withId } from "./steps.ts";

/** The cases of the section "reading". */
export const readingCases = section("reading", [
  {
    name: "peek shows the head, with id, bytes, time and count, and takes nothing",
    async run({ backend }) {
      await make(backend, JOBS);
      const [made] = await put(backend, JOBS, "a", "b");
      const first = await backend.peek(JOBS);
      assert.ok(first);
      assert.deepEqual(Object.keys(first).toSorted(), ["data", "deliveryCount", "enqueuedAtMs", "id"]);
      assert.deepEqual([first.id, content(first), first.deliveryCount], [made, "a", 0]);
      assert.deepEqual(await backend.peek(JOBS), first);
      await counts(backend, JOBS, 2, 0);
      assert.equal((await take(backend, JOBS)).deliveryCount, 1);
      assert.equal(content((await backend.peek(JOBS)) ?? first), "b");
      await take(backend, JOBS);
      assert.equal(await backend.peek(JOBS), undefined);
    },
  },
  {
    name: "messages lists all unacked ones in queue order with their states, and changes nothing",
    async run({ backend }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "1", "2", "3", "4");
      const [first, second] = await backend.dequeue(JOBS, { limit: 2 });
      assert.ok(first && second);
      await backend.nack(JOBS, [{ receipt: first.receipt }]);
      await backend.enqueue(JOBS, [withId("delayed", "5", { delayMs: 50_000 })]);
      const before = await fingerprint(backend, JOBS);
      const { items, next } = await backend.messages(JOBS);
      assert.equal(next, undefined);
      assert.deepEqual(
        items.map((one) => [content(one), one.state, one.deliveryCount]),
        [
          ["1", "pending", 1],
          ["2", "processing", 1],
          ["3", "pending", 0],
          ["4", "pending", 0],
          ["5", "pending", 0],
        ],
      );
      assert.deepEqual(Object.keys(items[0] ?? {}).toSorted(), ["data", "deliveryCount", "enqueuedAtMs", "id", "state"]);
      assert.deepEqual(await fingerprint(backend, JOBS), before);
      assert.deepEqual(await takeTexts(backend, JOBS), ["1", "3", "4"]);
    },
  },
  {
    name: "a page holds at most as many as asked for, a hundred by default, and its next leads on to the end",
    async run({ backend }) {
      await make(backend, JOBS);
      const texts = Array.from({ length: 250 }, (_, index) => String(index));
      await put(backend, JOBS, ...texts);
      const held = await backend.dequeue(JOBS, { limit: 120 });
      await backend.nack(
        JOBS,
        held.filter((_, index) => index % 3 === 0).map((one) => ({ receipt: one.receipt })),
      );
      const page = await backend.messages(JOBS);
      assert.deepEqual(page.items.map(content), texts.slice(0, DEFAULT_PAGE_ITEMS));
      assert.ok(page.next !== undefined);
      for (const limit of [1, 7, 100, 249, 250, 251, 1000])
        assert.deepEqual((await everyMessage(backend, JOBS, limit)).map(content), texts, `pages of ${limit}`);
    },
  },
  {
    name: "pages skip and repeat nothing that stayed, while messages come, go and change state between them",
    async run({ backend }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "1", "2", "3", "4", "5", "6");
      const held = await backend.dequeue(JOBS, { limit: 3 });
      const first = await backend.messages(JOBS, { limit: 2 });
      assert.deepEqual(first.items.map(content), ["1", "2"]);
      await ack(backend, JOBS, ...held.slice(1));
      await backend.release(JOBS, [held[0]?.receipt as never]);
      await take(backend, JOBS);
      await put(backend, JOBS, "7");
      const second = await backend.messages(JOBS, { limit: 2, after: first.next as string });
      assert.deepEqual(second.items.map(content), ["4", "5"]);
      const third = await backend.messages(JOBS, { limit: 10, after: second.next as string });
      assert.deepEqual(third.items.map(content), ["6", "7"]);
      assert.equal(third.next, undefined);
    },
  },
  {
    name: "a listing begun before a clear or a removal ends without the messages stored after it being mixed up",
    async run({ backend }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "1", "2", "3");
      const first = await backend.messages(JOBS, { limit: 1 });
      await backend.clear(JOBS);
      await put(backend, JOBS, "4", "5");
      const after = await backend.messages(JOBS, { limit: 10, after: first.next as string });
      assert.ok(
        after.items.every((one) => ["4", "5"].includes(content(one))),
        "nothing that was cleared",
      );
      await backend.removeQueue(JOBS);
      await make(backend, JOBS);
      assert.deepEqual(await backend.messages(JOBS, { after: first.next as string }), { items: [] });
    },
  },
  {
    name: "refused page options",
    async run({ backend }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "1");
      for (const options of [{ limit: 0 }, { limit: 1001 }, { limit: 1.5 }, { limit: "1" }, { after: 5 }, { limits: 5 }, 5]) {
        await refused(() => backend.messages(JOBS, options as never), "invalid-argument");
        await refused(() => backend.deadLetters(JOBS, options as never), "invalid-argument");
        await refused(() => backend.listQueues(options as never), "invalid-argument");
      }
    },
  },
  {
    name: "a cursor that no page gave is refused, or leads to a page: never a foreign error, and nothing changes",
    async run({ backend }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "1", "2");
      await backend.nack(JOBS, [{ receipt: (await take(backend, JOBS)).receipt, giveUp: true }]);
      const before = await fingerprint(backend, JOBS);
      for (const after of [
        "",
        "x",
        "-1",
        "1.5",
        "999999999999999999999999",
        "NaN",
        "1e400",
        "'; --",
        "m-1-1-1",
        "\u0000",
        "日本",
        "0:0",
        "-inf",
        "+inf",
        "(1",
      ]) {
        for (const read of [() => backend.messages(JOBS, { after }), () => backend.deadLetters(JOBS, { after })]) {
          try {
            for (const item of (await read()).items) assert.ok(["1", "2"].includes(content(item)));
          } catch (error) {
            assert.ok(isQueueFSError(error, "invalid-argument"), `cursor ${JSON.stringify(after)}: ${String(error)}`);
          }
        }
      }
      assert.deepEqual(await fingerprint(backend, JOBS), before);
    },
  },
  {
    name: "pages of large messages may be shorter, and still lead to the end",
    async run({ backend }) {
      await make(backend, JOBS);
      const size = 1024 * 1024;
      for (let index = 0; index < 24; index += 1) await backend.enqueue(JOBS, [{ data: new Uint8Array(size).fill(index) }]);
      const listed = await everyMessage(backend, JOBS, 1000);
      assert.deepEqual(
        listed.map((one) => [one.data.length, one.data[0], one.data[size - 1]]),
        Array.from({ length: 24 }, (_, index) => [size, index, index]),
      );
    },
  },
  {
    name: "messages of a deep queue are listed without holding it up",
    async run({ backend }) {
      await make(backend, JOBS);
      const texts = Array.from({ length: 3000 }, (_, index) => String(index));
      await put(backend, JOBS, ...texts);
      const pages: string[] = [];
      let after: string | undefined;
      let taken = 0;
      do {
        const page = await backend.messages(JOBS, after === undefined ? { limit: 500 } : { limit: 500, after });
        pages.push(...page.items.map(content));
        after = page.next;
        if (after !== undefined) taken += (await backend.dequeue(JOBS, { limit: 10 })).length;
      } while (after !== undefined);
      assert.deepEqual(pages, texts);
      await counts(backend, JOBS, 3000 - taken, taken);
      await backend.enqueue(JOBS, [{ data: bytes("more") }]);
    },
  },
]);
