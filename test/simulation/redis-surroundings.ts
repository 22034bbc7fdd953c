/**
 * A real Redis server behind connections that the seed rules: a command may be refused before it is sent, refused by the server as one
 * that is loading, read-only or without the script, run late, or run with its answer lost together with the connection.
 */

import { EventEmitter } from "node:events";
import { Redis } from "ioredis";
import type { Backend } from "../../src/backend/contract.ts";
import { loadLibrary, type MakeRawCommand, type RedisClient } from "../../src/backend/redis/client.ts";
import { openRedis } from "../../src/backend/redis/index.ts";
import { PROGRAMS } from "../../src/backend/redis/programs.ts";
import type { Ground, Move, Surroundings } from "./run.ts";

/** A command of ioredis, as far as it is handled here. */
interface Command {
  readonly name: string;
  readonly promise: Promise<unknown>;
  toWritable(): Buffer | string;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

/** The server of a test, and one plain connection to it, which answers one command at a time. */
export interface Server {
  readonly redis: Redis;
  readonly makeRaw: MakeRawCommand;
}

/** Connects to a server. */
export async function connectServer(url: string): Promise<Server> {
  const redis = new Redis(url);
  // A run must not depend on which scripts earlier ones have made known: all are, and NOSCRIPT is answered where the seed says so.
  for (const { text } of Object.values(PROGRAMS)) await redis.script("LOAD", text);
  return { redis, makeRaw: (await loadLibrary()).makeRawCommand };
}

interface InAir {
  readonly client: SimulatedClient;
  readonly text: string;
  send(): Promise<unknown>;
  resolve(value: unknown): void;
  reject(error: unknown): void;
  /** Hands over the answer, once there is one. */
  answer: (() => void) | undefined;
}

/** One simulated connection, as openRedis makes it. Commands reach the server in their order, and answers come back in theirs. */
class SimulatedClient extends EventEmitter {
  status = "wait";
  readonly options = { host: "simulated", port: 0, db: 0 };
  readonly stream: { destroy(): void };
  readonly #server: Server;
  readonly #wire: Wire;
  air: InAir[] = [];

  constructor(server: Server, wire: Wire) {
    super();
    this.#server = server;
    this.#wire = wire;
    this.stream = { destroy: () => this.lose() };
    wire.clients.push(this);
  }

  async connect(): Promise<void> {
    this.status = "connect";
    this.emit("connect");
    this.status = "ready";
    this.emit("ready");
  }

  disconnect(): void {
    this.lose();
    this.status = "end";
  }

  /** The connection breaks. Nobody hears what its commands are answered; what was sent already may still reach the server. */
  lose(): void {
    if (this.status !== "ready") return;
    this.status = "reconnecting";
    const lost = this.air;
    this.air = [];
    for (const command of lost) {
      if (command.answer === undefined) this.#wire.late.commands.push(command);
      command.reject(new Error("Connection is closed."));
    }
    this.emit("close");
  }

  callBuffer(name: string, ...values: (string | Buffer)[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#fly({ client: this, text: name, send: () => this.#server.redis.callBuffer(name, values), resolve, reject, answer: undefined });
    });
  }

  sendCommand(command: Command): void {
    const bytes = Buffer.from(command.toWritable() as Buffer);
    const send = (): Promise<unknown> => {
      const raw = this.#server.makeRaw(command.name, bytes);
      this.#server.redis.sendCommand(raw as never);
      return raw.promise;
    };
    const { resolve, reject } = command;
    this.#fly({ client: this, text: command.name, send, resolve: resolve.bind(command), reject: reject.bind(command), answer: undefined });
  }

  subscribe(): Promise<unknown> {
    return Promise.resolve(1);
  }

  #fly(command: InAir): void {
    if (this.status !== "ready") {
      command.reject(new Error("Stream isn't writeable and enableOfflineQueue options is false"));
      return;
    }
    if (this.#wire.isOpening) {
      command.send().then(command.resolve, command.reject);
      return;
    }
    this.air.push(command);
  }
}

/**
 * Copies of commands whose connection is gone. They may arrive even after the same call was sent again on a new connection and answered, and must
 * then do nothing.
 */
interface LateCopies {
  commands: InAir[];
}

/** All connections of one run. */
class Wire {
  isOpening = false;
  readonly clients: SimulatedClient[] = [];
  /** Commands that lie in the sockets of connections that are gone. */
  readonly late: LateCopies;

  constructor(late: LateCopies) {
    this.late = late;
  }

  moves(faulty: boolean): Move[] {
    const moves = this.clients.flatMap((client, index) => this.#ofClient(client, `connection ${index}`, faulty));
    const [first] = this.late.commands;
    if (first !== undefined) {
      moves.push({ weight: 2, text: `${first.text} of a lost connection is run late`, make: () => this.#runLate(first) });
      moves.push({ weight: 2, text: `${first.text} of a lost connection never arrives`, make: () => void this.late.commands.shift() });
    }
    return moves;
  }

  async #runLate(command: InAir): Promise<void> {
    this.late.commands.shift();
    await command.send().catch(() => {});
  }

  #ofClient(client: SimulatedClient, name: string, faulty: boolean): Move[] {
    if (client.status === "reconnecting") return [{ weight: 4, text: `${name} is made anew`, make: () => client.connect() }];
    const moves: Move[] = [];
    const unsent = client.air.find((command) => command.answer === undefined);
    const [first] = client.air;
    if (unsent !== undefined) {
      moves.push({ weight: 6, text: `${name}: ${unsent.text} is run`, make: () => this.#run(unsent) });
      if (faulty) {
        for (const error of [
          "LOADING Redis is loading",
          "READONLY You can't write",
          "NOSCRIPT No matching script",
          "BUSY a script is running",
        ]) {
          if (error.startsWith("NOSCRIPT") && unsent.text !== "evalsha") continue;
          const refuse = (): void => unsent.reject(Object.assign(new Error(error), { name: "ReplyError" }));
          moves.push({ weight: 0.15, text: `${name}: ${unsent.text} is refused, ${error}`, make: () => this.#answerWith(unsent, refuse) });
        }
      }
    }
    if (first?.answer !== undefined) {
      moves.push({ weight: 6, text: `${name}: the answer of ${first.text} arrives`, make: () => this.#arrive(client, first) });
    }
    if (faulty && client.status === "ready" && client.air.length > 0) {
      moves.push({ weight: 0.6, text: `${name} breaks`, make: () => client.lose() });
    }
    return moves;
  }

  async #run(command: InAir): Promise<void> {
    await command.send().then(
      (value) => this.#answerWith(command, () => command.resolve(value)),
      (error: unknown) => this.#answerWith(command, () => command.reject(error)),
    );
  }

  #answerWith(command: InAir, answer: () => void): void {
    command.answer = answer;
  }

  #arrive(client: SimulatedClient, command: InAir): void {
    client.air.shift();
    command.answer?.();
  }
}

let namespaces = 0;

/** Namespaces of one server, a new one for each run. */
export function redisSurroundings(server: () => Server): (ground: Ground) => Surroundings {
  return (ground) => {
    const { clock, random, tell } = ground;
    namespaces += 1;
    const namespace = `simulation-${process.pid}-${namespaces}`;
    const wire = new Wire({ commands: [] });
    const clients: SimulatedClient[] = [];
    const opened: Backend[] = [];
    return {
      // Time is the server's and real: nothing ends by it during a run.
      span: { leasesMs: [600_000, 3_600_000], delaysMs: [3_600_000], isExact: false, sendsAgain: true },
      isTimed: false,
      hasLate: () => wire.late.commands.length > 0,
      isTold: false,
      mostUnknown: 4,
      rememberMs: 600_000,
      async open(client) {
        const template = { status: "wait", duplicate: () => new SimulatedClient(server(), wire) } as unknown as RedisClient;
        wire.isOpening = true;
        const backend = await openRedis({
          client: template,
          namespace,
          clock,
          random,
          sweepIntervalMs: 3_600_000,
          commandTimeoutMs: 2_000,
          outageMs: 4_000,
          onError: (error) => tell(`told: ${(error as { code?: string }).code ?? String(error)}`),
        });
        wire.isOpening = false;
        opened.push(backend);
        clients[client] = wire.clients.at(-1) as SimulatedClient;
        return backend;
      },
      crash(client) {
        const gone = clients[client];
        if (gone === undefined) return;
        gone.removeAllListeners();
        gone.lose();
        gone.status = "end";
      },
      moves: (faulty) => wire.moves(faulty),
      async end() {
        for (const client of wire.clients) {
          client.removeAllListeners();
          client.status = "end";
        }
        const keys = await server().redis.keys(`*${namespace}*`);
        if (keys.length > 0) await server().redis.unlink(...keys);
      },
    };
  };
}
