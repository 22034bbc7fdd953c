/** Names and values one below the other, for one thing that is shown to people. */

import type { Session } from "./session.ts";
import { styled } from "./table.ts";

const NAME_WIDTH = 11;

/** The lines of names and their values, which must have been made visible before. */
export function fieldLines(session: Pick<Session, "colours">, fields: readonly (readonly [string, string])[]): string[] {
  return fields.map(([name, value]) => `${styled(session, "bold", name.padEnd(NAME_WIDTH))} ${value}`.trimEnd());
}
