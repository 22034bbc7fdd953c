/** Writing to standard output: in order, with backpressure, and quiet when the reader has gone. */

import { visibleJson, visibleLines } from "./visible.ts";

/** The reader of standard output has closed it (EPIPE); the command ends without a word. */
export class OutputClosedError extends Error {
  override readonly name = "OutputClosedError";
}

/** Standard output cannot be written, for another reason: its disk is full, say. */
export class OutputFailedError extends Error {
  override readonly name = "OutputFailedError";
}

/** What an error of the stream means. */
function outputError(error: NodeJS.ErrnoException): OutputClosedError | OutputFailedError {
  if (error.code === "EPIPE" || error.code === "ERR_STREAM_DESTROYED")
    return new OutputClosedError("standard output was closed by its reader", { cause: error });
  return new OutputFailedError(`standard output cannot be written (${error.code ?? error.message})`, { cause: error });
}

const FLUSH_BYTES = 64 * 1024;
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
const encoder = new TextEncoder();

/** Standard output of one command. Nothing is sure to have been handed over before {@link Output.flush} has resolved. */
export class Output {
  /** Whether a terminal shows what is written. */
  readonly isTerminal: boolean;
  readonly #stream: NodeJS.WriteStream;
  #parts: Uint8Array[] = [];
  #bytes = 0;
  #failure: Error | undefined;
  /** Of {@link Output.bytes} on a terminal: holds the start of a character between two pieces. */
  readonly #pieces = new TextDecoder("utf-8", { ignoreBOM: true });

  constructor(stream: NodeJS.WriteStream) {
    this.#stream = stream;
    this.isTerminal = stream.isTTY === true;
    stream.on("error", (error: NodeJS.ErrnoException) => {
      this.#failure ??= outputError(error);
    });
  }

  /** Columns of the terminal; 100 where there is none. */
  get columns(): number {
    return this.#stream.columns ?? 100;
  }

  /** Rows of the terminal; 25 where there is none. */
  get rows(): number {
    return this.#stream.rows ?? 25;
  }

  /** Writes text and a line end. */
  async line(text: string): Promise<void> {
    await this.text(`${text}\n`);
  }

  /** Writes text as it is. */
  async text(text: string): Promise<void> {
    await this.#add(encoder.encode(text));
  }

  /** Writes JSON text given in pieces that end between characters, and a line end. */
  async json(pieces: Iterable<Uint8Array>): Promise<void> {
    for (const piece of pieces) await this.#add(this.isTerminal ? encoder.encode(visibleJson(decoder.decode(piece))) : piece);
    await this.#add(encoder.encode("\n"));
  }

  /** Writes bytes that are not ours: exactly as they are into a pipe or file, with what would steer it escaped on a terminal. */
  async bytes(bytes: Uint8Array): Promise<void> {
    await this.#add(this.isTerminal ? encoder.encode(visibleLines(this.#pieces.decode(bytes, { stream: true }))) : bytes);
  }

  /**
   * Writes bytes as they are, terminal or not: those of programs that the person at the terminal has started. Resolves when they have been
   * handed over, and may be called again meanwhile.
   *
   * @throws OutputClosedError, OutputFailedError
   */
  async raw(bytes: Uint8Array): Promise<void> {
    await this.flush();
    await this.#write(bytes);
  }

  async #add(bytes: Uint8Array): Promise<void> {
    if (this.#failure) throw this.#failure;
    this.#parts.push(bytes);
    this.#bytes += bytes.byteLength;
    if (this.#bytes >= FLUSH_BYTES) await this.flush();
  }

  /**
   * Resolves when all that was written has been handed to the reader's pipe, file or terminal.
   *
   * @throws OutputClosedError when the reader has gone
   * @throws OutputFailedError
   */
  async flush(): Promise<void> {
    if (this.#failure) throw this.#failure;
    const parts = this.#parts;
    this.#parts = [];
    this.#bytes = 0;
    if (parts.length > 0) await this.#write(Buffer.concat(parts));
  }

  async #write(bytes: Uint8Array): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#stream.write(bytes, (error) => {
        if (error) reject(outputError(error));
        else resolve();
      });
    });
  }
}
