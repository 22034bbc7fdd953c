/** What a read of each control file gives. */

import type { Backend } from "../backend/contract.ts";
import { describeMessage, EMPTY_JSON, formatTimestamp, messageJsonChunks, type ShownMessage } from "../core/codec.ts";
import type { DeliveryOwner, Page, Status } from "../core/message.ts";
import type { QueueName } from "../core/names.ts";
import { waitComplete } from "../queue/wait.ts";
import { Content } from "./content.ts";

/** Where and how a control file acts. */
export interface ControlCall {
  readonly backend: Backend;
  readonly queue: QueueName;
  /** The lease that a dequeue gives and an extension without one asks for, in milliseconds. */
  readonly leaseMs: number;
  readonly owner: DeliveryOwner;
}

/** One read of a control file. */
export interface ReadCall extends ControlCall {
  /** A signal that is aborted when the file is closed, for a content that waits. To be asked for at once, not after an await. */
  readonly whenEnded: () => AbortSignal;
  readonly requestId?: string;
}

/** A content, and how to give back what was claimed to make it, if anything was. */
export interface Loaded {
  readonly content: Content;
  readonly release?: () => Promise<unknown>;
}

/** Makes the content of one open file. */
export type ReadHandler = (call: ReadCall) => Promise<Loaded>;

const encoder = new TextEncoder();
const EMPTY = encoder.encode(EMPTY_JSON);
/** Messages of a listing up to this size are put together into chunks of about the other. */
const SMALL_DATA_BYTES = 16 * 1024;
const CHUNK_CHARACTERS = 64 * 1024;

/** `dequeue`: takes one message. */
export async function readDequeue({ backend, queue, leaseMs, owner, requestId }: ReadCall): Promise<Loaded> {
  const [message] = await backend.dequeue(queue, { leaseMs, owner, ...(requestId === undefined ? {} : { requestId }) });
  if (message === undefined) return whole(EMPTY);
  // A stale receipt needs no release: the message is in other hands already.
  return { content: oneMessage(message), release: () => backend.release(queue, [message.receipt]) };
}

/** `peek`: the head, which stays. */
export async function readPeek({ backend, queue }: ReadCall): Promise<Loaded> {
  const message = await backend.peek(queue);
  return message === undefined ? whole(EMPTY) : { content: oneMessage(message) };
}

/** `size`: how many are pending. */
export async function readSize({ backend, queue }: ReadCall): Promise<Loaded> {
  return whole(encoder.encode(String((await backend.status(queue)).pending)));
}

/** `status`: both numbers of one snapshot. */
export async function readStatus({ backend, queue }: ReadCall): Promise<Loaded> {
  return whole(statusJson(await backend.status(queue)));
}

/** `.wait`: the snapshot that said "complete". */
export async function readWait({ backend, queue, whenEnded }: ReadCall): Promise<Loaded> {
  const [status] = await waitComplete(backend, { queues: [queue] }, { signal: whenEnded() });
  return whole(statusJson(status ?? { pending: 0, processing: 0 }));
}

/** `messages`: all that is unacked. */
export async function readMessages({ backend, queue }: ReadCall): Promise<Loaded> {
  return listing((after) => backend.messages(queue, after));
}

/** `.dead`: all that was given up on. */
export async function readDead({ backend, queue }: ReadCall): Promise<Loaded> {
  return listing((after) => backend.deadLetters(queue, after));
}

/** `.stats`: counts, ages and settings. */
export async function readStats({ backend, queue }: ReadCall): Promise<Loaded> {
  const { createdAtMs, settings, ...counts } = await backend.statistics(queue);
  return whole(encoder.encode(JSON.stringify({ ...counts, createdAt: formatTimestamp(createdAtMs), settings })));
}

function statusJson({ pending, processing }: Status): Uint8Array {
  return encoder.encode(JSON.stringify({ pending, processing }));
}

/** A content that is there as a whole, and claimed nothing. */
export function whole(bytes: Uint8Array): Loaded {
  return { content: new Content([bytes.slice()].values(), false) };
}

function oneMessage(message: ShownMessage): Content {
  return new Content(messageJsonChunks(message), false);
}

/** The first page is read at once, so that a missing queue is told before the first byte; the others as the reader gets there. */
async function listing(page: (after: { readonly after?: string }) => Promise<Page<ShownMessage>>): Promise<Loaded> {
  const first = await page({});
  return { content: new Content(listingChunks(first, page), true) };
}

async function* listingChunks(
  first: Page<ShownMessage>,
  page: (after: { readonly after?: string }) => Promise<Page<ShownMessage>>,
): AsyncGenerator<Uint8Array> {
  let separator = "[";
  for (let current = first; ; ) {
    let gathered = "";
    for (const message of current.items) {
      gathered += separator;
      separator = ",";
      if (message.data.byteLength <= SMALL_DATA_BYTES) {
        gathered += JSON.stringify(describeMessage(message));
      } else {
        yield encoder.encode(gathered);
        gathered = "";
        yield* messageJsonChunks(message);
      }
      if (gathered.length > CHUNK_CHARACTERS) {
        yield encoder.encode(gathered);
        gathered = "";
      }
    }
    if (gathered !== "") yield encoder.encode(gathered);
    if (current.next === undefined) break;
    current = await page({ after: current.next });
  }
  yield encoder.encode(separator === "[" ? "[]" : "]");
}
