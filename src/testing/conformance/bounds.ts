/** Limits that a store keeps, each with its own error, before anything changes. */

import assert from "node:assert/strict";
import { DEFAULT_MAX_MESSAGE_BYTES } from "../../core/limits.ts";
import { section } from "./case.ts";
import { ack, bytes, content, counts, everyMessage, JOBS, make, name, put, refused, take, withId } from "./steps.ts";

/** The cases of the section "bounds". */
export const boundCases = section("bounds", [
  {
    name: "a message may have 64 MiB unless told otherwise, and one byte more is too large",
    async run({ backend }) {
      await make(backend, JOBS);
      assert.equal(backend.description.maxMessageBytes, DEFAULT_MAX_MESSAGE_BYTES);
      const message = await refused(
        () => backend.enqueue(JOBS, [{ data: new Uint8Array(DEFAULT_MAX_MESSAGE_BYTES + 1) }]),
        "message-too-large",
      );
      assert.match(message, /67108865.*67108864/);
      await counts(backend, JOBS, 0, 0);
    },
  },
  {
    name: "the largest message allowed is stored; a larger one, or a call of more in all, is refused whole",
    options: { maxMessageBytes: 1000 },
    async run({ backend }) {
      await make(backend, JOBS);
      await backend.enqueue(JOBS, [{ data: new Uint8Array(1000) }]);
      await backend.enqueue(JOBS, [{ data: new Uint8Array(500) }, { data: new Uint8Array(500) }]);
      await refused(() => backend.enqueue(JOBS, [{ data: bytes("small") }, { data: new Uint8Array(1001) }]), "message-too-large");
      await refused(() => backend.enqueue(JOBS, [{ data: new Uint8Array(500) }, { data: new Uint8Array(501) }]), "message-too-large");
      assert.deepEqual(
        (await everyMessage(backend, JOBS)).map((one) => one.data.byteLength),
        [1000, 500, 500],
      );
    },
  },
  {
    name: "a full store refuses new messages and drops none; acks still work and make room",
    needs: ["bounded"],
    options: { maxMessages: 3 },
    async run({ backend }) {
      await make(backend, JOBS);
      await put(backend, JOBS, "1", "2", "3");
      await refused(() => backend.enqueue(JOBS, [{ data: bytes("4") }]), "store-full");
      const held = await take(backend, JOBS);
      await refused(() => backend.enqueue(JOBS, [{ data: bytes("4") }]), "store-full");
      assert.deepEqual((await everyMessage(backend, JOBS)).map(content), ["1", "2", "3"]);
      await ack(backend, JOBS, held);
      await refused(() => backend.enqueue(JOBS, [{ data: bytes("4") }, { data: bytes("5") }]), "store-full");
      await put(backend, JOBS, "4");
      assert.deepEqual((await everyMessage(backend, JOBS)).map(content), ["2", "3", "4"]);
    },
  },
  {
    name: "the bound counts exactly: repeats and conflicts take no room, and an ack makes room for what it forwards",
    needs: ["bounded"],
    options: { maxMessages: 3 },
    async run({ backend }) {
      await make(backend, JOBS, "next");
      const answers = await backend.enqueue(JOBS, [
        withId("x", "1"),
        withId("x", "1"),
        withId("x", "other"),
        withId("y", "2"),
        { data: bytes("3") },
      ]);
      assert.deepEqual(
        answers.map((answer) => answer.outcome),
        ["enqueued", "repeated", "conflict", "enqueued", "enqueued"],
      );
      assert.deepEqual(await backend.enqueue(JOBS, [withId("y", "2"), withId("y", "other")]), [
        { outcome: "repeated", id: "y" },
        { outcome: "conflict", id: "y" },
      ]);
      const held = await take(backend, JOBS);
      const forward = (count: number) => [{ queue: name("next"), messages: Array.from({ length: count }, () => ({ data: held.data })) }];
      await refused(() => backend.ack(JOBS, [{ receipt: held.receipt, forward: forward(2) }]), "store-full");
      await counts(backend, JOBS, 2, 1);
      await counts(backend, name("next"), 0, 0);
      const [answer] = await backend.ack(JOBS, [{ receipt: held.receipt, forward: forward(1) }]);
      assert.equal(answer?.outcome, "acked");
      await refused(() => backend.enqueue(JOBS, [{ data: bytes("4") }]), "store-full");
      assert.deepEqual(await backend.clear(name("next")), { pending: 1, processing: 0 });
      await put(backend, JOBS, "4");
    },
  },
]);
