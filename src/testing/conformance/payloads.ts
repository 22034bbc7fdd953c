/** Bytes in are bytes out, on every path that reads them. */

import assert from "node:assert/strict";
import { section } from "./case.ts";
import { ack, bytes, empty, everyDeadLetter, everyMessage, id, JOBS, make, name, sameBytes, take } from "./steps.ts";

/** Bytes that something somewhere has changed on their way. */
export function awkwardPayloads(): Readonly<Record<string, Uint8Array>> {
  return {
    empty: new Uint8Array(0),
    NUL: Uint8Array.of(0),
    "two NULs": Uint8Array.of(0, 0),
    "FF FE": Uint8Array.of(0xff, 0xfe),
    "a byte order mark": Uint8Array.of(0xef, 0xbb, 0xbf, 0x61),
    "C3 28, not UTF-8": Uint8Array.of(0xc3, 0x28),
    "ED A0 80, a surrogate in UTF-8": Uint8Array.of(0xed, 0xa0, 0x80),
    "all 256 values": Uint8Array.from({ length: 256 }, (_, index) => index),
    CRLF: bytes("a\r\nb\r\n"),
    "a trailing newline": bytes("a\n"),
    "a newline": bytes("\n"),
    "{}": bytes("{}"),
    null: bytes("null"),
    "an object with an id": bytes('{"id":"x"}'),
    "a number": bytes("1"),
    "white space": bytes("  \t "),
    text: bytes("日本 😀 é e\u0301"),
    "64 KiB and one": pseudoRandomBytes(65_537),
  };
}

/** Bytes without a pattern that compression or a lucky encoding could hide in; the same for the same length. */
export function pseudoRandomBytes(length: number): Uint8Array {
  const words = new Uint32Array(Math.ceil(length / 4));
  let word = 0x2545f491;
  for (let index = 0; index < words.length; index += 1) {
    word ^= word << 13;
    word ^= word >>> 17;
    word ^= word << 5;
    words[index] = word;
  }
  return new Uint8Array(words.buffer, 0, length);
}

/** The cases of the section "payloads". */
export const payloadCases = section("payloads", [
  {
    name: "awkward bytes are the same on every path: peek, messages, dequeue, its repeat, dead letters, redrive, forward",
    async run({ backend, open }) {
      await make(backend, JOBS, "next");
      const other = await open();
      for (const [what, data] of Object.entries(awkwardPayloads())) {
        await backend.enqueue(JOBS, [{ data }]);
        const peeked = await other.peek(JOBS);
        assert.ok(peeked, `${what} is not nothing`);
        sameBytes(peeked.data, data, `${what}: peek`);
        sameBytes((await everyMessage(other, JOBS))[0]?.data ?? bytes("missing"), data, `${what}: messages`);
        const held = await take(other, JOBS, { requestId: "q1" });
        sameBytes(held.data, data, `${what}: dequeue`);
        sameBytes((await take(backend, JOBS, { requestId: "q1" })).data, data, `${what}: repeated dequeue`);
        sameBytes((await everyMessage(other, JOBS))[0]?.data ?? bytes("missing"), data, `${what}: messages in processing`);
        await backend.nack(JOBS, [{ receipt: held.receipt }]);
        const again = await take(other, JOBS);
        sameBytes(again.data, data, `${what}: dequeue after a nack`);
        await backend.nack(JOBS, [{ receipt: again.receipt, giveUp: true }]);
        sameBytes((await everyDeadLetter(other, JOBS))[0]?.data ?? bytes("missing"), data, `${what}: dead letters`);
        await backend.redrive(JOBS, [held.id]);
        const last = await take(other, JOBS);
        sameBytes(last.data, data, `${what}: dequeue after redrive`);
        await backend.ack(JOBS, [{ receipt: last.receipt, forward: [{ queue: name("next"), messages: [{ data }] }] }]);
        const forwarded = await take(other, name("next"));
        sameBytes(forwarded.data, data, `${what}: forwarded`);
        await backend.ack(name("next"), [{ receipt: forwarded.receipt }]);
        await backend.removeQueue(JOBS);
        await make(backend, JOBS);
      }
    },
  },
  {
    name: "many awkward payloads of one call keep their bounds",
    async run({ backend }) {
      await make(backend, JOBS);
      const payloads = Object.values(awkwardPayloads());
      await backend.enqueue(
        JOBS,
        payloads.map((data, index) => ({ data, ...(index % 2 ? { id: id(`id-${index}`) } : {}) })),
      );
      const listed = await everyMessage(backend, JOBS);
      const delivered = await backend.dequeue(JOBS, { limit: 100 });
      for (const [index, data] of payloads.entries()) {
        sameBytes(listed[index]?.data ?? bytes("missing"), data, `listed ${index}`);
        sameBytes(delivered[index]?.data ?? bytes("missing"), data, `delivered ${index}`);
      }
    },
  },
  {
    name: "an empty message, the message {} and nothing are three different answers",
    async run({ backend }) {
      await make(backend, JOBS);
      await empty(backend, JOBS);
      await backend.enqueue(JOBS, [{ data: new Uint8Array(0) }, { data: bytes("{}") }]);
      const first = await take(backend, JOBS);
      assert.equal(first.data.byteLength, 0);
      const second = await take(backend, JOBS);
      sameBytes(second.data, bytes("{}"), "{}");
      await empty(backend, JOBS);
    },
  },
  {
    name: "8 MiB go in and come out on every path",
    async run({ backend, open }) {
      await make(backend, JOBS, "next");
      const other = await open();
      const data = pseudoRandomBytes(8 * 1024 * 1024);
      assert.deepEqual(await backend.enqueue(JOBS, [{ id: id("big"), data }]), [{ outcome: "enqueued", id: "big" }]);
      assert.deepEqual(await other.enqueue(JOBS, [{ id: id("big"), data }]), [{ outcome: "repeated", id: "big" }]);
      sameBytes((await other.peek(JOBS))?.data ?? bytes("missing"), data, "peek");
      sameBytes((await everyMessage(other, JOBS))[0]?.data ?? bytes("missing"), data, "messages");
      const held = await take(other, JOBS, { requestId: "q1" });
      sameBytes(held.data, data, "dequeue");
      sameBytes((await take(backend, JOBS, { requestId: "q1" })).data, data, "repeated dequeue");
      await backend.nack(JOBS, [{ receipt: held.receipt, giveUp: true }]);
      sameBytes((await everyDeadLetter(other, JOBS))[0]?.data ?? bytes("missing"), data, "dead letters");
      await backend.redrive(JOBS, [held.id]);
      const last = await take(other, JOBS);
      await backend.ack(JOBS, [{ receipt: last.receipt, forward: [{ queue: name("next"), messages: [{ data: last.data }] }] }]);
      sameBytes((await take(other, name("next"))).data, data, "forwarded");
    },
  },
  {
    name: "a call that asks for more bytes than fit one answer gets fewer messages, in order, and the rest later",
    async run({ backend }) {
      await make(backend, JOBS);
      const size = 24 * 1024 * 1024;
      for (let index = 0; index < 3; index += 1) await backend.enqueue(JOBS, [{ data: new Uint8Array(size).fill(index) }]);
      const seen: number[] = [];
      while (seen.length < 3) {
        const some = await backend.dequeue(JOBS, { limit: 1000 });
        assert.ok(some.length > 0, "each call gives at least one");
        for (const { data } of some) {
          assert.equal(data.byteLength, size);
          assert.equal(data[0], data[size - 1]);
          seen.push(data[0] as number);
        }
        await ack(backend, JOBS, ...some);
      }
      assert.deepEqual(seen, [0, 1, 2]);
      await empty(backend, JOBS);
    },
  },
  {
    name: "bytes of views into larger buffers, and of Buffers, are exactly theirs",
    async run({ backend }) {
      await make(backend, JOBS);
      const large = Uint8Array.from({ length: 100 }, (_, index) => index);
      const shared = new Uint8Array(new SharedArrayBuffer(4));
      shared.set([9, 8, 7, 6]);
      const views = [
        large.subarray(10, 20),
        Buffer.from(large.buffer, 30, 5),
        Buffer.from("pooled text"),
        new Uint8Array(large.buffer, 99),
        shared,
      ];
      const copies = views.map((view) => Uint8Array.from(view));
      await backend.enqueue(
        JOBS,
        views.map((data) => ({ data })),
      );
      for (const [index, copy] of copies.entries()) sameBytes((await take(backend, JOBS)).data, copy, `view ${index}`);
    },
  },
]);
