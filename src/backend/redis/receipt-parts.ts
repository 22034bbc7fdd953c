/** Ack, nack, release and extend, as parts of script calls. */

import type { AckAnswer, AckItem, EnqueueAnswer, ExtendItem, NackAnswer, NackItem, ReleaseAnswer } from "../../core/message.ts";
import { type MessageId, placeOfMessageId, type QueueName, type Receipt, type TaskId } from "../../core/names.ts";
import { storableReason } from "../../core/request.ts";
import type { ByteReader, ByteWriter } from "./bytes.ts";
import { encodeSpecial, ownersOf, readSpecial, type SpecialBody, writeTasks } from "./enqueue-part.ts";
import { KIND, type OperationState, Part } from "./part.ts";
import { type Delivery, deliveryOf } from "./receipt.ts";
import type { QueueLife } from "./registry.ts";

const GIVE_UP = 1;
const RELEASE = 2;
const KEEP_REASON = 4;

type Place = Delivery | undefined;

/** What all parts that name deliveries by receipt have in common. */
abstract class ReceiptPart<Answer> extends Part<Answer[]> {
  readonly items: number;
  readonly #places: readonly Place[];
  readonly #answers: readonly Answer[];

  /** @param answers what the numbers mean that the script answers with */
  constructor(name: QueueName, receipts: readonly Receipt[], answers: readonly Answer[]) {
    super(name);
    this.#places = receipts.map(deliveryOf);
    this.#answers = answers;
    this.items = receipts.length;
  }

  override isNewerThan(life: QueueLife): boolean {
    return this.#places.some((place) => place !== undefined && place.slot > life.life);
  }

  override get hasTask(): boolean {
    return this.#places.some((place) => place !== undefined && place.task > 0);
  }

  /** Writes what follows the receipt of one item. */
  protected writeItem(_writer: ByteWriter, _index: number): void {}

  write(writer: ByteWriter, life: QueueLife): void {
    for (let index = 0; index < this.items; index += 1) {
      writePlace(writer, this.#places[index], life);
      this.writeItem(writer, index);
    }
  }

  read(reader: ByteReader): Answer[] {
    const answers: Answer[] = [];
    for (let index = 0; index < this.items; index += 1) answers.push(this.#answers[reader.u8()] as Answer);
    return answers;
  }
}

// A receipt of another queue or life is asked for as a place that no message has: the server still says whether the queue exists.
function writePlace(writer: ByteWriter, place: Place, life: QueueLife): void {
  if (place === undefined || place.slot !== life.life || place.sequence >= 2 ** 48 || place.token >= 2 ** 48 || place.token === 0) {
    writer.u48(0);
    writer.u48(0);
    writer.u48(0);
  } else {
    writer.u48(place.sequence);
    writer.u48(place.token);
    writer.u48(place.task < 2 ** 48 ? place.task : 0);
  }
}

const ACK_ANSWERS: readonly AckAnswer[] = [{ outcome: "stale" }, { outcome: "acked", forwarded: [] }];

/** Acks that forward nothing. */
export class AckPart extends ReceiptPart<AckAnswer> {
  readonly kind = KIND.ack;

  constructor(name: QueueName, items: readonly AckItem[]) {
    super(
      name,
      items.map((item) => item.receipt),
      ACK_ANSWERS,
    );
  }

  override read(reader: ByteReader): AckAnswer[] {
    // Answers are the caller's own.
    return super.read(reader).map((answer) => ({ ...answer }));
  }
}

interface FailureNote {
  readonly flags: number;
  readonly delayMs: number;
  readonly reason: string;
}

/** Nacks. */
export class NackPart extends ReceiptPart<NackAnswer> {
  readonly kind = KIND.giveBack;
  readonly #rest: readonly FailureNote[];

  constructor(name: QueueName, items: readonly NackItem[]) {
    super(
      name,
      items.map((item) => item.receipt),
      ["stale", "pending", "dead", "cancelled"],
    );
    this.#rest = items.map((item) => ({
      flags: (item.giveUp === true ? GIVE_UP : 0) + (storableReason(item.reason) === "" ? KEEP_REASON : 0),
      delayMs: item.delayMs ?? 0,
      reason: storableReason(item.reason),
    }));
  }

  protected override writeItem(writer: ByteWriter, index: number): void {
    const { flags, delayMs, reason } = this.#rest[index] as FailureNote;
    writer.u8(flags);
    writer.u48(delayMs);
    const lengthAt = writer.length;
    writer.u16(0);
    writer.setU16(lengthAt, writer.text(reason));
  }
}

/** Releases. */
export class ReleasePart extends ReceiptPart<ReleaseAnswer> {
  readonly kind = KIND.giveBack;

  constructor(name: QueueName, receipts: readonly Receipt[]) {
    // A release never leads to the dead letters.
    super(name, receipts, ["stale", "released", "stale", "cancelled"]);
  }

  protected override writeItem(writer: ByteWriter): void {
    writer.u8(RELEASE + KEEP_REASON);
    writer.u48(0);
    writer.u16(0);
  }
}

/** Extensions of leases. */
export class ExtendPart extends ReceiptPart<"extended" | "stale"> {
  readonly kind = KIND.extend;
  readonly #leases: readonly number[];

  constructor(name: QueueName, items: readonly ExtendItem[]) {
    super(
      name,
      items.map((item) => item.receipt),
      ["stale", "extended"],
    );
    this.#leases = items.map((item) => item.leaseMs);
  }

  protected override writeItem(writer: ByteWriter, index: number): void {
    writer.u32(this.#leases[index] as number);
  }
}

/** Operations on messages by id: ack of those in processing, redrive and drop of dead letters. */
export class IdPart<Answer> extends Part<Answer[]> {
  readonly kind: number;
  readonly items: number;
  readonly #ids: readonly MessageId[];
  readonly #answers: readonly [Answer, Answer];

  /** @param answers what 0 and 1 mean */
  constructor(kind: number, name: QueueName, ids: readonly MessageId[], answers: readonly [Answer, Answer]) {
    super(name);
    this.kind = kind;
    this.#ids = [...ids];
    this.#answers = answers;
    this.items = ids.length;
  }

  override isNewerThan(life: QueueLife): boolean {
    return this.#ids.some((id) => (placeOfMessageId(life.store, id)?.slot ?? 0) > life.life);
  }

  write(writer: ByteWriter, life: QueueLife): void {
    for (const id of this.#ids) {
      const lengthAt = writer.length;
      writer.u8(0);
      if (id.startsWith("m-")) {
        const place = placeOfMessageId(life.store, id);
        writer.u48(place !== undefined && place.slot === life.life && place.sequence < 2 ** 48 ? place.sequence : 0);
      } else {
        writer.setU8(lengthAt, writer.text(id));
      }
    }
  }

  read(reader: ByteReader): Answer[] {
    return this.#ids.map(() => this.#answers[reader.u8() === 1 ? 1 : 0]);
  }
}

/** Acks of which some forward. */
export class ForwardPart extends Part<AckAnswer[]> {
  readonly kind = KIND.forward;
  override readonly isAlone = true;
  override readonly weight: number;
  readonly items: number;
  readonly #items: readonly { readonly place: Place; readonly forward: readonly SpecialBody[] }[];
  readonly #tasks: ReadonlySet<TaskId>;
  override readonly targets = new Map<QueueName, QueueLife | undefined>();

  constructor(name: QueueName, items: readonly AckItem[]) {
    super(name);
    this.#items = items.map((item) => ({
      place: deliveryOf(item.receipt),
      forward: (item.forward ?? []).map((one) => encodeSpecial(one.queue, one.messages)),
    }));
    for (const item of this.#items) for (const one of item.forward) this.targets.set(one.queue, undefined);
    this.#tasks = ownersOf(items.flatMap((item) => (item.forward ?? []).flatMap((one) => one.messages)));
    this.items = items.length;
    this.weight = this.#items.reduce((sum, { forward }) => sum + forward.reduce((of, { bytes }) => of + bytes.length, 0), 0);
  }

  override isNewerThan(life: QueueLife): boolean {
    return this.#items.some(({ place }) => place !== undefined && place.slot > life.life);
  }

  write(writer: ByteWriter, life: QueueLife, state: OperationState): void {
    writer.u16(this.targets.size);
    for (const target of this.targets.values()) writer.u16(state.groupOf(target as QueueLife));
    writeTasks(writer, this.#tasks);
    for (const { place, forward } of this.#items) {
      writePlace(writer, place, life);
      writer.u16(forward.length);
      for (const { queue, bytes } of forward) {
        writer.u16(state.groupOf(this.targets.get(queue) as QueueLife));
        writer.u32(bytes.length);
        writer.bytes(bytes);
      }
    }
  }

  read(reader: ByteReader, _life: QueueLife, state: OperationState): AckAnswer[] {
    return this.#items.map(({ forward }): AckAnswer => {
      if (reader.u8() === 0) return { outcome: "stale" };
      const forwarded = forward.map(({ queue, ids }): EnqueueAnswer[] => {
        const answer = reader.part(reader.u32());
        answer.u8();
        state.next = answer.u48();
        return readSpecial(answer, ids, this.targets.get(queue) as QueueLife, state);
      });
      return { outcome: "acked", forwarded };
    });
  }
}
