/** `POST /digest`: a checksum of the content of a file, which takes no message. */

import { QueueFSError, quote } from "../../core/errors.ts";
import { needAccess } from "./access.ts";
import { jsonAnswer } from "./answers.ts";
import type { AgfsCall } from "./call.ts";
import { readParts } from "./content.ts";
import type { FormQuery } from "./form.ts";
import { jsonBody, neededText } from "./json-body.ts";
import { directoryThere, takesMessage, waits } from "./reads.ts";
import type { Service } from "./service.ts";

/** Hexadecimal digits of a checksum that AGFS calls xxh3: the lower half of the 128 bits. */
const XXH3_DIGITS = 16;

/** Answers with a checksum. */
export async function digest(call: AgfsCall, _query: FormQuery, { tree }: Service): Promise<Response> {
  const body = await jsonBody(call);
  const { algorithm } = body;
  if (algorithm !== "md5" && algorithm !== "xxh3")
    throw new QueueFSError("invalid-argument", `unsupported algorithm: ${quote(algorithm)} (supported: xxh3, md5)`);
  const path = neededText(body, "path");
  const target = await tree.target(path);
  needAccess(call, target, "read");
  if (target.kind === "above") throw directoryThere(target);
  if (target.kind === "inside" && (takesMessage(target.parsed) || waits(target.parsed)))
    throw new QueueFSError(
      "wrong-mode",
      `permission denied: a checksum of ${quote(target.path)} would take a message, or wait; read it instead`,
    );
  const hash = await hasher(algorithm);
  if (target.kind === "readme") hash.update(tree.readme);
  else for await (const part of readParts(tree.files, target.inner, { offset: 0 }, call.signal)) hash.update(part);
  const hex = hash.digest("hex");
  return jsonAnswer({ algorithm, path, digest: algorithm === "xxh3" ? hex.slice(-XXH3_DIGITS) : hex });
}

async function hasher(algorithm: "md5" | "xxh3"): Promise<{ update(data: Uint8Array): unknown; digest(format: "hex"): string }> {
  // Compiled only where somebody asks for a checksum.
  const { createMD5, createXXHash128 } = await import("hash-wasm");
  const hash = await (algorithm === "md5" ? createMD5() : createXXHash128());
  return hash.init();
}
