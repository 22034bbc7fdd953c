/** Requests that have come in one turn of the event loop reach the store in one turn, so that it can do them together. */

import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { expect, test } from "vitest";
import type { Backend } from "../../../src/backend/contract.ts";
import { openMemory } from "../../../src/backend/memory/index.ts";
import type { QueueName } from "../../../src/core/names.ts";
import { listen } from "../../../src/http/index.ts";

const REQUESTS = 10;

test("requests that came together reach the store together", async () => {
  const queue = "q" as QueueName;
  const store = await openMemory();
  await store.createQueue(queue);
  /** How many calls came before the next tick, when a store begins with what it has been given. */
  const together: number[] = [];
  let calls = 0;
  const counting = Object.create(store, {
    enqueue: {
      value: (...[name, messages]: Parameters<Backend["enqueue"]>) => {
        calls += 1;
        if (calls === 1)
          process.nextTick(() => {
            together.push(calls);
            calls = 0;
          });
        return store.enqueue(name, messages);
      },
    },
    description: { value: store.description },
    subscribe: { value: store.subscribe.bind(store) },
  }) as Backend;
  const server = await listen(counting, { port: 0 });
  const sockets = Array.from({ length: REQUESTS }, () => connect(server.port, "127.0.0.1"));
  await Promise.all(sockets.map((socket) => once(socket, "connect")));
  const ask = async (socket: Socket): Promise<void> => {
    socket.write("POST /api/v1/queues/q/messages HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 1\r\n\r\nx");
    expect(String((await once(socket, "data"))[0])).toContain("HTTP/1.1 201");
  };
  // So that the server has taken all connections, which it does one by one.
  for (const socket of sockets) await ask(socket);
  together.length = 0;
  const answers = sockets.map(ask);
  // The server, in this process too, finds all of them when the event loop turns again.
  for (const untilMs = performance.now() + 100; performance.now() < untilMs; );
  await Promise.all(answers);
  expect(together).toEqual([REQUESTS]);
  for (const socket of sockets) socket.destroy();
  await server.stop();
  expect(await store.status(queue)).toEqual({ pending: 2 * REQUESTS, processing: 0 });
  await store.close();
});
