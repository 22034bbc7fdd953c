/** The bytes written to an open file, before they act. */

/** Bytes put together by offset, in memory that doubles as it fills. */
export class StagedBytes {
  #buffer = new Uint8Array(0);
  #length = 0;

  /** How many bytes there are. */
  get length(): number {
    return this.#length;
  }

  /** Puts `data` at `offset`; a gap before it is filled with zeros. No data leave no gap either. */
  put(data: Uint8Array, offset: number): void {
    if (data.byteLength === 0) return;
    const end = offset + data.byteLength;
    this.#reserve(end);
    this.#buffer.set(data, offset);
    this.#length = Math.max(this.#length, end);
  }

  /** Shortens, or lengthens with zeros. */
  resize(length: number): void {
    this.#reserve(length);
    // Bytes beyond the length are zero, always.
    if (length < this.#length) this.#buffer.fill(0, length, this.#length);
    this.#length = length;
  }

  /** All bytes; a view, valid until the next change. */
  view(): Uint8Array {
    return this.#buffer.subarray(0, this.#length);
  }

  /** Lets go of the memory. */
  drop(): void {
    this.#buffer = new Uint8Array(0);
    this.#length = 0;
  }

  #reserve(length: number): void {
    if (length <= this.#buffer.byteLength) return;
    const larger = new Uint8Array(Math.max(length, Math.min(this.#buffer.byteLength * 2, this.#buffer.byteLength + 64 * 1024 * 1024), 256));
    larger.set(this.view());
    this.#buffer = larger;
  }
}
