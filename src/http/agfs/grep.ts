/** `POST /grep`: a search for a regular expression in files, which takes no message. */

import { QueueFSError, quote } from "../../core/errors.ts";
import { checkInteger } from "../../core/options.ts";
import { problemOf } from "../../core/wire.ts";
import { needAccess } from "./access.ts";
import { jsonAnswer } from "./answers.ts";
import type { AgfsCall } from "./call.ts";
import type { FormQuery } from "./form.ts";
import { jsonBody, neededText } from "./json-body.ts";
import { README_NAME, under } from "./mount.ts";
import { takesMessage, waits } from "./reads.ts";
import { type Finder, type Match, searchBytes, searchDirectory, searchFile } from "./search.ts";
import type { Service } from "./service.ts";
import type { Target } from "./tree.ts";

/** Characters of a pattern: far beyond what people write, and cheap to compile. */
const MAX_PATTERN_CHARACTERS = 4_096;
/** Matches of one answer, whatever the limit asked for. */
const MAX_MATCHES = 10_000;
/** Characters of all matches of one answer that is put together before it is sent: 16 Mi. */
const MAX_MATCH_CHARACTERS = 16 * 1024 * 1024;

/** Answers with the lines, and messages of listings, in which a pattern is found: as one object, or with `stream` as a line of JSON each. */
export async function grep(call: AgfsCall, _query: FormQuery, service: Service): Promise<Response> {
  const body = await jsonBody(call);
  const path = neededText(body, "path");
  const pattern = neededText(body, "pattern");
  const limit = body.limit === undefined ? 0 : checkInteger("limit", body.limit, -1, Number.MAX_SAFE_INTEGER);
  const find = await compile(pattern, body.case_insensitive === true);
  const target = await service.tree.target(path);
  needAccess(call, target, "read");
  const { isDir } = await service.tree.stat(target);
  if (isDir && body.recursive !== true)
    throw new QueueFSError("is-a-directory", `${quote(target.path)} is a directory, use recursive=true to search`);
  if (target.kind === "above" || (isDir && target.kind === "inside" && target.parsed.kind === "root")) call.caller.needQueue("");
  const matches = search(call, target, isDir, find, service);
  const most = limit > 0 ? Math.min(limit, MAX_MATCHES) : MAX_MATCHES;
  return body.stream === true ? streamed(matches, most) : together(matches, most);
}

async function* search(call: AgfsCall, target: Target, isDir: boolean, find: Finder, { tree }: Service): AsyncGenerator<Match> {
  const { signal } = call;
  const searched = { files: tree.files, root: tree.mount.path, signal };
  if (target.kind === "readme") yield* searchBytes(tree.readme, target.path, find, signal);
  else if (target.kind === "above" || target.parsed.kind === "root") {
    const readme = await tree.target(under(tree.mount.path, README_NAME));
    if (readme.kind === "readme") yield* searchBytes(tree.readme, readme.path, find, signal);
    yield* searchDirectory(searched, "/", find);
  } else if (isDir) yield* searchDirectory(searched, target.inner, find);
  else {
    if (takesMessage(target.parsed) || waits(target.parsed))
      throw new QueueFSError(
        "wrong-mode",
        `permission denied: a search in ${quote(target.path)} would take a message, or wait; search in messages`,
      );
    yield* searchFile(searched, target.inner, target.path, find);
  }
}

async function together(matches: AsyncGenerator<Match>, most: number): Promise<Response> {
  const found: Match[] = [];
  let characters = 0;
  let isCut = false;
  for await (const match of matches) {
    found.push(match);
    characters += match.content.length;
    isCut = found.length >= most || characters > MAX_MATCH_CHARACTERS;
    if (isCut) break;
  }
  return jsonAnswer({ matches: found, count: found.length, ...(isCut ? { truncated: true } : {}) });
}

/** The first match is looked for before the answer begins, so that what fails at once has its status. */
async function streamed(matches: AsyncGenerator<Match>, most: number): Promise<Response> {
  const encoder = new TextEncoder();
  let next: IteratorResult<Match> | undefined = await matches.next();
  let count = 0;
  const lines = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const send = (line: object): void => controller.enqueue(encoder.encode(`${JSON.stringify(line)}\n`));
      let ending: object = {};
      try {
        const step = next ?? (await matches.next());
        next = undefined;
        if (step.done !== true && count < most) {
          count += 1;
          send(step.value);
          return;
        }
        if (step.done !== true) ending = { truncated: true };
      } catch (error) {
        // The answer has begun; what ended the search is told in its last line.
        ending = { error: problemOf(error).detail };
      }
      send({ type: "summary", count, ...ending });
      controller.close();
      await matches.return(undefined);
    },
    async cancel() {
      await matches.return(undefined);
    },
  });
  return new Response(lines, { headers: { "content-type": "application/x-ndjson" } });
}

/**
 * Compiles a pattern with the expressions of RE2, as AGFS servers have them: their time grows with the text and no faster, whatever the
 * pattern. Those of JavaScript could keep the server busy for years.
 *
 * @throws QueueFSError `invalid-argument`
 */
async function compile(pattern: string, ignoresCase: boolean): Promise<Finder> {
  if (pattern.length > MAX_PATTERN_CHARACTERS)
    throw new QueueFSError("invalid-argument", `invalid regex pattern: it has more than ${MAX_PATTERN_CHARACTERS} characters`);
  // Loaded only where somebody searches.
  const { RE2JS } = await import("re2js");
  try {
    const expression = RE2JS.compile(pattern, ignoresCase ? RE2JS.CASE_INSENSITIVE : 0);
    return (text) => {
      const matcher = expression.matcher(text);
      return matcher.find() ? matcher.start() : -1;
    };
  } catch (error) {
    throw new QueueFSError("invalid-argument", `invalid regex pattern: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
}
