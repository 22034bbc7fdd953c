/** Histories at the border of the safety properties: one that must be taken for legal, and its neighbour that must be caught. */

import { describe, expect, it } from "vitest";
import type { Operation } from "../../faults/proof/operation.ts";
import { type Around, ack, call, dequeue, enqueue, keyed, messages, use, violated } from "./script.ts";

interface Border extends Around {
  readonly name: string;
  readonly property: string;
  readonly legal: readonly Operation[];
  readonly illegal: readonly Operation[];
}

const taken = [enqueue([0, 1], "a", "v"), dequeue([10, 20], "a", ["v"])];
const killed = [{ kind: "kill", process: "c2", begin: 30e6, end: 31e6 }];
const forward = [{ queue: "b", messages: messages("f", "g") }];

const BORDERS: readonly Border[] = [
  {
    property: "S1",
    name: "an ack that nobody saw answered may have removed the message; no ack cannot",
    drained: true,
    legal: [...taken, use([30], "ack", "a", "v/1")],
    illegal: [...taken, use([30, 40], "nack", "a", "v/1", "pending")],
  },
  {
    property: "S1",
    name: "a clear that may have come after the enqueue explains a loss; one that was over before does not",
    drained: true,
    legal: [enqueue([0, 10], "a", "v"), call([9, 11], { op: "clear", queue: "a" })],
    illegal: [enqueue([10, 20], "a", "v"), call([8, 9], { op: "clear", queue: "a" })],
  },
  {
    property: "S2",
    name: "an enqueue that nobody saw answered may be delivered; one that begins later may not",
    legal: [enqueue([19], "a", "v"), dequeue([10, 20], "a", ["v"])],
    illegal: [enqueue([21, 22], "a", "v"), dequeue([10, 20], "a", ["v"])],
  },
  {
    property: "S2",
    name: "a message comes from its queue",
    legal: taken,
    illegal: [enqueue([0, 1], "a", "v"), dequeue([10, 20], "b", ["v"])],
  },
  {
    property: "S3",
    name: "a delivery that began before the ack had ended may overlap it, one that began later may not",
    legal: [...taken, ack([150, 200], "a", "v/1"), dequeue([199, 210], "a", [])],
    illegal: [...taken, ack([30, 40], "a", "v/1"), dequeue([141, 150], "a", ["v/2"])],
  },
  {
    property: "S4",
    name: "a lease of 100 ms given at 10 at the earliest ends at 110",
    legal: [...taken, dequeue([100, 110], "a", ["v/2"])],
    illegal: [...taken, dequeue([100, 109], "a", ["v/2"])],
  },
  {
    property: "S4",
    name: "an extension counts from its begin",
    legal: [...taken, use([50, 60], "extend", "a", "v/1", "extended", { leaseMs: 200 }), dequeue([200, 250], "a", ["v/2"])],
    illegal: [...taken, use([50, 60], "extend", "a", "v/1", "extended", { leaseMs: 200 }), dequeue([200, 249], "a", ["v/2"])],
  },
  {
    property: "S4",
    name: "a nack explains a redelivery that ends after it began",
    legal: [...taken, use([39, 60], "nack", "a", "v/1", "pending"), dequeue([30, 40], "a", ["v/2"])],
    illegal: [...taken, dequeue([30, 40], "a", ["v/2"]), use([41, 60], "nack", "a", "v/1", "stale")],
  },
  {
    property: "S4",
    name: "the death of the holder explains a redelivery, that of another does not",
    faults: killed,
    promises: { deathRecovery: true },
    legal: [enqueue([0, 1], "a", "v"), dequeue([10, 20], "a", ["v"], { client: "c2.0" }), dequeue([29, 32], "a", ["v/2"])],
    illegal: [enqueue([0, 1], "a", "v"), dequeue([10, 20], "a", ["v"], { client: "c3.0" }), dequeue([29, 32], "a", ["v/2"])],
  },
  {
    property: "S4",
    name: "a renewal that was carried out anew after the server's death may have shortened the lease before, one answered by one life may not",
    faults: [{ kind: "server killed", process: "server", begin: 45 * 1e6, end: 50 * 1e6 }],
    promises: { forgetsAnswers: true },
    legal: [...taken, use([40, 100], "extend", "a", "v/1", "stale", { leaseMs: 20 }), dequeue([55, 60], "a", ["v/2"])],
    illegal: [...taken, dequeue([55, 60], "a", ["v/2"]), use([51, 100], "extend", "a", "v/1", "stale", { leaseMs: 5 })],
  },
  {
    property: "S10",
    name: "an enqueue that was sent again after the server's death may find its own message, one answered by one life may not",
    faults: [{ kind: "server killed", process: "server", begin: 45 * 1e6, end: 50 * 1e6 }],
    promises: { forgetsAnswers: true },
    legal: [keyed([40, 60], "a", "v", "repeated")],
    illegal: [keyed([51, 60], "a", "v", "repeated")],
  },
  {
    property: "S5",
    name: "a stale receipt is accepted while the next delivery is under way at most",
    legal: [...taken, ack([119, 130], "a", "v/1"), dequeue([105, 120], "a", [])],
    illegal: [...taken, dequeue([111, 120], "a", ["v/2"]), use([121, 130], "extend", "a", "v/1", "extended", { leaseMs: 5 })],
  },
  {
    property: "S5",
    name: "each delivery has a receipt of its own",
    legal: [...taken, dequeue([110, 120], "a", ["v/2"])],
    illegal: [...taken, dequeue([110, 120], "a", ["v/1"])],
  },
  {
    property: "S6",
    name: "a refusal within the lease is wrong, one that may have come after it is not",
    legal: [...taken, use([100, 111], "ack", "a", "v/1", "stale")],
    illegal: [...taken, use([100, 109], "ack", "a", "v/1", "stale")],
  },
  {
    property: "S6",
    name: "after an unanswered ack a repeat may be refused; after nothing it may not",
    legal: [
      ...taken,
      call([30, 40], { op: "ack", queue: "a", items: [{ receipt: "v/1" }] }, "info"),
      use([50, 60], "ack", "a", "v/1", "stale"),
    ],
    illegal: [...taken, use([50, 60], "ack", "a", "v/1", "stale")],
  },
  {
    property: "S6",
    name: "one removal is accepted",
    legal: [...taken, ack([30, 40], "a", "v/1"), use([50, 60], "ack", "a", "v/1", "stale")],
    illegal: [...taken, ack([30, 40], "a", "v/1"), ack([50, 60], "a", "v/1")],
  },
  {
    property: "S8",
    name: "enqueues that overlap have no order, those one after the other have",
    legal: [enqueue([0, 10], "a", "v"), enqueue([9, 20], "a", "w"), dequeue([30, 40], "a", ["w"]), dequeue([50, 60], "a", ["v"])],
    illegal: [enqueue([0, 10], "a", "v"), enqueue([11, 20], "a", "w"), dequeue([30, 40], "a", ["w"]), dequeue([50, 60], "a", ["v"])],
  },
  {
    property: "S8",
    name: "who was given back has its old place as soon as that was answered",
    legal: [
      enqueue([0, 1], "a", "v"),
      enqueue([2, 3], "a", "w"),
      dequeue([10, 20], "a", ["v"]),
      use([30, 41], "nack", "a", "v/1", "pending"),
      dequeue([40, 50], "a", ["w"]),
      dequeue([60, 70], "a", ["v/2"]),
    ],
    illegal: [
      enqueue([0, 1], "a", "v"),
      enqueue([2, 3], "a", "w"),
      dequeue([10, 20], "a", ["v"]),
      use([30, 39], "nack", "a", "v/1", "pending"),
      dequeue([40, 50], "a", ["w"]),
      dequeue([60, 70], "a", ["v/2"]),
    ],
  },
  {
    property: "S9",
    name: "a clear removes what was enqueued before it began, not what came meanwhile",
    legal: [enqueue([0, 11], "a", "v"), call([10, 20], { op: "clear", queue: "a" }), dequeue([30, 40], "a", ["v"])],
    illegal: [enqueue([0, 9], "a", "v"), call([10, 20], { op: "clear", queue: "a" }), dequeue([30, 40], "a", ["v"])],
  },
  {
    property: "S9",
    name: "receipts of what was removed are refused",
    legal: [...taken, call([30, 40], { op: "remove", queue: "a" }), use([41, 50], "extend", "a", "v/1", "stale", { leaseMs: 5 })],
    illegal: [...taken, call([30, 40], { op: "remove", queue: "a" }), use([41, 50], "extend", "a", "v/1", "extended", { leaseMs: 5 })],
  },
  {
    property: "S6",
    name: "a clear that may have come after the dequeue explains a refusal, one that was over before does not",
    legal: [
      enqueue([0, 1], "a", "v"),
      call([11, 12], { op: "clear", queue: "a" }),
      dequeue([10, 20], "a", ["v"]),
      use([30, 40], "ack", "a", "v/1", "stale"),
    ],
    illegal: [
      enqueue([0, 1], "a", "v"),
      call([5, 9], { op: "clear", queue: "a" }),
      dequeue([10, 20], "a", ["v"]),
      use([30, 40], "ack", "a", "v/1", "stale"),
    ],
  },
  {
    property: "S10",
    name: "the same id is stored once",
    legal: [keyed([0, 10], "a", "v", "enqueued"), keyed([20, 30], "a", "v", "repeated")],
    illegal: [keyed([0, 10], "a", "v", "enqueued"), keyed([20, 30], "a", "v", "enqueued")],
  },
  {
    property: "S10",
    name: "the same request gets the same deliveries",
    legal: [
      enqueue([0, 1], "a", "v", "w"),
      dequeue([10, 20], "a", ["v"], { requestId: "r" }),
      dequeue([30, 40], "a", ["v"], { requestId: "r" }),
    ],
    illegal: [
      enqueue([0, 1], "a", "v", "w"),
      dequeue([10, 20], "a", ["v"], { requestId: "r" }),
      dequeue([30, 40], "a", ["w"], { requestId: "r" }),
    ],
  },
  {
    property: "S11",
    name: "empty is right while the enqueue is under way, or while an unanswered dequeue may hold the message",
    legal: [enqueue([0, 11], "a", "v"), dequeue([10, 20], "a", []), dequeue([21], "a", []), dequeue([30, 40], "a", [])],
    illegal: [enqueue([0, 9], "a", "v"), dequeue([10, 20], "a", [])],
  },
  {
    property: "S12",
    name: "who was forwarded for is not delivered again",
    legal: [...taken, use([30], "ack", "a", "v/1", "acked", { forward }), dequeue([150, 160], "a", ["v/2"])],
    illegal: [
      ...taken,
      use([30], "ack", "a", "v/1", "acked", { forward }),
      dequeue([150, 160], "a", ["v/2"]),
      dequeue([170, 180], "b", ["f"]),
    ],
  },
  {
    property: "S12",
    name: "a step stores all of its messages or none",
    drained: true,
    legal: [enqueue([0], "a", "v", "w")],
    illegal: [enqueue([0], "a", "v", "w"), dequeue([10, 20], "a", ["v"]), ack([30, 40], "a", "v/1")],
  },
  {
    property: "S12",
    name: "a refused ack forwards nothing",
    legal: [...taken, ack([30, 40], "a", "v/1", forward), dequeue([50, 60], "b", ["f"])],
    illegal: [...taken, use([130, 140], "ack", "a", "v/1", "stale", { forward }), dequeue([150, 160], "b", ["f"])],
  },
];

describe.each(BORDERS)("$property: $name", ({ property, legal, illegal, ...around }) => {
  it("takes the legal one", () => expect(violated(legal, around)).toEqual([]));
  it("catches the illegal one", () => expect(violated(illegal, around)).toContain(property));
});
