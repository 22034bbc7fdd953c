/** What changes something: writing a file, making, removing, shortening and touching. */

import { isQueueFSError, QueueFSError, quote } from "../../core/errors.ts";
import { parseNewDirectory } from "../../fs/index.ts";
import { isJsonType } from "../body.ts";
import { needAccess } from "./access.ts";
import { jsonAnswer } from "./answers.ts";
import type { AgfsCall } from "./call.ts";
import type { FormQuery } from "./form.ts";
import { jsonBody } from "./json-body.ts";
import { directoryThere } from "./reads.ts";
import type { Service } from "./service.ts";
import type { Target } from "./tree.ts";

/** `PUT /files`: the body as it is, whatever type it says it has: the Go SDK says JSON. */
export async function writeFile(call: AgfsCall, query: FormQuery, service: Service): Promise<Response> {
  const target = await service.tree.target(query.needed("path"));
  needAccess(call, target, "write");
  return write(target, await call.bytes(), service);
}

/** `POST /write`, for people: the body as it is, or `{"data": text}` when it is said to be JSON. */
export async function writeAlias(call: AgfsCall, query: FormQuery, service: Service): Promise<Response> {
  const target = await service.tree.target(query.needed("path"));
  needAccess(call, target, "write");
  if (!isJsonType(call.contentType)) return write(target, await call.bytes(), service);
  const { data } = await jsonBody(call);
  if (typeof data !== "string") throw new QueueFSError("invalid-argument", `"data" of the body must be a text, got ${quote(data)}`);
  return write(target, new TextEncoder().encode(data), service);
}

async function write(target: Target, data: Uint8Array, { tree }: Service): Promise<Response> {
  if (target.kind === "above") throw directoryThere(target);
  if (target.kind === "readme") throw readOnly(target);
  const isAck = target.parsed.kind === "control" && target.parsed.file === "ack";
  // In the words of upstream, which NamedQueue takes for an id; the id itself stands beside them.
  const message = `Written ${data.byteLength} bytes`;
  try {
    const { id } = await tree.files.write(target.inner, data);
    return jsonAnswer({ message, ...(id === undefined ? {} : { id }), ...(isAck ? { acked: true } : {}) });
  } catch (error) {
    // Clients repeat a write whose answer was lost: a second ack is no failure to them.
    if (isAck && isQueueFSError(error, "not-in-processing")) return jsonAnswer({ message, acked: false, detail: error.message });
    throw error;
  }
}

/** `POST /files`: control files are always there; others cannot be made. */
export async function createFile(call: AgfsCall, query: FormQuery, service: Service): Promise<Response> {
  const target = await service.tree.target(query.needed("path"));
  needAccess(call, target, "write");
  if ((await service.tree.stat(target)).isDir) throw directoryThere(target);
  return jsonAnswer({ message: "file created" }, 201);
}

/** `POST /directories`: makes a queue. One that is there already is no error: that is how NamedQueue begins. */
export async function makeDirectory(call: AgfsCall, query: FormQuery, { tree }: Service): Promise<Response> {
  const place = tree.mount.place(query.needed("path"));
  call.caller.needWrite();
  const queue = place.kind === "inside" ? parseNewDirectory(place.inner) : undefined;
  if (place.kind === "inside" && queue !== undefined) {
    call.caller.needQueue(queue);
    await tree.files.mkdir(place.inner);
  }
  return jsonAnswer({ message: "directory created" }, 201);
}

/**
 * `DELETE`: removes a queue, with `recursive` whatever is in it and under it; without, only one that is complete, as `rmdir` removes empty
 * directories only.
 */
export async function remove(call: AgfsCall, query: FormQuery, { tree }: Service): Promise<Response> {
  const target = await tree.target(query.needed("path"));
  needAccess(call, target, "write");
  if (target.kind === "readme") throw readOnly(target);
  if (target.kind === "above" || target.parsed.kind === "root")
    throw new QueueFSError("wrong-mode", `permission denied: ${quote(target.path)} cannot be removed; remove the queues in it by name`);
  const recursive = query.text("recursive") === "true";
  await tree.files.rm(target.inner, { recursive, onlyComplete: !recursive && target.parsed.kind === "directory" });
  return jsonAnswer({ message: "deleted" });
}

/** `POST /truncate`: has no effect, and succeeds where writing does: agfs-fuse sends it for each `>` of a shell. */
export async function truncate(call: AgfsCall, query: FormQuery, { tree }: Service): Promise<Response> {
  query.needed("size");
  const size = query.integer("size") ?? 0;
  const target = await tree.target(query.needed("path"));
  needAccess(call, target, "write");
  if (target.kind === "above") throw directoryThere(target);
  if (target.kind === "readme") throw readOnly(target);
  await tree.files.truncate(target.inner, size);
  return jsonAnswer({ message: "truncated" });
}

/** `POST /touch`: has no effect; above all it takes no message and stores none. */
export async function touch(call: AgfsCall, query: FormQuery, { tree }: Service): Promise<Response> {
  const target = await tree.target(query.needed("path"));
  needAccess(call, target, "stat");
  await tree.stat(target);
  return jsonAnswer({ message: "touched" });
}

function readOnly({ path }: Target): QueueFSError {
  return new QueueFSError("wrong-mode", `permission denied: ${quote(path)} can only be read`);
}
