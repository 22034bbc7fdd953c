/** What programs write: passed on as it is, in whole lines where several programs share the stream. */

const LINE_END = 10;
/** Bytes of a line that are held back until it is whole; a longer one is passed on in pieces. */
const LINE_BYTES = 64 * 1024;

/** Passes on the bytes of one stream. */
export type PassOn = (bytes: Uint8Array) => Promise<void>;

/** One stream of one program, passed on in whole lines: lines of several programs must not be mixed up within. */
export class WholeLines {
  readonly #passOn: PassOn;
  #held: Uint8Array[] = [];
  #heldBytes = 0;

  constructor(passOn: PassOn) {
    this.#passOn = passOn;
  }

  /** Takes what came; resolves when the lines that are whole with it have been handed over. */
  async write(chunk: Uint8Array): Promise<void> {
    const end = chunk.lastIndexOf(LINE_END) + 1;
    if (end === 0 && this.#heldBytes + chunk.byteLength < LINE_BYTES) {
      this.#hold(chunk);
      return;
    }
    const whole = end === 0 ? chunk.byteLength : end;
    const bytes = Buffer.concat([...this.#held, chunk.subarray(0, whole)]);
    this.#held = [];
    this.#heldBytes = 0;
    this.#hold(chunk.subarray(whole));
    await this.#passOn(bytes);
  }

  /** The stream has ended: hands over what is left of a line that was never ended. */
  async end(): Promise<void> {
    const bytes = Buffer.concat(this.#held);
    this.#held = [];
    this.#heldBytes = 0;
    if (bytes.byteLength > 0) await this.#passOn(bytes);
  }

  #hold(bytes: Uint8Array): void {
    if (bytes.byteLength === 0) return;
    this.#held.push(bytes);
    this.#heldBytes += bytes.byteLength;
  }
}

/** The two streams of one program. */
export interface ProgramOutput {
  write(stream: "stdout" | "stderr", chunk: Uint8Array): Promise<void>;
  /** The program has ended. */
  end(): Promise<void>;
}

/**
 * @param passOn where the streams go
 * @param isShared whether other programs write to the same at the same time
 */
export function programOutput(passOn: (stream: "stdout" | "stderr", bytes: Uint8Array) => Promise<void>, isShared: boolean): ProgramOutput {
  if (!isShared) return { write: passOn, end: async () => {} };
  const lines = {
    stdout: new WholeLines((bytes) => passOn("stdout", bytes)),
    stderr: new WholeLines((bytes) => passOn("stderr", bytes)),
  };
  return {
    write: (stream, chunk) => lines[stream].write(chunk),
    end: async () => {
      await lines.stdout.end();
      await lines.stderr.end();
    },
  };
}
