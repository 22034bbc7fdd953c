/** A server of the HTTP measure, in a process of its own: QueueFS over a store, or one that answers the same bytes and does nothing else. */

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { listen } from "../../src/http/index.ts";
import { QUEUE } from "../contenders/queuefs.ts";
import { loadBuiltLibrary } from "../library.ts";

/** What the process is to serve. */
export interface HttpTask {
  readonly store: "memory" | "SQLite" | "nothing";
  /** Where a file of SQLite is to be. */
  readonly path: string;
}

/** What it tells when asked: the memory of the process after a collection of garbage, in bytes. */
export interface HttpMemory {
  readonly residentBytes: number;
}

const task = JSON.parse(process.argv[2] as string) as HttpTask;

function serveNothing(): Promise<number> {
  const answer = JSON.stringify({ answers: [{ outcome: "enqueued", id: "m-0123456789abcdef-1" }] });
  const server = createServer((request, response) => {
    request.on("data", () => {});
    request.on("end", () => {
      response.writeHead(201, { "content-type": "application/json", "content-length": answer.length });
      response.end(answer);
    });
  });
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port)));
}

async function serveStore(): Promise<number> {
  const { openMemory, openSqlite } = await loadBuiltLibrary();
  const store = task.store === "memory" ? await openMemory() : await openSqlite({ path: task.path, durability: "normal" });
  await store.createQueue(QUEUE);
  const module = (await import(new URL("../../dist/http/index.js", import.meta.url).href)) as { readonly listen: typeof listen };
  return (await module.listen(store, { port: 0 })).port;
}

const port = task.store === "nothing" ? await serveNothing() : await serveStore();
process.on("message", () => {
  const { gc } = globalThis as { readonly gc?: () => void };
  gc?.();
  process.send?.({ residentBytes: process.memoryUsage().rss } satisfies HttpMemory);
});
process.once("disconnect", () => process.exit());
process.send?.(port);
