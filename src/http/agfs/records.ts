/** Text that comes in parts of bytes, taken apart into lines, or into the messages of a listing, without ever holding much of it. */

/** A line, a message of a listing, or a piece of one that is long. */
export interface TextRecord {
  /** Which line or message, from 1. */
  readonly number: number;
  readonly text: string;
}

/** Characters after which a record comes in pieces. */
export const PIECE_CHARACTERS = 64 * 1024;
/** Characters that a piece has in common with the one before, so that what lies across the border is found unless it is longer. */
const OVERLAP_CHARACTERS = 1_024;

/**
 * How records end. In the JSON array of a listing no text of a message can look like the beginning of the next: a quotation mark in a text
 * has a backslash before it.
 */
const ENDS = { lines: "\n", messages: ',{"id":"' } as const;

/** What records of a file are. */
export type RecordKind = keyof typeof ENDS;

/** The records of a content, in order; a record longer than 64 Ki characters in pieces that have the same number. */
export async function* records(parts: AsyncIterable<Uint8Array>, kind: RecordKind): AsyncGenerator<TextRecord> {
  const end = ENDS[kind];
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  let number = 1;
  let text = "";
  for await (const part of parts) {
    text += decoder.decode(part, { stream: true });
    let from = 0;
    for (let at = text.indexOf(end); at >= 0; at = text.indexOf(end, from)) {
      yield* pieces(number, bare(text.slice(from, at), kind, number === 1, false));
      number += 1;
      // A line loses its end, and a message the comma: the rest of its end is the beginning of the next.
      from = at + 1;
    }
    text = text.slice(from);
    while (text.length > 2 * PIECE_CHARACTERS) {
      yield { number, text: text.slice(0, PIECE_CHARACTERS) };
      text = text.slice(PIECE_CHARACTERS - OVERLAP_CHARACTERS);
    }
  }
  text = bare(text + decoder.decode(), kind, number === 1, true);
  if (text !== "") yield* pieces(number, text);
}

/** A record without what belongs to its neighbours: the carriage return of a line end, the brackets of the array. */
function bare(text: string, kind: RecordKind, isFirst: boolean, isLast: boolean): string {
  if (kind === "lines") return text.endsWith("\r") ? text.slice(0, -1) : text;
  return text.slice(isFirst && text.startsWith("[") ? 1 : 0, isLast && text.endsWith("]") ? -1 : undefined);
}

function* pieces(number: number, text: string): Generator<TextRecord> {
  for (let rest = text; ; rest = rest.slice(PIECE_CHARACTERS - OVERLAP_CHARACTERS)) {
    yield { number, text: rest.slice(0, PIECE_CHARACTERS) };
    if (rest.length <= PIECE_CHARACTERS) return;
  }
}
