import { expect, it } from "vitest";
import { MESSAGE_EVENTS, MESSAGE_STATES, type MessageEvent, type MessageState, nextState } from "../../../src/core/life-cycle.ts";

const EVENTS = Object.keys(MESSAGE_EVENTS) as MessageEvent[];

/** All that may happen, written down a second time as the contract tells it: everything else is refused. */
const STORY: readonly (readonly [MessageState, MessageEvent, MessageState])[] = [
  ["absent", "enqueue", "pending"],
  ["pending", "dequeue", "processing"],
  ["pending", "quarantine", "dead"],
  ["pending", "clear", "removed"],
  ["pending", "remove queue", "removed"],
  ["pending", "cancel task", "removed"],
  ["processing", "ack", "removed"],
  ["processing", "nack", "pending"],
  ["processing", "give up", "dead"],
  ["processing", "release", "pending"],
  ["processing", "extend", "processing"],
  ["processing", "recovery", "pending"],
  ["processing", "deliveries used up", "dead"],
  ["processing", "clear", "removed"],
  ["processing", "remove queue", "removed"],
  ["processing", "cancel task", "removed"],
  ["dead", "redrive", "pending"],
  ["dead", "drop", "removed"],
  ["dead", "remove queue", "removed"],
];

it("allows exactly the transitions of the contract, over every pair of state and event", () => {
  for (const state of MESSAGE_STATES) {
    for (const event of EVENTS) {
      const told = STORY.find(([from, what]) => from === state && what === event);
      expect(nextState(state, event), `${state} + ${event}`).toBe(told?.[2]);
    }
  }
});

it("names no event that cannot happen and no state that cannot be reached", () => {
  for (const event of EVENTS)
    expect(
      MESSAGE_STATES.some((state) => nextState(state, event) !== undefined),
      event,
    ).toBe(true);
  const reached = new Set<MessageState>(["absent"]);
  for (let size = 0; size !== reached.size; ) {
    size = reached.size;
    for (const state of [...reached]) for (const event of EVENTS) reached.add(nextState(state, event) ?? state);
  }
  expect([...reached].toSorted()).toEqual([...MESSAGE_STATES].toSorted());
});

it("removal is final, and only the consumer's ack or an explicit act leads to it", () => {
  for (const event of EVENTS) expect(nextState("removed", event), event).toBeUndefined();
  const removing = EVENTS.filter((event) => MESSAGE_STATES.some((state) => nextState(state, event) === "removed"));
  expect(removing.toSorted()).toEqual(["ack", "cancel task", "clear", "drop", "remove queue"]);
  expect(nextState("pending", "ack")).toBeUndefined();
});
