import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { splitLines } from "../../../src/cli/input.ts";

async function* pieces(...parts: (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) yield typeof part === "string" ? Buffer.from(part) : part;
}

async function lines(source: AsyncIterable<Uint8Array>, maxBytes = 1_000): Promise<string[]> {
  const found: string[] = [];
  for await (const line of splitLines(source, maxBytes)) if (line !== undefined) found.push(Buffer.from(line).toString("latin1"));
  return found;
}

describe("splitLines", () => {
  it("takes line feeds off and nothing else", async () => {
    expect(await lines(pieces("a\nb\r\n\n c \n"))).toEqual(["a", "b\r", "", " c "]);
  });

  it("takes an unfinished last line, and nothing after the last line feed as no line", async () => {
    expect(await lines(pieces("a\nb"))).toEqual(["a", "b"]);
    expect(await lines(pieces("a\n"))).toEqual(["a"]);
    expect(await lines(pieces())).toEqual([]);
    expect(await lines(pieces("\n"))).toEqual([""]);
  });

  it("gives the same lines however the input is cut", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.uint8Array({ maxLength: 12 })), async (parts) => {
        const whole = Buffer.concat(parts).toString("latin1");
        const expected = whole.split("\n");
        if (expected.at(-1) === "") expected.pop();
        expect(await lines(pieces(...parts))).toEqual(expected);
      }),
    );
  });

  it("says after each piece that no more is at hand yet", async () => {
    const seen: boolean[] = [];
    for await (const line of splitLines(pieces("a\nb", "c\n"), 10)) seen.push(line !== undefined);
    expect(seen).toEqual([true, false, true, false]);
  });

  it("refuses a line over the limit without waiting for its end", async () => {
    let given = 0;
    async function* endless(): AsyncGenerator<Uint8Array> {
      for (;;) {
        given += 1;
        yield Buffer.from(given === 1 ? "fine\n12345" : "67890");
      }
    }
    await expect(lines(endless(), 10)).rejects.toThrowError(
      expect.objectContaining({ code: "message-too-large", message: expect.stringContaining("line 2") }),
    );
    expect(given).toBe(3);
  });
});
