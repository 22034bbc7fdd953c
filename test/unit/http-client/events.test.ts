/** The client's side of the stream of events, on connections that are really cut and bytes that really come in pieces. */

import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, it } from "vitest";
import { Events } from "../../../src/backend/http/events.ts";
import { readHttpOptions } from "../../../src/backend/http/options.ts";
import { Transport } from "../../../src/backend/http/transport.ts";

let server: Server;
let streams: ServerResponse[];
let requests: number;
/** What the route answers. */
let status: number;
let events: Events;
let transport: Transport;
let heard: (readonly string[] | undefined)[];
let errors: unknown[];

function start(pollIntervalMs = 60_000): void {
  const { port } = server.address() as AddressInfo;
  const settings = readHttpOptions({ url: `http://127.0.0.1:${port}`, pollIntervalMs, onError: (error) => void errors.push(error) });
  transport = new Transport(settings);
  events = new Events(transport, settings);
  events.subscribe((queues) => void heard.push(queues && [...queues]));
}

async function until(condition: () => boolean): Promise<void> {
  for (let tries = 0; tries < 500 && !condition(); tries += 1) await sleep(5);
  expect(condition()).toBe(true);
}

beforeEach(async () => {
  streams = [];
  heard = [];
  errors = [];
  requests = 0;
  status = 200;
  server = createServer((request, response) => {
    requests += 1;
    expect(request.url).toBe("/api/v1/events");
    response.writeHead(status, { "content-type": status === 200 ? "text/event-stream; charset=utf-8" : "application/problem+json" });
    if (status !== 200) response.end("{}");
    else {
      response.write(": hello\n\n");
      streams.push(response);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});

afterEach(async () => {
  events.close();
  transport.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

it("tells what the stream tells, however its bytes come, and comments are nothing", async () => {
  start();
  // A stream that begins may have missed something.
  await until(() => heard.length === 1);
  expect(heard.splice(0)).toEqual([undefined]);
  const [stream] = streams;
  for (const byte of Buffer.from('event: change\ndata: {"queues":["imports/é","b"]}\n\n: heartbeat\n\n')) {
    stream?.write(Buffer.from([byte]));
    if (byte === 0xc3 || byte === 10) await sleep(2);
  }
  await until(() => heard.length === 1);
  expect(heard.splice(0)).toEqual([["imports/é", "b"]]);
  stream?.write('id: 7\r\nevent: change\r\ndata: {"queues":[],"tasks":true}\r\n\r\n');
  await until(() => heard.length === 1);
  expect(heard.splice(0)).toEqual([[]]);
  stream?.write('event: change\ndata: {"queues":["a"]}\n\nevent: change\ndata: {"queues":["b"]}\n\n');
  await until(() => heard.length === 1);
  expect(heard.splice(0)).toEqual([["a", "b"]]);
});

it("takes what it does not understand for any change", async () => {
  start();
  await until(() => heard.length === 1);
  heard = [];
  for (const text of ['data: {"queues":null}', "event: gap", "data: x"]) {
    streams[0]?.write(`${text}\n\n`);
    await until(() => heard.length === 1);
    expect(heard.splice(0)).toEqual([undefined]);
  }
});

it("connects again when the stream ends, and then says that anything may have changed", async () => {
  start();
  await until(() => heard.length === 1);
  streams[0]?.destroy();
  await until(() => streams.length === 2 && heard.length === 2);
  expect(heard).toEqual([undefined, undefined]);
  streams[1]?.write('event: change\ndata: {"queues":["a"]}\n\n');
  await until(() => heard.length === 3);
  expect(heard[2]).toEqual(["a"]);
});

it("has listeners look at an interval, and after own changes, while there is no stream", async () => {
  status = 404;
  start(30);
  await until(() => heard.length >= 3);
  expect(new Set(heard)).toEqual(new Set([undefined]));
  // A server without a stream is not asked again and again.
  expect(requests).toBe(1);
  events.close();
  start(60_000);
  heard = [];
  events.ownChange();
  await until(() => heard.length === 1);
});

it("does not count own changes twice while there is a stream", async () => {
  start();
  await until(() => heard.length === 1);
  events.ownChange();
  await sleep(30);
  expect(heard).toHaveLength(1);
});

it("tells nobody after it was closed, and reports a listener that throws", async () => {
  start();
  await until(() => heard.length === 1);
  events.subscribe(() => {
    throw new Error("on purpose");
  });
  streams[0]?.write('data: {"queues":["a"]}\n\n');
  await until(() => errors.length === 1 && heard.length === 2);
  events.close();
  streams[0]?.write('data: {"queues":["b"]}\n\n');
  await sleep(30);
  expect(heard).toHaveLength(2);
});
