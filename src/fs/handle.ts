/** One open control file. */

import { closedError, QueueFSError, quote } from "../core/errors.ts";
import type { FileHandle, HandleRead, WriteAnswer } from "./port.ts";
import type { ReadSide } from "./read-side.ts";
import type { WriteSide } from "./write-side.ts";

/** The two sides of an open file, each there if the file was opened that way. */
export class OpenFile implements FileHandle {
  readonly #shown: string;
  readonly #reading: ReadSide | undefined;
  readonly #writing: WriteSide | undefined;
  readonly #onEnd: (file: OpenFile) => void;
  #ended: Promise<WriteAnswer> | undefined;

  /** @param onEnd called once, when the handle is closed or discarded and that is done */
  constructor(shown: string, reading: ReadSide | undefined, writing: WriteSide | undefined, onEnd: (file: OpenFile) => void) {
    this.#shown = shown;
    this.#reading = reading;
    this.#writing = writing;
    this.#onEnd = onEnd;
  }

  /** See {@link FileHandle.read}. */
  async read(part: HandleRead): Promise<Uint8Array> {
    this.#checkOpen();
    if (this.#reading === undefined)
      throw new QueueFSError("wrong-mode", `permission denied: ${quote(this.#shown)} is not open for reading`);
    return this.#reading.read(part);
  }

  /** See {@link FileHandle.write}. */
  async write(data: Uint8Array, offset?: number): Promise<number> {
    return this.#writable().write(data, offset);
  }

  /** See {@link FileHandle.truncate}. */
  async truncate(size: number): Promise<void> {
    return this.#writable().truncate(size);
  }

  /** See {@link FileHandle.close}. */
  close(): Promise<WriteAnswer> {
    this.#ended ??= this.#end(false);
    return this.#ended;
  }

  /** See {@link FileHandle.discard}. */
  async discard(): Promise<void> {
    if (this.#ended === undefined) {
      this.#ended = this.#end(true);
      await this.#ended;
    } else {
      // Whoever ended it first was told how that went.
      await this.#ended.catch(() => {});
    }
  }

  async #end(discard: boolean): Promise<WriteAnswer> {
    try {
      const [answer] = await Promise.all([discard ? this.#writing?.drop() : this.#writing?.finish(), this.#reading?.end(discard)]);
      return answer ?? { bytesWritten: 0 };
    } finally {
      this.#onEnd(this);
    }
  }

  #writable(): WriteSide {
    this.#checkOpen();
    if (this.#writing === undefined)
      throw new QueueFSError("wrong-mode", `permission denied: ${quote(this.#shown)} is not open for writing`);
    return this.#writing;
  }

  #checkOpen(): void {
    if (this.#ended !== undefined) throw closedError(`open file ${quote(this.#shown)}`);
  }
}
