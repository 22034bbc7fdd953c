/** Enqueue, as a part of a script call. */

import { createHash } from "node:crypto";
import type { EnqueueAnswer, NewMessage } from "../../core/message.ts";
import type { MessageId, QueueName } from "../../core/names.ts";
import { type ByteReader, ByteWriter } from "./bytes.ts";
import { KIND, type OperationState, Part } from "./part.ts";
import type { QueueLife } from "./registry.ts";

const OUTCOMES = ["enqueued", "repeated", "conflict"] as const;
/** Bytes that the server puts before each message. */
const HEAD_BYTES = 13;
const NO_FINGERPRINT = Buffer.alloc(20);

/** What tells the bytes of a message with a chosen id from others. */
function fingerprintOf(data: Uint8Array): Buffer {
  return createHash("sha256").update(data).digest().subarray(0, NO_FINGERPRINT.length);
}

/** Writes messages with everything they may have: chosen ids and delays. Answers with the bytes of the largest. */
export function writeSpecial(writer: ByteWriter, messages: readonly NewMessage[]): number {
  let largest = 0;
  for (const { id, data, delayMs = 0 } of messages) {
    writer.u8(id === undefined ? 0 : 1);
    writer.u48(delayMs);
    writer.bytes(id === undefined ? NO_FINGERPRINT : fingerprintOf(data));
    const lengthAt = writer.length;
    writer.u32(0);
    if (id === undefined) {
      writer.u8(0);
    } else {
      writer.u8(1);
      const idAt = writer.length;
      writer.u8(0);
      writer.setU8(idAt, writer.text(id));
    }
    writer.bytes(data);
    const length = writer.length - lengthAt - 4;
    writer.setU32(lengthAt, length);
    largest = Math.max(largest, length + HEAD_BYTES);
  }
  return largest;
}

/** Reads the answers of messages that were written with {@link writeSpecial}. */
export function readSpecial(
  reader: ByteReader,
  ids: readonly (MessageId | undefined)[],
  life: QueueLife,
  state: OperationState,
): EnqueueAnswer[] {
  return ids.map((id) => {
    const outcome = OUTCOMES[reader.u8()] ?? "conflict";
    const made = outcome === "enqueued" ? makeId(life, state.next++) : undefined;
    return { outcome, id: id ?? (made as MessageId) };
  });
}

function makeId(life: QueueLife, sequence: number): MessageId {
  return (life.idPrefix + sequence.toString(36)) as MessageId;
}

/** One enqueue. */
export class EnqueuePart extends Part<EnqueueAnswer[]> {
  readonly kind: number;
  readonly items: number;
  override readonly weight: number;
  /** Chosen ids; absent when no message has one. */
  readonly #ids: readonly (MessageId | undefined)[] | undefined;
  #messages: readonly NewMessage[];
  #written: Buffer | undefined;
  #largest = 0;

  constructor(name: QueueName, messages: readonly NewMessage[]) {
    super(name);
    this.#messages = messages;
    this.items = messages.length;
    let weight = 0;
    for (const { data } of messages) weight += data.length;
    this.weight = weight;
    const isSpecial = messages.some((message) => message.id !== undefined || (message.delayMs ?? 0) > 0);
    this.kind = isSpecial ? KIND.enqueueSpecial : KIND.enqueue;
    this.#ids = isSpecial ? messages.map((message) => message.id) : undefined;
  }

  #encode(writer: ByteWriter): void {
    if (this.#ids !== undefined) {
      this.#largest = writeSpecial(writer, this.#messages);
    } else {
      for (const { data } of this.#messages) {
        writer.u32(data.length + 1);
        writer.u8(0);
        writer.bytes(data);
        if (data.length + 1 + HEAD_BYTES > this.#largest) this.#largest = data.length + 1 + HEAD_BYTES;
      }
    }
    this.#messages = [];
  }

  write(writer: ByteWriter, _life: QueueLife, state: OperationState): void {
    if (this.#written === undefined) this.#encode(writer);
    else writer.bytes(this.#written);
    if (this.#largest > state.largest) state.largest = this.#largest;
  }

  override detach(): void {
    if (this.#written !== undefined) return;
    const writer = new ByteWriter();
    this.#encode(writer);
    this.#written = writer.view();
  }

  override keep(written: Buffer): void {
    this.#written = written;
  }

  read(reader: ByteReader, life: QueueLife, state: OperationState): EnqueueAnswer[] {
    if (this.#ids !== undefined) return readSpecial(reader, this.#ids, life, state);
    const answers: EnqueueAnswer[] = [];
    for (let index = 0; index < this.items; index += 1) answers.push({ outcome: "enqueued", id: makeId(life, state.next++) });
    return answers;
  }
}
