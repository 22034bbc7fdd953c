/** Trees of messages whose shape and fate follow from their names, so that every process knows them without being told. */

import { parseQueueName, type QueueName } from "../../../src/core/names.ts";
import { SeededRandom } from "../../../src/testing/index.ts";

/** The queues over which the nodes of all trees are spread. */
export const TREE_QUEUES: readonly QueueName[] = ["trees/a", "trees/a/b", "trees/c"].map(parseQueueName);

/** How a handler ends: done at once, after failing once, after being given back once, or given up for good. */
export type Fate = "done" | "fails once" | "retries once" | "given up";

/** One message of a tree. */
export interface Node {
  /** `SEED/ROOT/0/2/1`: the tree and the way from its root. Also the id of the message. */
  readonly name: string;
  readonly queue: QueueName;
  readonly fate: Fate;
  /** How its children come: enqueued by the handler one by one, all in one call each queue, or forwarded with the ack. */
  readonly manner: "enqueue" | "together" | "forward";
  /** How long the handler takes, in milliseconds. */
  readonly workMs: number;
  readonly children: readonly string[];
}

/** Nodes below a root at most so many steps. */
const DEPTH = 4;

function seedOf(name: string): number {
  let seed = 7;
  for (const character of name) seed = (Math.imul(seed, 31) + character.charCodeAt(0)) >>> 0;
  return seed;
}

/** The node of a name. */
export function nodeOf(name: string): Node {
  const random = new SeededRandom(seedOf(name));
  const among = <Item>(...items: readonly Item[]): Item => items[Math.floor(random.fraction() * items.length)] as Item;
  const depth = name.split("/").length - 2;
  const count = depth >= DEPTH ? 0 : among(0, 1, 1, 2, 3);
  const fate = among<Fate>(
    "done",
    "done",
    "done",
    "done",
    "done",
    "done",
    "fails once",
    "retries once",
    random.fraction() < 0.3 ? "given up" : "done",
  );
  return {
    name,
    queue: among(...TREE_QUEUES),
    fate,
    manner: among<Node["manner"]>("enqueue", "together", "forward"),
    workMs: among(0, 0, 1, 3),
    // What is given up on has no follow-ups: they would come once per attempt.
    children: fate === "given up" ? [] : Array.from({ length: count }, (_, index) => `${name}/${index}`),
  };
}

/** All nodes at and under a root. */
export function everyNode(root: string): Node[] {
  const node = nodeOf(root);
  return [node, ...node.children.flatMap(everyNode)];
}
