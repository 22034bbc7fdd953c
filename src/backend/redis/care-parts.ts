/** The rarer operations on one queue, as parts of script calls. */

import type { Cleared, QueueSettings } from "../../core/message.ts";
import type { QueueName } from "../../core/names.ts";
import type { ByteReader, ByteWriter } from "./bytes.ts";
import { KIND, Part } from "./part.ts";

const UNCHANGED = 0xffff_ffff;

/** Removes all unacked messages. */
export class ClearPart extends Part<Cleared> {
  readonly kind = KIND.clear;
  readonly items = 1;

  write(): void {}

  read(reader: ByteReader): Cleared {
    return { pending: reader.u48(), processing: reader.u48() };
  }
}

/** Changes settings. */
export class ConfigurePart extends Part<QueueSettings> {
  readonly kind = KIND.configure;
  readonly items = 1;
  readonly #settings: Partial<QueueSettings>;

  constructor(name: QueueName, settings: Partial<QueueSettings>) {
    super(name);
    this.#settings = settings;
  }

  write(writer: ByteWriter): void {
    writer.u32(this.#settings.maxDeliveries ?? UNCHANGED);
  }

  read(reader: ByteReader): QueueSettings {
    return { maxDeliveries: reader.u32() };
  }
}
