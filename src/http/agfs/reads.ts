/** `GET /files`: reading a file. */

import { QueueFSError, quote } from "../../core/errors.ts";
import { MAX_LONG_POLL_MS } from "../../core/limits.ts";
import type { ParsedPath } from "../../fs/index.ts";
import { needAccess } from "./access.ts";
import { bytesAnswer } from "./answers.ts";
import type { AgfsCall } from "./call.ts";
import { contentOf, type Range } from "./content.ts";
import type { FormQuery } from "./form.ts";
import type { Service } from "./service.ts";
import type { Target } from "./tree.ts";

/** How long a read that waits may still look when the server stops, in milliseconds: long enough for one look at the store. */
const LAST_LOOK_MS = 250;

/** Whether a read takes a message. */
export function takesMessage(parsed: ParsedPath): boolean {
  return parsed.kind === "control" && parsed.file === "dequeue";
}

/** Whether a read waits for something to happen. */
export function waits(parsed: ParsedPath): boolean {
  return parsed.kind === "control" ? parsed.file === ".wait" : parsed.kind === "task" && parsed.isWait;
}

/** The error for what needs a file and got a directory above the queues. */
export function directoryThere(target: Target): QueueFSError {
  return new QueueFSError("is-a-directory", `${quote(target.path)} is a directory; read and write the control files of a queue`);
}

/** Answers with the content of a file. `stream` makes no difference: what is long comes in chunks anyway. */
export async function readFile(call: AgfsCall, query: FormQuery, service: Service): Promise<Response> {
  const range = rangeOf(query);
  const target = await service.tree.target(query.needed("path"));
  needAccess(call, target, "read");
  if (target.kind === "above") throw directoryThere(target);
  if (target.kind === "readme") {
    const end = range.size === undefined ? undefined : range.offset + range.size;
    return bytesAnswer(service.tree.readme.slice(range.offset, end));
  }
  if (takesMessage(target.parsed)) return bytesAnswer(await dequeue(call, target.inner, range, service));
  if (waits(target.parsed)) return bytesAnswer(await waitFor(call, target.inner, range, service));
  return bytesAnswer(await contentOf(service.tree.files, target.inner, range, call.signal));
}

/**
 * Takes a message and gives it as a whole, whatever size is asked for: a part of it would be of no use to anybody, and the rest lost. A read of
 * no bytes, and one that goes on behind a first, take nothing and get nothing.
 */
async function dequeue(call: AgfsCall, path: string, { offset, size }: Range, { tree }: Service): Promise<Uint8Array> {
  if (offset > 0 || size === 0) {
    await tree.files.stat(path);
    return new Uint8Array(0);
  }
  return tree.files.read(path, { signal: call.signal, onClaim: (giveBack) => call.onLost(() => void giveBack().catch(() => {})) });
}

/** Reads a file that waits, as long as one request may. */
async function waitFor(call: AgfsCall, path: string, { offset, size }: Range, { tree, polls, clock }: Service): Promise<Uint8Array> {
  const bytes = await polls.run(MAX_LONG_POLL_MS, call.signal, async (waitMs, ended) => {
    const over = new AbortController();
    const onEnd = (): void => over.abort(ended.reason);
    const timer = clock.setTimer(
      () => over.abort(new QueueFSError("timed-out", `what ${quote(path)} waits for did not happen yet; read it again`)),
      Math.max(waitMs, LAST_LOOK_MS),
    );
    ended.addEventListener("abort", onEnd);
    if (ended.aborted) onEnd();
    try {
      return await tree.files.read(path, { signal: over.signal });
    } finally {
      timer.cancel();
      ended.removeEventListener("abort", onEnd);
    }
  });
  return bytes.slice(offset, size === undefined ? undefined : offset + size);
}

/** The part that is asked for; a negative size means all, as in the SDKs. @throws QueueFSError `invalid-argument` */
function rangeOf(query: FormQuery): Range {
  const offset = query.integer("offset") ?? 0;
  const size = query.integer("size");
  if (offset < 0) throw new QueueFSError("invalid-argument", `invalid offset parameter: it must not be negative, got ${offset}`);
  return size === undefined || size < 0 ? { offset } : { offset, size };
}
