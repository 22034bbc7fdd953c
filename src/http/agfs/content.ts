/** The content of a file: as a whole where it is short, in parts where it may be long. */

import type { FileHandle, QueueFS } from "../../fs/index.ts";

/** Which part of a file. */
export interface Range {
  readonly offset: number;
  /** Bytes at most; absent for all. */
  readonly size?: number;
}

/** Bytes that are read at once: 1 MiB. A file that is shorter is answered as a whole. */
export const PART_BYTES = 1024 * 1024;

/**
 * Reads a file in parts, the first when it is called. What was opened is closed at the end, and let go of where it is left early.
 *
 * @throws QueueFSError whatever opening and reading end with
 */
export async function* readParts(
  files: QueueFS,
  path: string,
  { offset, size }: Range,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, undefined> {
  const handle: FileHandle = await files.open(path, { mode: "read" });
  let position = offset;
  const end = size === undefined ? Number.MAX_SAFE_INTEGER : Math.min(offset + size, Number.MAX_SAFE_INTEGER);
  try {
    while (position < end) {
      const length = Math.min(PART_BYTES, end - position);
      const bytes = await handle.read({ length, offset: position, signal });
      if (bytes.byteLength > 0) yield bytes;
      if (bytes.byteLength < length) break;
      position += bytes.byteLength;
    }
    await handle.close();
  } finally {
    // Harmless after the close.
    await handle.discard();
  }
  return undefined;
}

/**
 * The part of a file, as bytes when it is short. The first bytes are there when this resolves, so that what fails at once has its status.
 */
export async function contentOf(
  files: QueueFS,
  path: string,
  range: Range,
  signal: AbortSignal,
): Promise<Uint8Array | ReadableStream<Uint8Array>> {
  const parts = readParts(files, path, range, signal);
  const first = await parts.next();
  if (first.done) return new Uint8Array(0);
  if (first.value.byteLength < PART_BYTES) {
    await parts.next();
    return first.value;
  }
  let next: Uint8Array | undefined = first.value;
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const bytes = next ?? (await parts.next()).value;
      next = undefined;
      if (bytes === undefined) controller.close();
      else controller.enqueue(bytes);
    },
    async cancel() {
      await parts.return(undefined);
    },
  });
}
