/** Files of the reference layout whatever stands in their cells: each message is taken over with its bytes, or put aside, and none is lost. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openMemory } from "../../src/backend/memory/index.ts";
import { openReferenceFile } from "../../src/migrate/reference-file.ts";
import { takeOver } from "../../src/migrate/takeover.ts";
import { type OldMessage, oldRecord, writeOldFile } from "../support/reference-file.ts";
import { endingAsync, holdAsync } from "./fuzzing.ts";
import { anyBytes, anyJson, anyText } from "./values.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "queuefs-reference-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const queue = fc.oneof(
  fc.constantFrom("q", "Q", "a/b", "/a/b", "a//b", "size", ".x", "..", ""),
  anyText.map((text) => text.slice(0, 300)),
  anyBytes,
);
const record = fc.oneof(
  fc.tuple(anyText, fc.oneof(anyText, anyBytes)).map(([id, data]) => oldRecord(id, data)),
  anyText,
  anyBytes,
  anyJson.map((json) => JSON.stringify(json) ?? ""),
  fc.constant(null),
);
const message: fc.Arbitrary<OldMessage> = fc.record({
  queue,
  id: fc.oneof(fc.constantFrom("same", "m-1", "r-1", null, ""), anyText),
  record,
  status: fc.constantFrom("pending", "processing"),
});

let files = 0;

test("every message of any file is in the store afterwards, once, also when it is taken over again", async () => {
  await holdAsync<[OldMessage[], (string | Uint8Array)[]]>(
    [
      fc.array(message, { maxLength: 6 }),
      fc.uniqueArray(queue, { maxLength: 3, selector: (name) => Buffer.from(name).toString("latin1") }),
    ],
    0.4,
    async (messages, queues) => {
      files += 1;
      const path = join(folder, `old-${files}.db`);
      writeOldFile(path, { messages, queues, journal: "delete" });
      const backend = await openMemory();
      try {
        for (let times = 0; times < 2; times += 1) {
          using file = openReferenceFile(path);
          const { error, result } = await endingAsync(() => takeOver(file, backend));
          expect(error).toBeUndefined();
          expect(result?.queues.reduce((sum, { stored, repeated }) => sum + stored + repeated, 0)).toBe(messages.length);
          let there = 0;
          for (const { queue: name } of result?.queues ?? []) {
            const { pending, processing, dead } = await backend.statistics(name);
            there += pending + processing + dead;
          }
          expect(there).toBe(messages.length);
        }
        expect((await backend.inspect()).filter(({ severity }) => severity === "error")).toEqual([]);
      } finally {
        await backend.close();
        rmSync(path, { force: true });
      }
    },
  );
});
