/** `GET /stat` and `GET /directories`: looking, without any effect. */

import { needAccess } from "./access.ts";
import { jsonAnswer } from "./answers.ts";
import type { AgfsCall } from "./call.ts";
import type { FormQuery } from "./form.ts";
import type { Service } from "./service.ts";

/** What is known of a file or directory. */
export async function stat(call: AgfsCall, query: FormQuery, { tree }: Service): Promise<Response> {
  const target = await tree.target(query.needed("path"));
  needAccess(call, target, "stat");
  return jsonAnswer(await tree.stat(target));
}

/** What is in a directory, `/` unless told otherwise. */
export async function list(call: AgfsCall, query: FormQuery, { tree }: Service): Promise<Response> {
  const target = await tree.target(query.text("path") ?? "/");
  needAccess(call, target, "list");
  return jsonAnswer({ files: await tree.list(target) });
}
