import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { preview, visible, visibleJson, visibleLines } from "../../../src/cli/visible.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

// Everything that a terminal might act upon, beside the line end that the caller writes.
const ACTS = /[\p{Cc}\u202a-\u202e\u2066-\u2069]/u;

describe("visible", () => {
  it("shows escape sequences, C1 controls and direction characters as text", () => {
    expect(visible("\u001b]0;owned\u0007")).toBe("\\x1b]0;owned\\x07");
    expect(visible("\u009b31m")).toBe("\\x9b31m");
    expect(visible("a\u202eb")).toBe("a\\u{202e}b");
    expect(visible("a\nb\tc\rd\0")).toBe("a\\nb\\tc\\rd\\0");
    expect(visible("Grüße 日本 🎉")).toBe("Grüße 日本 🎉");
  });

  it("leaves line ends and tabs in text of several lines, and nothing else that acts", () => {
    expect(visibleLines("a\tb\r\n\u001b[2J")).toBe("a\tb\\r\n\\x1b[2J");
  });

  it("never lets through what acts on a terminal", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        expect(visible(text)).not.toMatch(ACTS);
        expect(visibleLines(text).replace(/[\n\t]/g, "")).not.toMatch(ACTS);
      }),
    );
  });
});

describe("visibleJson", () => {
  it("keeps the meaning of every JSON text and lets nothing through", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        const json = visibleJson(JSON.stringify({ text }));
        expect(json).not.toMatch(ACTS);
        expect(JSON.parse(json)).toEqual({ text });
      }),
    );
  });
});

describe("preview", () => {
  it("shows short text whole and cuts long text between characters", () => {
    expect(preview(bytes("hello"), 10)).toBe("hello");
    expect(preview(bytes(""), 10)).toBe("");
    expect(preview(bytes("0123456789"), 10)).toBe("0123456789");
    expect(preview(bytes("0123456789x"), 10)).toBe("012345678…");
    expect(preview(bytes("日".repeat(100)), 5)).toBe("日日日日…");
    expect(preview(bytes("🎉".repeat(100)), 3)).toBe("🎉🎉…");
  });

  it("shows bytes that are not text in hexadecimal", () => {
    expect(preview(Uint8Array.of(0xff, 0xfe), 10)).toBe("0xfffe");
    expect(preview(new Uint8Array(100).fill(0xff), 8)).toBe("0xfffff…");
  });

  it("is one line in which nothing acts, whatever the bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), fc.integer({ min: 1, max: 50 }), (data, width) => {
        const shown = preview(data, width);
        expect(shown).not.toMatch(ACTS);
        expect(Array.from(shown).length).toBeLessThanOrEqual(width);
      }),
    );
  });
});
