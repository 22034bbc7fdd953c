/** Names are compared byte for byte, and two names never share anything. */

import assert from "node:assert/strict";
import { MAX_NAME_COMPONENT_BYTES, MAX_NAME_DEPTH } from "../../core/limits.ts";
import { compareNames, type QueueName } from "../../core/names.ts";
import { section } from "./case.ts";
import { counts, everyListed, fingerprint, name, put, take, takeTexts } from "./steps.ts";

/** Names that have been taken for one another somewhere: patterns, quoting, cases, key separators, Unicode forms, object members. */
export const NEIGHBOURS: readonly string[] = [
  "a_b",
  "a%b",
  "a/b",
  "a.b",
  "a b",
  "a-b",
  "a*b",
  "a?b",
  "a[b]",
  "a\\b",
  "a'b",
  'a"b',
  "a;b",
  "a:b",
  "a#b",
  "a`b",
  "aXb",
  "A_B",
  "A",
  "a",
  "ab",
  "a_b2",
  "a__b",
  "a_b/c",
  "a%",
  "%",
  "_",
  "*",
  "?",
  "[ab]",
  "\\",
  "'",
  "--",
  "{x}",
  "x}{y",
  "{}",
  "{",
  "}",
  "a:pending",
  "a:msg:1",
  "a:processing",
  "a:{x}",
  "日本/q",
  "日本",
  "é",
  "e\u0301",
  "\u212b",
  "\u00c5",
  "ß",
  "ss",
  "SS",
  "İ",
  "i",
  "I",
  "ı",
  "😀",
  "\uff5e",
  "\ufeffa",
  "a\u200b",
  "a\u00a0b",
  "NULL",
  "null",
  "undefined",
  "0",
  "00",
  "-1",
  "1e3",
  "__proto__",
  "constructor",
  "toString",
  "hasOwnProperty",
  "Status",
  "STATUS",
  "acks",
  "enqueue2",
  "dead",
  "queues",
  "slots",
  "a.",
  "a..b",
  "~",
  "a~b",
];

/** The cases of the section "names". */
export const nameCases = section("names", [
  {
    name: "neighbouring names are different queues, listed in byte order and untouched by what happens to others",
    async run({ backend, open }) {
      const queues = NEIGHBOURS.map(name);
      for (const queue of queues) assert.equal(await backend.createQueue(queue), "created", queue);
      for (const queue of queues) await put(backend, queue, `first of ${queue}`, `second of ${queue}`);
      assert.deepEqual(
        await everyListed((after) => backend.listQueues(after === undefined ? { limit: 10 } : { limit: 10, after })),
        queues.toSorted(compareNames),
      );
      const other = await open();
      for (const queue of queues) {
        await counts(other, queue, 2, 0);
        const delivered = await take(other, queue);
        assert.equal(new TextDecoder().decode(delivered.data), `first of ${queue}`);
        await counts(backend, queue, 1, 1);
        assert.deepEqual(await backend.ack(queue, [{ receipt: delivered.receipt }]), [{ outcome: "acked", forwarded: [] }]);
      }
      assert.deepEqual(
        await other.statuses({ queues }),
        queues.map((queue) => ({ queue, pending: 1, processing: 0 })),
      );
      const cleared = name("a%b");
      await backend.clear(cleared);
      for (const queue of queues) await counts(backend, queue, queue === cleared ? 0 : 1, 0);
    },
  },
  {
    name: "removing a_b, recursively or not, touches a_b and what lies under it and nothing else",
    async run({ backend }) {
      const queues = NEIGHBOURS.map(name);
      for (const queue of queues) {
        await backend.createQueue(queue);
        await put(backend, queue, `of ${queue}`, "held");
        await take(backend, queue);
      }
      let left: readonly QueueName[] = queues;
      for (const [target, count] of [
        ["a_b", 2],
        ["a%", 1],
        ["%", 1],
        ["_", 1],
        ["*", 1],
        ["A", 1],
        ["é", 1],
        ["{}", 1],
        ["日本", 2],
        ["a", 2],
        ["x}{y", 1],
      ] as const) {
        const stays = left.filter((queue) => queue !== target && !queue.startsWith(`${target}/`));
        assert.equal(left.length - stays.length, count);
        const before = await Promise.all(stays.map((queue) => fingerprint(backend, queue)));
        assert.equal(await backend.removeQueue(name(target), { recursive: true }), count, target);
        assert.deepEqual(
          (await backend.statuses({ under: "" })).map((one) => one.queue),
          stays.toSorted(compareNames),
          `after removing ${target}`,
        );
        assert.deepEqual(await Promise.all(stays.map((queue) => fingerprint(backend, queue))), before, `neighbours of ${target}`);
        left = stays;
      }
    },
  },
  {
    name: "components of 255 bytes and 32 components work like any others",
    async run({ backend }) {
      const wide = `${"é".repeat(127)}x`;
      assert.equal(new TextEncoder().encode(wide).length, MAX_NAME_COMPONENT_BYTES);
      const deep = Array.from({ length: MAX_NAME_DEPTH }, () => wide).join("/");
      const almost = Array.from({ length: MAX_NAME_DEPTH - 1 }, () => wide).join("/");
      const twin = `${deep.slice(0, -1)}y`;
      for (const queue of [deep, almost, twin]) {
        assert.equal(await backend.createQueue(name(queue)), "created");
        await put(backend, name(queue), `in ${queue.length} ${queue.at(-1)}`);
      }
      assert.deepEqual((await backend.listQueues({ under: name(almost) })).items, [almost, deep, twin]);
      assert.equal(await backend.removeQueue(name(deep)), 1);
      assert.deepEqual(await takeTexts(backend, name(twin)), [`in ${twin.length} y`]);
      assert.equal(await backend.removeQueue(name(wide), { recursive: true }), 2);
    },
  },
  {
    name: "the same id in two queues is two messages",
    async run({ backend }) {
      const queues = ["a", "a/b", "a:b", "b"].map(name);
      for (const queue of queues) {
        await backend.createQueue(queue);
        assert.deepEqual(await backend.enqueue(queue, [{ id: "same" as never, data: new TextEncoder().encode(queue) }]), [
          { outcome: "enqueued", id: "same" },
        ]);
      }
      const held = await take(backend, queues[0] as QueueName);
      assert.deepEqual(await backend.ackById(queues[1] as QueueName, [held.id]), ["not-in-processing"]);
      assert.deepEqual(await backend.ack(queues[1] as QueueName, [{ receipt: held.receipt }]), [{ outcome: "stale" }]);
      for (const queue of queues.slice(1)) assert.deepEqual(await takeTexts(backend, queue), [queue]);
    },
  },
]);
