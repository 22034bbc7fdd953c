/** Makes text of unknown origin safe to show: a message or a name must not steer the terminal of the person who looks at it. */

import { decodeUtf8 } from "../core/codec.ts";

// Control characters (Cc), the line separators, and what changes the direction of writing or is not seen.
const UNSAFE = /[\p{Cc}\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e007f}]/gu;
const SHORT: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0" };

function escaped(character: string): string {
  const code = character.codePointAt(0) as number;
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u{${code.toString(16)}}`;
}

/** One line of text in which nothing acts on a terminal: control and direction characters appear as escapes. */
export function visible(text: string): string {
  return text.replace(UNSAFE, (character) => SHORT[character] ?? escaped(character));
}

/** The same for text of several lines: line ends and tabs stay. */
export function visibleLines(text: string): string {
  return text.replace(UNSAFE, (character) =>
    character === "\n" || character === "\t" ? character : (SHORT[character] ?? escaped(character)),
  );
}

/** JSON text in which nothing acts on a terminal and which still says the same. */
export function visibleJson(json: string): string {
  return json.replace(UNSAFE, (character) => {
    // JSON text itself holds such characters only within strings, where an escape means the same; its line end is no part of it.
    if (character === "\n") return character;
    return Array.from({ length: character.length }, (_, index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, "0")}`).join(
      "",
    );
  });
}

/** The start of the data of a message on one line, at most `width` characters: text as text, other bytes in hexadecimal. */
export function preview(data: Uint8Array, width: number): string {
  // A character takes four bytes at most, so that the cut-off part cannot reach into what is shown.
  const start = data.subarray(0, width * 4 + 4);
  let text = decodeUtf8(start);
  for (let cut = 1; text === undefined && start.byteLength < data.byteLength && cut <= 3; cut += 1) {
    text = decodeUtf8(start.subarray(0, start.byteLength - cut));
  }
  const shown = text === undefined ? `0x${Buffer.from(start.subarray(0, width)).toString("hex")}` : visible(text);
  const characters = Array.from(shown);
  const whole = characters.length <= width && (text === undefined ? start.subarray(0, width) : start).byteLength === data.byteLength;
  return whole ? shown : `${characters.slice(0, Math.max(0, width - 1)).join("")}…`;
}
