/** Searches and checksums: what they find, and that they take no message. */

import { expect, test } from "vitest";
import { type Answered, errorOf, overAgfs } from "../../support/agfs-face.ts";

overAgfs("grep", (face) => {
  const grep = (body: object): Promise<Answered> => face.ask("/grep", { method: "POST", body: JSON.stringify(body) });

  async function fill(): Promise<void> {
    await face.mkdir("/queuefs/a");
    await face.mkdir("/queuefs/a/b");
    for (const text of ["first apple", "second pear", 'third ,{"id":"APPLE"']) await face.write("/queuefs/a/enqueue", text);
    await face.write("/queuefs/a/b/enqueue", "fourth apple");
    await face.read("/queuefs/a/dequeue");
  }

  test("finds messages one by one, in hand or not, and takes none", async () => {
    await fill();
    const { status, json } = await grep({ path: "/queuefs", pattern: "apple", recursive: true, case_insensitive: true, stream: false });
    expect(status).toBe(200);
    expect(json.count).toBe(3);
    const found = json.matches as { file: string; line: number; content: string }[];
    expect(found.map(({ file, line }) => [file, line])).toEqual([
      ["/queuefs/a/messages", 1],
      ["/queuefs/a/messages", 3],
      ["/queuefs/a/b/messages", 1],
    ]);
    expect(found.map(({ content }) => (JSON.parse(content) as { data: string }).data)).toEqual([
      "first apple",
      'third ,{"id":"APPLE"',
      "fourth apple",
    ]);
    expect((await grep({ path: "/queuefs", pattern: "apple", recursive: true })).json.count).toBe(2);
    expect(await face.status("/queuefs/a")).toEqual({ pending: 2, processing: 1 });
    expect(await face.status("/queuefs/a/b")).toEqual({ pending: 1, processing: 0 });
  });

  test("searches single files, the README by lines, and never one that takes a message", async () => {
    await fill();
    expect((await grep({ path: "/queuefs/a/peek", pattern: "pear" })).json.count).toBe(1);
    expect((await grep({ path: "/queuefs/a/size", pattern: "^2$" })).json.matches).toEqual([
      { file: "/queuefs/a/size", line: 1, content: "2" },
    ]);
    const readme = (await face.read("/queuefs/README")).text.split("\n");
    const line = readme.findIndex((text) => text.includes("/dequeue")) + 1;
    expect((await grep({ path: "/queuefs/README", pattern: "/dequeue" })).json.matches).toEqual([
      { file: "/queuefs/README", line, content: readme[line - 1] },
    ]);
    expect(errorOf(await grep({ path: "/queuefs/a/dequeue", pattern: "x" }))).toContain("permission denied");
    expect(errorOf(await grep({ path: "/queuefs/a/enqueue", pattern: "x" }))).toContain("permission denied");
    expect(errorOf(await grep({ path: "/queuefs/a", pattern: "x" }))).toContain("is a directory");
    expect(errorOf(await grep({ path: "/queuefs/none", pattern: "x", recursive: true }))).toContain("not found");
    expect(await face.status("/queuefs/a")).toEqual({ pending: 2, processing: 1 });
  });

  test("streams a line of JSON for each match, and a summary", async () => {
    await fill();
    const answer = await grep({ path: "/", pattern: "apple|pear", recursive: true, stream: true });
    expect(answer.type).toBe("application/x-ndjson");
    const lines = answer.text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as { file?: string });
    expect(lines.slice(0, -1).map(({ file }) => file)).toEqual(["/queuefs/a/messages", "/queuefs/a/messages", "/queuefs/a/b/messages"]);
    expect(lines.at(-1)).toEqual({ type: "summary", count: 3 });
    const cut = await grep({ path: "/", pattern: "apple|pear", recursive: true, stream: true, limit: 1 });
    expect(
      cut.text
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line)),
    ).toMatchObject([{ line: 1 }, { type: "summary", count: 1, truncated: true }]);
    expect((await grep({ path: "/", pattern: "apple", recursive: true, limit: 1 })).json).toMatchObject({ count: 1, truncated: true });
  });

  test("shows of a huge message what is about the match, wherever it is", async () => {
    await face.mkdir("/queuefs/q");
    for (const before of [0, 65_530, 131_000, 1_048_500, 2_000_000])
      await face.write("/queuefs/q/enqueue", `${"é".repeat(before)}needle${"x".repeat(100_000)}`);
    const { json } = await grep({ path: "/queuefs/q", pattern: "needle", recursive: true });
    const found = json.matches as { line: number; content: string }[];
    expect(found.map(({ line }) => line)).toEqual([1, 2, 3, 4, 5]);
    for (const { content } of found) {
      expect(content).toContain("needle");
      expect(content.length).toBeLessThanOrEqual(4_096);
    }
  });

  test("refuses what is no search, and takes no longer for patterns that are made to", async () => {
    await face.mkdir("/queuefs/q");
    await face.write("/queuefs/q/enqueue", "a".repeat(50_000));
    for (const body of [
      { pattern: "x" },
      { path: "/queuefs" },
      { path: "/queuefs", pattern: "(" },
      { path: "/", pattern: "(?=x)" },
      { path: "/", pattern: "x".repeat(5_000) },
    ])
      expect((await grep(body)).status, JSON.stringify(body).slice(0, 80)).toBe(400);
    for (const body of ["", "[]", "{", "1"]) expect((await face.ask("/grep", { method: "POST", body })).status).toBe(400);
    const begunMs = performance.now();
    expect((await grep({ path: "/queuefs/q/messages", pattern: "(a+)+$" })).status).toBe(200);
    expect((await grep({ path: "/queuefs/q/messages", pattern: "(a|aa|a?)*#" })).json.count).toBe(0);
    expect(performance.now() - begunMs).toBeLessThan(5_000);
  });
});

overAgfs("digest", (face) => {
  const digest = (path: string, algorithm: string): Promise<Answered> =>
    face.ask("/digest", { method: "POST", body: JSON.stringify({ algorithm, path }) });

  test("is that of the content, and takes no message", async () => {
    await face.mkdir("/queuefs/q");
    await face.write("/queuefs/q/enqueue", "x");
    expect((await digest("/queuefs/q/size", "md5")).json).toEqual({
      algorithm: "md5",
      path: "/queuefs/q/size",
      digest: "c4ca4238a0b923820dcc509a6f75849b",
    });
    // The lower half of XXH3 with 128 bits, as upstream has it.
    expect((await digest("/queuefs/q/size", "xxh3")).json.digest).toMatch(/^[0-9a-f]{16}$/);
    expect((await digest("/queuefs/README", "xxh3")).status).toBe(200);
    for (const path of ["/queuefs/q/dequeue", "/queuefs/q/enqueue", "/queuefs/q/.wait"]) {
      const refused = await digest(path, "md5");
      expect(refused.status, path).toBe(403);
      expect(errorOf(refused)).toContain("permission denied");
    }
    expect(errorOf(await digest("/queuefs/q", "md5"))).toContain("is a directory");
    expect(errorOf(await digest("/queuefs/q/size", "sha1"))).toContain("unsupported algorithm");
    expect((await digest("/queuefs/none/size", "md5")).status).toBe(404);
    expect(await face.status("/queuefs/q")).toEqual({ pending: 1, processing: 0 });
  });
});
