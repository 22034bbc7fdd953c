/** What is refused before anything is looked at: malformed targets, foreign hosts (rebinding) and foreign web pages (cross-site requests). */

import { QueueFSError, quote } from "../core/errors.ts";
import { RequestError } from "./problem.ts";

/** Limits of the target of a request. */
export interface TargetLimits {
  readonly maxUrlBytes: number;
  readonly maxQueryParameters: number;
}

/** What most targets are; with these characters nothing below can be wrong with one. */
const PLAIN = /^\/[\w/-]*$/;

function bad(message: string): RequestError {
  return new RequestError("invalid-argument", 400, message);
}

/**
 * Checks the target as the client sent it, before anything resolves or decodes it: what looks like a way out of a path is refused, not
 * cleaned, so that no two readers of the path can take it for two things.
 *
 * @throws RequestError 400, or 414 for one that is too long
 */
export function checkTarget(target: string, limits: TargetLimits): void {
  if (target.length > limits.maxUrlBytes)
    throw new RequestError("invalid-argument", 414, `the path and query have ${target.length} bytes; the limit is ${limits.maxUrlBytes}`);
  if (PLAIN.test(target)) return;
  const [path = "", query = ""] = splitOnce(target, "?");
  if (!path.startsWith("/")) throw bad("the request target must be a path that begins with a slash");
  if (/[\\#]|[^\x21-\x7e]/.test(target)) throw bad("the path and query hold a character that must be percent-encoded");
  for (const segment of path.split("/")) checkSegment(segment);
  if (query !== "" && query.split("&").length > limits.maxQueryParameters)
    throw bad(`the query has more than ${limits.maxQueryParameters} parameters`);
  if (/%(?![0-9a-f]{2})/i.test(query)) throw bad("the query has a percent sign that no two hexadecimal digits follow");
}

function checkSegment(segment: string): void {
  if (segment === "." || segment === "..") throw bad("the path has a component . or ..");
  if (!segment.includes("%")) return;
  let decoded: string;
  try {
    decoded = decodeURIComponent(segment);
  } catch {
    throw bad("the path is not percent-encoded UTF-8");
  }
  if (decoded.includes("\0")) throw bad("the path holds a NUL");
  if (decoded.split("/").some((part) => part === "." || part === "..")) throw bad("the path has a component . or .. in percent-encoding");
}

function splitOnce(text: string, mark: string): [string, string] {
  const at = text.indexOf(mark);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

/** An IPv4 address, or an IPv6 address in brackets. A page of somebody else can make its name mean this host, but no address. */
const ADDRESS = /^(?:\d{1,3}(?:\.\d{1,3}){3}|\[[0-9a-f:.]+\])$/i;
const HOST = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(\d{1,5}))?$/i;

/** Which hosts and origins may call the server. */
export class Neighbourhood {
  readonly #hosts: ReadonlySet<string>;
  readonly #origins: ReadonlySet<string>;

  /** @throws QueueFSError `invalid-argument` for a host that is no name, or an origin that is none */
  constructor(hosts: readonly string[] = [], origins: readonly string[] = []) {
    this.#hosts = new Set(hosts.map(checkHost));
    this.#origins = new Set(origins.map(checkOrigin));
  }

  /** The origins of pages that may use the server although they come from elsewhere. */
  get origins(): ReadonlySet<string> {
    return this.#origins;
  }

  /** @throws RequestError `forbidden` for a name that a page of somebody else may have given this host */
  needHost(host: string | undefined): void {
    // Only HTTP/1.0 leaves it out, which no browser speaks.
    if (host === undefined) return;
    const name = HOST.exec(host)?.[1]?.toLowerCase();
    if (name === undefined) throw bad("the Host header is no host name");
    if (ADDRESS.test(name) || name === "localhost" || this.#hosts.has(name)) return;
    throw new RequestError("forbidden", 403, `this server is not called ${quote(name)}; start it with --allow-host ${name} if it is`);
  }

  /**
   * Refuses what a page of another origin makes a browser send. It does so for reads as well: some reads take a message.
   *
   * @throws RequestError `forbidden`
   */
  needOrigin(headers: {
    readonly origin?: string | undefined;
    readonly host?: string | undefined;
    readonly site?: string | undefined;
  }): void {
    const { origin, host, site } = headers;
    if (origin !== undefined && this.#origins.has(origin)) return;
    const isOwn = origin === undefined || (host !== undefined && (origin === `http://${host}` || origin === `https://${host}`));
    const isFromElsewhere = site === "cross-site" || site === "same-site";
    if (isOwn && !isFromElsewhere) return;
    throw new RequestError(
      "forbidden",
      403,
      "pages of other origins may not use this server; start it with --allow-origin ORIGIN if one may",
    );
  }
}

function checkHost(host: unknown): string {
  if (typeof host === "string" && HOST.exec(host)?.[2] === undefined && HOST.test(host)) return host.toLowerCase();
  throw new QueueFSError("invalid-argument", `an allowed host must be a host name without a port, got ${quote(host)}`);
}

function checkOrigin(origin: unknown): string {
  if (typeof origin === "string" && URL.canParse(origin) && new URL(origin).origin === origin) return origin;
  throw new QueueFSError(
    "invalid-argument",
    `an allowed origin must be like https://app.example or http://localhost:3000, got ${quote(origin)}`,
  );
}
