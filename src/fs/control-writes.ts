/** What a write to each control file does. */

import { decodeUtf8 } from "../core/codec.ts";
import { QueueFSError, quote } from "../core/errors.ts";
import { MAX_BATCH_ITEMS, MAX_CONTROL_TEXT_BYTES, MAX_DELAY_MS, MAX_LEASE_MS, MIN_LEASE_MS } from "../core/limits.ts";
import { type MessageId, parseChosenMessageId, parseMessageId, parseReceipt } from "../core/names.ts";
import { type OptionTable, readOptions } from "../core/options.ts";
import type { ControlCall } from "./control-reads.ts";

/** One write to a control file. */
export interface WriteCall extends ControlCall {
  /** An id for the message, of `enqueue`. */
  readonly id?: string;
}

/** How a control file is written. */
export interface WriteHandler {
  /** What of the bytes matters: all as they are, a short text, or nothing. */
  readonly takes: "message" | "text" | "nothing";
  /** Acts; `data` is no longer needed when it resolves. */
  readonly act: (call: WriteCall, data: Uint8Array) => Promise<{ readonly id?: string }>;
}

/** Keys of the object that `.nack` takes, as a table. */
export const NACK_KEYS = {
  receipt: { type: "text", meaning: "which delivery" },
  delayMs: { type: "integer", minimum: 0, maximum: MAX_DELAY_MS, default: 0, meaning: "not again before, in milliseconds" },
  reason: { type: "text", default: "", meaning: "why" },
  giveUp: { type: "boolean", default: false, meaning: "whether to move it to the dead letters" },
} as const satisfies OptionTable;

/** Keys of the object that `.extend` takes, as a table. */
export const EXTEND_KEYS = {
  receipt: { type: "text", meaning: "which delivery" },
  leaseMs: { type: "integer", minimum: MIN_LEASE_MS, maximum: MAX_LEASE_MS, meaning: "the lease from now, in milliseconds" },
} as const satisfies OptionTable;

/** `enqueue`: stores one message. */
export const writeEnqueue: WriteHandler = {
  takes: "message",
  async act({ backend, queue, id }, data) {
    const [answer] = await backend.enqueue(queue, [{ data, ...(id === undefined ? {} : { id: parseChosenMessageId(id) }) }]);
    if (answer === undefined)
      throw new QueueFSError("internal", "an enqueue of one message had no answer; this is a bug of the backend, please report it");
    if (answer.outcome === "conflict") {
      throw new QueueFSError(
        "id-conflict",
        `message id ${quote(id)} was used before in queue ${quote(queue)} with other bytes; nothing was stored, choose another id`,
      );
    }
    return { id: answer.id };
  },
};

/** `clear`: removes all, whatever was written. */
export const writeClear: WriteHandler = {
  takes: "nothing",
  async act({ backend, queue }) {
    await backend.clear(queue);
    return {};
  },
};

/** `ack`: removes one message in processing, named by its receipt or its id. */
export const writeAck: WriteHandler = {
  takes: "text",
  async act({ backend, queue }, data) {
    const text = controlText("ack", data);
    // No id that a caller chooses can look like a receipt, see parseChosenMessageId.
    if (text.startsWith("r-")) {
      const [answer] = await backend.ack(queue, [{ receipt: parseReceipt(text) }]);
      if (answer?.outcome !== "acked") throw stale("ack", text, queue);
    } else {
      const [answer] = await backend.ackById(queue, [parseMessageId(text)]);
      if (answer !== "acked") {
        throw new QueueFSError(
          "not-in-processing",
          `message ${quote(text)} not found in processing in queue ${quote(queue)}: it is pending, acked already, or unknown; nothing changed. Dequeue a message before you ack it`,
        );
      }
    }
    return {};
  },
};

/** `.nack`: gives one delivery back after a failure. */
export const writeNack: WriteHandler = {
  takes: "text",
  async act({ backend, queue }, data) {
    const text = controlText(".nack", data);
    const { receipt, ...how } = readOptions(".nack", NACK_KEYS, text.startsWith("{") ? controlObject(".nack", text) : { receipt: text });
    const [answer] = await backend.nack(queue, [{ ...how, receipt: parseReceipt(receipt) }]);
    if (answer === undefined || answer === "stale") throw stale("nack", receipt, queue);
    return {};
  },
};

/** `.extend`: renews one lease. */
export const writeExtend: WriteHandler = {
  takes: "text",
  async act({ backend, queue, leaseMs }, data) {
    const text = controlText(".extend", data);
    const asked = readOptions(".extend", EXTEND_KEYS, text.startsWith("{") ? controlObject(".extend", text) : { receipt: text });
    const [answer] = await backend.extend(queue, [{ receipt: parseReceipt(asked.receipt), leaseMs: asked.leaseMs ?? leaseMs }]);
    if (answer !== "extended") throw stale("extend", asked.receipt, queue);
    return {};
  },
};

/** `.dead`: puts dead letters back to work, or drops them. */
export const writeDead: WriteHandler = {
  takes: "text",
  async act(call, data) {
    const { redrive, drop, ...others } = controlObject(".dead", controlText(".dead", data)) as Record<string, unknown>;
    const [other] = Object.keys(others);
    if (other !== undefined || (redrive === undefined) === (drop === undefined)) {
      throw new QueueFSError(
        "invalid-argument",
        `.dead takes {"redrive":[ids]} or {"drop":[ids]}, or "all" instead of the ids, got ${quote({ redrive, drop, ...others })}`,
      );
    }
    const move = async (ids: readonly MessageId[]): Promise<MessageId[]> => {
      const answers: readonly string[] =
        drop === undefined ? await call.backend.redrive(call.queue, ids) : await call.backend.drop(call.queue, ids);
      return ids.filter((_id, index) => answers[index] === "not-found");
    };
    const which = drop ?? redrive;
    if (which === "all") await moveAll(call, move);
    else await moveSome(call, which, move);
    return {};
  },
};

async function moveSome(call: WriteCall, which: unknown, move: (ids: readonly MessageId[]) => Promise<MessageId[]>): Promise<void> {
  if (!Array.isArray(which) || which.length > MAX_BATCH_ITEMS) {
    throw new QueueFSError("invalid-argument", `.dead takes an array of at most ${MAX_BATCH_ITEMS} ids, or "all", got ${quote(which)}`);
  }
  const missing = await move(which.map(parseMessageId));
  if (missing.length > 0) {
    throw new QueueFSError(
      "message-not-found",
      `${missing.length} of ${which.length} dead letters not found in queue ${quote(call.queue)}, the first being ${quote(missing[0])}; the others were moved`,
    );
  }
}

/** Moves as many dead letters as there are now: one that dies again meanwhile must not keep this going for ever. */
async function moveAll(call: WriteCall, move: (ids: readonly MessageId[]) => Promise<MessageId[]>): Promise<void> {
  const { backend, queue } = call;
  let left = (await backend.statistics(queue)).dead;
  let after: string | undefined;
  while (left > 0) {
    const page = await backend.deadLetters(queue, after === undefined ? {} : { after });
    const ids = page.items.slice(0, left).map((letter) => letter.id);
    if (ids.length > 0) await move(ids);
    left -= ids.length;
    after = page.next;
    if (after === undefined) return;
  }
}

function stale(verb: string, receipt: string | undefined, queue: string): QueueFSError {
  return new QueueFSError(
    "not-in-processing",
    `receipt ${quote(receipt)} is not the current one of a message in processing in queue ${quote(queue)} (stale, or not found): nothing to ${verb}, nothing changed. ` +
      "The message was settled already, or its lease ended and it may be delivered again",
  );
}

/** Checks that what is to be written is bytes. @throws QueueFSError `invalid-argument` */
export function checkBytes(data: unknown): Uint8Array {
  if (data instanceof Uint8Array) return data;
  throw new QueueFSError("invalid-argument", `what is written must be a Uint8Array, got ${quote(data)}; encode text with TextEncoder`);
}

/** The error for a text beyond the limit. */
export function controlTextTooLong(file: string): QueueFSError {
  return new QueueFSError("invalid-argument", `${file} takes a text of at most ${MAX_CONTROL_TEXT_BYTES} bytes; split what you write`);
}

function controlText(file: string, data: Uint8Array): string {
  if (data.byteLength > MAX_CONTROL_TEXT_BYTES) throw controlTextTooLong(file);
  const text = decodeUtf8(data)?.trim();
  if (text === undefined)
    throw new QueueFSError("invalid-argument", `what was written to ${file} is not valid UTF-8; write a receipt as dequeue gave it`);
  if (text === "")
    throw new QueueFSError("invalid-argument", `nothing but white space was written to ${file}; write a receipt as dequeue gave it`);
  return text;
}

function controlObject(file: string, text: string): object {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new QueueFSError("invalid-argument", `what was written to ${file} is not JSON: ${quote(text)}`, { cause: error });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new QueueFSError("invalid-argument", `what was written to ${file} must be a JSON object, got ${quote(value)}`);
  }
  return value;
}
