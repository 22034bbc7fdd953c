/** The writing side of one open control file. */

import type { ControlFileName } from "../core/control-files.ts";
import { QueueFSError } from "../core/errors.ts";
import { MAX_CONTROL_TEXT_BYTES } from "../core/limits.ts";
import { checkInteger } from "../core/options.ts";
import { checkBytes, controlTextTooLong, type WriteCall, type WriteHandler } from "./control-writes.ts";
import type { WriteAnswer } from "./port.ts";
import { StagedBytes } from "./staged-bytes.ts";

/** Keeps what is written until the close, or for an eager handle until it is enough to act on. */
export class WriteSide {
  readonly #file: ControlFileName;
  readonly #handler: WriteHandler;
  readonly #call: WriteCall;
  readonly #eager: boolean;
  readonly #staged = new StagedBytes();
  #bytesWritten = 0;
  #wasWritten = false;
  #acted = false;
  #fault: { readonly error: unknown } | undefined;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(file: ControlFileName, handler: WriteHandler, call: WriteCall, eager: boolean) {
    this.#file = file;
    this.#handler = handler;
    this.#call = call;
    // A message is whole only when its writer is done.
    this.#eager = eager && handler.takes !== "message";
  }

  /** See {@link FileHandle.write}. */
  write(data: Uint8Array, offset: number | undefined): Promise<number> {
    return this.#inTurn(async () => {
      this.#stage(data, offset);
      if (this.#eager && !this.#acted && this.#isWhole()) await this.#act();
      return data.byteLength;
    });
  }

  /** See {@link FileHandle.truncate}. */
  truncate(size: number): Promise<void> {
    return this.#inTurn(async () => {
      checkInteger("size", size, 0, Number.MAX_SAFE_INTEGER);
      if (this.#handler.takes !== "message") return;
      this.#checkLimit(size);
      this.#staged.resize(size);
    });
  }

  /** Acts on what was written, if anything was. */
  finish(): Promise<WriteAnswer> {
    return this.#inTurn(async () => {
      const id = this.#wasWritten && !this.#acted ? await this.#act() : undefined;
      this.#staged.drop();
      return { bytesWritten: this.#bytesWritten, ...(id === undefined ? {} : { id }) };
    });
  }

  /** Drops what was written and has not acted. */
  async drop(): Promise<undefined> {
    await this.#turn;
    this.#staged.drop();
  }

  #stage(data: Uint8Array, offset: number | undefined): void {
    checkBytes(data);
    const at = checkInteger("offset of a write", offset ?? this.#staged.length, 0, Number.MAX_SAFE_INTEGER);
    if (this.#acted && this.#handler.takes === "text" && !isBlank(data)) {
      throw new QueueFSError("invalid-argument", `this open of ${this.#file} has acted already; open it again for the next one`);
    }
    this.#wasWritten = true;
    this.#bytesWritten += data.byteLength;
    if (this.#handler.takes === "nothing" || this.#acted) return;
    this.#checkLimit(at + data.byteLength);
    this.#staged.put(data, at);
  }

  #checkLimit(length: number): void {
    if (this.#handler.takes === "text") {
      if (length > MAX_CONTROL_TEXT_BYTES) throw controlTextTooLong(this.#file);
      return;
    }
    const limit = this.#call.backend.description.maxMessageBytes;
    if (length > limit) {
      throw new QueueFSError(
        "message-too-large",
        `a message of at least ${length} bytes exceeds the limit of ${limit}; store the content elsewhere and enqueue a reference`,
      );
    }
  }

  /** Whether what was written so far can be acted on: a text ends in white space, which no receipt or id holds. */
  #isWhole(): boolean {
    if (this.#handler.takes === "nothing") return true;
    const bytes = this.#staged.view();
    return isSpace(bytes.at(-1)) && !isBlank(bytes);
  }

  async #act(): Promise<string | undefined> {
    this.#acted = true;
    const { id } = await this.#handler.act(this.#call, this.#staged.view());
    return id;
  }

  /** One step after the other, and none after one that failed: what is written must be all or nothing. */
  #inTurn<Result>(action: () => Promise<Result>): Promise<Result> {
    const result = this.#turn.then(async () => {
      if (this.#fault) throw this.#fault.error;
      try {
        return await action();
      } catch (error) {
        this.#fault = { error };
        this.#staged.drop();
        throw error;
      }
    });
    this.#turn = result.catch(() => {});
    return result;
  }
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || (byte !== undefined && byte >= 0x09 && byte <= 0x0d);
}

function isBlank(bytes: Uint8Array): boolean {
  return bytes.every(isSpace);
}
