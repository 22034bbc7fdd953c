/** The query of a request, which both SDKs encode as a form. */

import { QueueFSError, quote } from "../../core/errors.ts";

/**
 * Decodes a query as form data: a plus sign is a space. Unlike `URLSearchParams`, which puts U+FFFD for them, it refuses bytes that are no
 * UTF-8: two paths must not become one.
 */
export class FormQuery {
  readonly #values = new Map<string, string>();

  /** @throws QueueFSError `invalid-argument` for what is not decodable, and for what is given twice */
  constructor(search: string) {
    for (const pair of search.split("&")) {
      if (pair === "") continue;
      const at = pair.indexOf("=");
      const name = decode(at < 0 ? pair : pair.slice(0, at));
      if (this.#values.has(name)) throw new QueueFSError("invalid-argument", `the query has ${quote(name)} twice`);
      this.#values.set(name, at < 0 ? "" : decode(pair.slice(at + 1)));
    }
  }

  /** A value; an empty one counts as absent. */
  text(name: string): string | undefined {
    return this.#values.get(name) || undefined;
  }

  /** A value that must be there. @throws QueueFSError `invalid-argument` */
  needed(name: string): string {
    const value = this.text(name);
    if (value === undefined) throw new QueueFSError("invalid-argument", `${name} parameter is required`);
    return value;
  }

  /** A whole number. @throws QueueFSError `invalid-argument` */
  integer(name: string): number | undefined {
    const value = this.text(name);
    if (value === undefined) return undefined;
    const number = /^[+-]?\d{1,16}$/.test(value) ? Number(value) : Number.NaN;
    if (Number.isSafeInteger(number)) return number;
    throw new QueueFSError("invalid-argument", `invalid ${name} parameter ${quote(value)}: it must be a whole number`);
  }
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch (error) {
    throw new QueueFSError("invalid-argument", `the query is not form-encoded UTF-8: ${quote(text)}`, { cause: error });
  }
}
