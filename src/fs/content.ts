/** What a control file gives, read by offset although it is made piece by piece. */

import { QueueFSError } from "../core/errors.ts";
import { LISTING_KEEP_BYTES, MAX_WHOLE_LISTING_BYTES } from "../core/limits.ts";

/**
 * The content of one open file. It is drawn from its source as far as reads ask, in order, by one read at a time. A listing forgets what
 * lies far behind, so that reading a huge queue needs little memory; a message stays whole.
 */
export class Content {
  readonly #source: AsyncIterator<Uint8Array> | Iterator<Uint8Array>;
  readonly #isListing: boolean;
  readonly #chunks: Uint8Array[] = [];
  /** Where the first kept chunk begins, and where the last one ends. */
  #start = 0;
  #end = 0;
  #drained = false;
  #fault: { readonly error: unknown } | undefined;
  #turn: Promise<unknown> = Promise.resolve();

  /** @param isListing whether it may be long: kept in part only, and limited when read as a whole */
  constructor(source: AsyncIterator<Uint8Array> | Iterator<Uint8Array>, isListing: boolean) {
    this.#source = source;
    this.#isListing = isListing;
  }

  /** Up to `length` bytes from `offset`; fewer only at the end. @throws QueueFSError `unsupported` for what a listing has forgotten */
  read(offset: number, length: number): Promise<Uint8Array> {
    return this.#inTurn(async () => {
      if (offset < this.#start) {
        throw new QueueFSError(
          "unsupported",
          `a listing can be read again only up to ${LISTING_KEEP_BYTES} bytes back, and byte ${offset} lies further; open it anew`,
        );
      }
      while (this.#end - offset < length && (await this.#draw())) {
        // Each turn draws one piece.
        if (this.#isListing) this.#forget(Math.min(offset, this.#end));
      }
      const bytes = this.#copy(offset, Math.min(this.#end, offset + length));
      // A read behind the end of a listing has read no more than the end.
      if (this.#isListing) this.#forget(Math.min(offset + bytes.byteLength, this.#end));
      return bytes;
    });
  }

  /** All bytes. For a content that nobody reads by offset. @throws QueueFSError `message-too-large` for a listing beyond the limit */
  readAll(): Promise<Uint8Array> {
    return this.#inTurn(async () => {
      while (await this.#draw()) {
        if (this.#isListing && this.#end > MAX_WHOLE_LISTING_BYTES) {
          throw new QueueFSError("message-too-large", `the listing exceeds ${MAX_WHOLE_LISTING_BYTES} bytes; open it and read it in parts`);
        }
      }
      return this.#chunks.length === 1 ? (this.#chunks[0] as Uint8Array) : this.#copy(0, this.#end);
    });
  }

  /** Draws no more. */
  async end(): Promise<void> {
    await this.#inTurn(async () => {
      this.#drained = true;
      this.#chunks.length = 0;
      await this.#source.return?.();
    });
  }

  #inTurn<Result>(action: () => Promise<Result>): Promise<Result> {
    const result = this.#turn.then(action);
    this.#turn = result.catch(() => {});
    return result;
  }

  async #draw(): Promise<boolean> {
    if (this.#fault) throw this.#fault.error;
    if (this.#drained) return false;
    try {
      const step = await this.#source.next();
      if (step.done) {
        this.#drained = true;
        return false;
      }
      this.#chunks.push(step.value);
      this.#end += step.value.byteLength;
      return true;
    } catch (error) {
      // Part of the content is given out already: what follows must not look like its end.
      this.#fault = { error };
      throw error;
    }
  }

  #copy(from: number, to: number): Uint8Array {
    const bytes = new Uint8Array(Math.max(0, to - from));
    let at = this.#start;
    for (const chunk of this.#chunks) {
      if (at >= to) break;
      const part = chunk.subarray(Math.max(0, from - at), to - at);
      if (at + chunk.byteLength > from) bytes.set(part, Math.max(0, at - from));
      at += chunk.byteLength;
    }
    return bytes;
  }

  #forget(before: number): void {
    let first = this.#chunks[0];
    while (first !== undefined && this.#start + first.byteLength <= before - LISTING_KEEP_BYTES) {
      this.#start += first.byteLength;
      this.#chunks.shift();
      first = this.#chunks[0];
    }
  }
}
