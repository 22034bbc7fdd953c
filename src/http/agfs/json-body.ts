/** Bodies that are JSON objects. */

import { QueueFSError } from "../../core/errors.ts";
import { parseJson } from "../../core/wire-bytes.ts";
import { bodyText } from "../body.ts";
import { asObject } from "../route.ts";
import type { AgfsCall } from "./call.ts";

/** The body as an object, whatever type it says it has; properties that nobody asks for are left alone. @throws QueueFSError `invalid-argument` */
export async function jsonBody(call: Pick<AgfsCall, "bytes">): Promise<Record<string, unknown>> {
  const bytes = await call.bytes();
  if (bytes.byteLength === 0) throw new QueueFSError("invalid-argument", "invalid request body: a JSON object is required");
  return asObject("the body", parseJson(bodyText(bytes)));
}

/** A text that must be there and not be empty. @throws QueueFSError `invalid-argument` */
export function neededText(body: Record<string, unknown>, name: string): string {
  const value = body[name];
  if (typeof value === "string" && value !== "") return value;
  throw new QueueFSError("invalid-argument", `${name} is required`);
}
