/** The file face over every kind of store, and what its tests have in common. */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect } from "vitest";
import type { Backend } from "../../src/backend/contract.ts";
import { type ErrorCode, isQueueFSError, type QueueFSError } from "../../src/core/errors.ts";
import { parseQueueName } from "../../src/core/names.ts";
import { type FileHandle, QueueFS } from "../../src/fs/index.ts";
import { type OpenStore, STORES } from "./stores.ts";

/** The queue that every case finds, empty. */
export const QUEUE = parseQueueName("q");

/** A message as a read of `dequeue` gives it. */
export interface Taken {
  readonly id: string;
  readonly data: string;
  readonly receipt: string;
  readonly timestamp: string;
  readonly deliveries: number;
}

/** What a case works with: new for each case, so to be asked anew in each. */
export interface FileFace {
  readonly fs: QueueFS;
  readonly backend: Backend;
  /** The content of a file as text. */
  text(path: string): Promise<string>;
  /** The content of a file as JSON. */
  json<Shape>(path: string): Promise<Shape>;
  /** Writes a text. */
  put(path: string, content: string): Promise<unknown>;
  /** Takes a message of the queue at `path`, `/q` unless given. */
  take(path?: string): Promise<Taken>;
}

/** Runs cases over every kind of store, each case on an empty one with the queue `/q`. */
export function overEveryStore(subject: string, cases: (face: FileFace) => void): void {
  describe.each(STORES)(`${subject} over $name`, (kind) => {
    let store: OpenStore;
    let fs: QueueFS;

    beforeAll(() => kind.begin());
    afterAll(() => kind.end());

    beforeEach(async () => {
      store = await kind.open();
      fs = new QueueFS(store.backend);
      expect(await fs.mkdir("/q")).toBe("created");
    });

    afterEach(async () => {
      await fs.close();
      await store.close();
    });

    const text = async (path: string): Promise<string> =>
      new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(await fs.read(path));
    const json = async <Shape>(path: string): Promise<Shape> => JSON.parse(await text(path)) as Shape;
    cases({
      get fs() {
        return fs;
      },
      get backend() {
        return store.backend;
      },
      text,
      json,
      put: (path, content) => fs.write(path, utf8(content)),
      take: (path = "/q") => json<Taken>(`${path}/dequeue`),
    });
  });
}

/** Text as bytes. */
export function utf8(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** All of an open file, read `length` bytes at a time. */
export async function readInParts(handle: FileHandle, length: number): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for (;;) {
    const part = await handle.read({ length, offset: parts.reduce((sum, one) => sum + one.byteLength, 0) });
    if (part.byteLength === 0) return Buffer.concat(parts);
    parts.push(part);
  }
}

/** Fails unless `action` is refused with this code; returns the error. */
export async function refusal(code: ErrorCode, action: Promise<unknown>): Promise<QueueFSError> {
  const outcome: unknown = await action.then(
    (answer) => ({ answer }),
    (error: unknown) => error,
  );
  if (!isQueueFSError(outcome))
    expect.fail(`refused as ${code}, but it ended with ${outcome instanceof Error ? outcome.stack : JSON.stringify(outcome)}`);
  expect(`${outcome.code}: ${outcome.message}`).toMatch(new RegExp(`^${code}: `));
  return outcome;
}
