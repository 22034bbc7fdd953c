/** Operations on tasks themselves that travel in one script call, each with its own answer (scripts/task-run.lua). */

import { ByteReader, ByteWriter } from "./bytes.ts";
import type { Lane } from "./session.ts";

/** Operations and bytes after which a call is full: keeps one script short. A single operation may be larger. */
const MOST_OPERATIONS = 100;
const MOST_BYTES = 256 * 1024;

interface Asked {
  readonly operation: Buffer;
  resolve(answer: ByteReader): void;
  reject(error: unknown): void;
}

/** Operations that wait for a lane together. */
export class TaskBatch {
  readonly #run: (lane: Lane, body: Buffer) => Promise<Buffer>;
  readonly #asked: Asked[] = [];
  #bytes = 0;
  #isSent = false;

  constructor(run: (lane: Lane, body: Buffer) => Promise<Buffer>) {
    this.#run = run;
  }

  /** Whether no operation can be added any more. */
  get isFull(): boolean {
    return this.#isSent || this.#asked.length >= MOST_OPERATIONS || this.#bytes >= MOST_BYTES;
  }

  /** Adds an operation, kind and body. Resolves with its answer. */
  add(operation: Buffer): Promise<ByteReader> {
    this.#bytes += operation.length;
    return new Promise((resolve, reject) => this.#asked.push({ operation, resolve, reject }));
  }

  async send(lane: Lane): Promise<void> {
    this.#isSent = true;
    const writer = new ByteWriter(this.#bytes + 4 * this.#asked.length);
    for (const { operation } of this.#asked) {
      writer.u32(operation.length);
      writer.bytes(operation);
    }
    const reader = new ByteReader(await this.#run(lane, writer.view()));
    for (const { resolve } of this.#asked) resolve(reader.part(reader.u32()));
  }

  reject(error: unknown): void {
    for (const one of this.#asked) one.reject(error);
  }
}
