/** The reading side of one open control file. */

import { closedError } from "../core/errors.ts";
import { checkInteger } from "../core/options.ts";
import { unlessAborted } from "./abort.ts";
import type { Loaded } from "./control-reads.ts";
import type { HandleRead, ReadOptions } from "./port.ts";

const FILE = "this open file";
const MAX_READ_BYTES = 2 ** 31 - 1;

/** Makes the content of one open file; see {@link ReadCall.whenEnded} for its argument. */
export type Load = (whenEnded: () => AbortSignal) => Promise<Loaded>;

/** Makes the content at the first read, keeps it, and gives back what it claimed when no byte was read. */
export class ReadSide {
  readonly #makeContent: Load;
  #ended = false;
  /** Made only for a content that waits: an abort costs more than all else of a short read. */
  #waiting: AbortController | undefined;
  #loading: Promise<Loaded> | undefined;
  #position = 0;
  #given = false;

  constructor(load: Load) {
    this.#makeContent = load;
  }

  /** See {@link FileHandle.read}. */
  async read(part: HandleRead): Promise<Uint8Array> {
    const length = checkInteger("length of a read", part.length, 0, MAX_READ_BYTES);
    const offset = checkInteger("offset of a read", part.offset ?? this.#position, 0, Number.MAX_SAFE_INTEGER);
    part.signal?.throwIfAborted();
    this.#checkOpen();
    // A read of nothing claims nothing.
    if (length === 0) return new Uint8Array(0);
    const { content } = await unlessAborted(this.#load(), part.signal);
    const bytes = await unlessAborted(content.read(offset, length), part.signal);
    this.#checkOpen();
    this.#position = offset + bytes.byteLength;
    if (bytes.byteLength > 0) this.#given = true;
    return bytes;
  }

  /** The whole content, for a handle that is read in no other way. @param onClaim see {@link ReadOptions.onClaim} */
  async readAll(signal: AbortSignal | undefined, onClaim?: ReadOptions["onClaim"]): Promise<Uint8Array> {
    signal?.throwIfAborted();
    this.#checkOpen();
    const { content, release } = await unlessAborted(this.#load(), signal);
    const bytes = await unlessAborted(content.readAll(), signal);
    this.#checkOpen();
    this.#given = true;
    if (release !== undefined) {
      onClaim?.(async () => {
        await release();
      });
    }
    return bytes;
  }

  /** Ends the side; what was claimed is released when no byte was given, or in any case with `discard`. Resolves when that is done. */
  async end(discard: boolean): Promise<void> {
    this.#ended = true;
    this.#waiting?.abort(closedError(FILE));
    if (this.#loading === undefined) return;
    let loaded: Loaded;
    try {
      loaded = await this.#loading;
    } catch {
      // Whoever read was told; nothing was claimed.
      return;
    }
    // A page of a listing may be in the air; its answer is not waited for.
    void loaded.content.end();
    if (discard || !this.#given) await loaded.release?.();
  }

  #load(): Promise<Loaded> {
    // What the first read met stays, a failure too: a claim whose outcome is unknown must not be followed by a second one.
    this.#loading ??= this.#makeContent(() => {
      this.#waiting ??= new AbortController();
      return this.#waiting.signal;
    });
    return this.#loading;
  }

  #checkOpen(): void {
    if (this.#ended) throw closedError(FILE);
  }
}
