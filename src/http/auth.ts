/** Who asks, and what they may do: tokens, sent as bearer or as the password of Basic, compared in constant time. */

import { createHash, timingSafeEqual } from "node:crypto";
import { QueueFSError, quote } from "../core/errors.ts";
import { isWithin, parseQueueName, type QueueName } from "../core/names.ts";
import { RequestError } from "./problem.ts";

/** One token. */
export interface Token {
  /** The secret itself, 16 to 512 visible ASCII characters without white space. */
  readonly secret: string;
  /** Whether it lets its holder only look. Default false. */
  readonly readOnly?: boolean;
  /** The queues that it is for: these and all under them. Absent: all. */
  readonly queues?: readonly QueueName[];
}

/** The shortest and the longest secret, in characters: a short one can be guessed over the network. */
const SECRET = /^[\x21-\x7e]{16,512}$/;

/** Checks one token. @throws QueueFSError `invalid-argument`, without a word of the secret */
export function checkToken(token: Token, what = "a token"): Token {
  if (typeof token?.secret !== "string" || !SECRET.test(token.secret))
    throw new QueueFSError("invalid-argument", `${what} must have 16 to 512 visible ASCII characters without white space`);
  if (token.readOnly !== undefined && typeof token.readOnly !== "boolean")
    throw new QueueFSError("invalid-argument", `readOnly of ${what} must be true or false, got ${quote(token.readOnly)}`);
  if (token.queues === undefined) return token;
  if (!Array.isArray(token.queues) || token.queues.length === 0)
    throw new QueueFSError("invalid-argument", `queues of ${what} must be an array with at least one queue`);
  return { ...token, queues: token.queues.map(parseQueueName) };
}

/**
 * Reads tokens from text, one a line: the secret, then perhaps `read-only`, and `queues=a,b/c` (in which `%2C` is a comma). Empty lines and lines that begin
 * with `#` say nothing.
 *
 * @throws QueueFSError `invalid-argument` with the number of the line, and no word of a secret
 */
export function parseTokens(text: string, where: string): Token[] {
  const tokens: Token[] = [];
  const lines = new Map<string, number>();
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    const [secret = "", ...words] = line.trim().split(/\s+/);
    if (secret === "" || secret.startsWith("#")) continue;
    const what = `the token in line ${index + 1} of ${where}`;
    const earlier = lines.get(secret);
    // Which of the two lines was meant is not for us to choose.
    if (earlier !== undefined)
      throw new QueueFSError("invalid-argument", `${what} is that of line ${earlier} again; give each line a secret of its own`);
    lines.set(secret, index + 1);
    let token: Token = { secret };
    for (const word of words) {
      if (word === "read-only") token = { ...token, readOnly: true };
      else if (word.startsWith("queues=")) token = { ...token, queues: readQueues(word.slice("queues=".length), what) };
      else throw new QueueFSError("invalid-argument", `${what} is followed by a word that is neither read-only nor queues=…`);
    }
    tokens.push(checkToken(token, what));
  }
  return tokens;
}

function readQueues(list: string, what: string): QueueName[] {
  try {
    return list.split(",").map((name) => parseQueueName(decodeURIComponent(name)));
  } catch (error) {
    throw new QueueFSError("invalid-argument", `queues of ${what} cannot be read: ${error instanceof Error ? error.message : ""}`);
  }
}

/** Somebody who was let in. */
export class Caller {
  /** Differs between tokens, and says nothing of them. */
  readonly key: string;
  readonly #canWrite: boolean;
  readonly #queues: readonly QueueName[] | undefined;

  constructor(key: string, token: Omit<Token, "secret">) {
    this.key = key;
    this.#canWrite = token.readOnly !== true;
    this.#queues = token.queues;
  }

  /** Whether the token is for some queues only. */
  get isLimited(): boolean {
    return this.#queues !== undefined;
  }

  /** @throws RequestError `forbidden` for a token that may only look */
  needWrite(): void {
    if (!this.#canWrite) throw refused("this token may only look, and the request changes something");
  }

  /** @throws RequestError `forbidden` for a queue, or a path with all under it, that the token is not for */
  needQueue(queue: QueueName | ""): void {
    if (this.#queues?.every((prefix) => !isWithin(queue, prefix))) throw refused(`this token is not for the queue ${quote(queue)}`);
  }

  /** Whether the token is for a queue. */
  isFor(queue: QueueName): boolean {
    return this.#queues === undefined || this.#queues.some((prefix) => isWithin(queue, prefix));
  }

  /** @throws RequestError `forbidden` for a token that is for some queues only */
  needWholeStore(): void {
    if (this.isLimited) throw refused("this token is for some queues only, and the request is about the whole store");
  }
}

function refused(why: string): RequestError {
  return new RequestError("forbidden", 403, `${why}; use another token`);
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

/** Everybody, where no token is asked for. */
const ANYBODY = new Caller("", {});

/** Somebody of whom nothing is known, who may do nothing. */
export const NOBODY: Caller = new Caller("", { readOnly: true, queues: [] });

/** Knows the tokens. */
export class Gate {
  readonly #tokens: readonly { readonly digest: Buffer; readonly caller: Caller }[];

  /** @throws QueueFSError `invalid-argument` for a token that cannot be one, or is there twice */
  constructor(tokens: readonly Token[] = []) {
    if (!Array.isArray(tokens)) throw new QueueFSError("invalid-argument", "tokens must be an array");
    const places = new Map<string, number>();
    this.#tokens = tokens.map((token, index) => {
      const checked = checkToken(token, `token ${index + 1}`);
      const earlier = places.get(checked.secret);
      if (earlier !== undefined) throw new QueueFSError("invalid-argument", `token ${index + 1} has the same secret as token ${earlier}`);
      places.set(checked.secret, index + 1);
      return { digest: digest(checked.secret), caller: new Caller(String(index), checked) };
    });
  }

  /** Whether a token is asked for. */
  get isClosed(): boolean {
    return this.#tokens.length > 0;
  }

  /** Who sends this header. @throws RequestError `unauthenticated` */
  caller(authorization: string | undefined): Caller {
    if (!this.isClosed) return ANYBODY;
    const secret = secretOf(authorization);
    // Digests have one length, and all of them are compared: how long it takes says nothing about which was nearest.
    const given = digest(secret ?? "");
    let found: Caller | undefined;
    for (const token of this.#tokens) {
      if (timingSafeEqual(token.digest, given)) found = token.caller;
    }
    if (secret !== undefined && found !== undefined) return found;
    const words =
      secret === undefined ? "this server asks for a token: send Authorization: Bearer …" : "this server does not know that token";
    throw new RequestError("unauthenticated", 401, words, { "www-authenticate": 'Bearer realm="queuefs", Basic realm="queuefs"' });
  }
}

/** The secret in a header of either scheme; the user of Basic does not matter. */
function secretOf(authorization: string | undefined): string | undefined {
  const [, scheme = "", value = ""] = /^([a-z]+) +([^\s]+) *$/i.exec(authorization ?? "") ?? [];
  if (scheme.toLowerCase() === "bearer") return value;
  if (scheme.toLowerCase() !== "basic") return undefined;
  const pair = Buffer.from(value, "base64").toString("utf8");
  const colon = pair.indexOf(":");
  return colon < 0 ? undefined : pair.slice(colon + 1);
}
