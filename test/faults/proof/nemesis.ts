/** Does harm, chosen by a seed: to clients, connections and the server. */

import { setTimeout as sleep } from "node:timers/promises";
import type { Random } from "../../../src/core/clock.ts";
import type { TcpProxy } from "../../support/tcp-proxy.ts";
import type { Fault } from "./operation.ts";
import type { FaultyServer } from "./place.ts";

/** A client as the nemesis sees it. */
export interface Victim {
  readonly name: string;
  readonly proxy?: TcpProxy;
  signal(name: "SIGSTOP" | "SIGCONT"): void;
  /** Kills it; resolves when it is gone. Another takes its place. */
  kill(): Promise<void>;
  stepWallClock(byMs: number): void;
}

/** What it works with. */
export interface Surroundings {
  readonly random: Random;
  readonly server: FaultyServer | undefined;
  /** Whether a stopped client can hold up the others, since it may hold the lock of the file. */
  readonly stopsHoldOthers: boolean;
  readonly leaseMs: number;
  /** Whether the first harm is to kill the server. */
  readonly killsServerFirst: boolean;
  victims(): readonly Victim[];
  now(): number;
  onFault(fault: Fault): void;
}

/** Does one harm after the other until told to end; all is mended then. */
export class Nemesis {
  readonly #around: Surroundings;
  #isOver = false;
  readonly #mending = new Set<Promise<void>>();

  constructor(around: Surroundings) {
    this.#around = around;
  }

  #upTo(limit: number): number {
    return Math.floor(this.#around.random.fraction() * limit);
  }

  /** Between two bounds, in milliseconds. */
  #between(low: number, high: number): number {
    return low + this.#upTo(high - low);
  }

  /** Records a fault from now until `undo` is done. */
  async #during(kind: string, process: string, harm: () => Promise<void>): Promise<void> {
    const begin = this.#around.now();
    await harm();
    this.#around.onFault({ kind, process, begin, end: this.#around.now() });
  }

  async run(): Promise<void> {
    const { server, killsServerFirst } = this.#around;
    if (killsServerFirst && server !== undefined) {
      await this.#rest(2_000);
      await this.#harmServer(server, 0);
    }
    while (!this.#isOver) {
      await this.#rest(this.#between(200, 1_200));
      const victims = this.#around.victims();
      const victim = victims[this.#upTo(victims.length)];
      const dice = this.#around.random.fraction();
      if (victim === undefined || this.#isOver) continue;
      const harm = this.#choose(victim, dice);
      this.#mending.add(harm);
      void harm.finally(() => this.#mending.delete(harm));
      // Now and then two at once.
      if (this.#around.random.fraction() < 0.7) await harm;
    }
  }

  /** Ends and mends. */
  async end(): Promise<void> {
    this.#isOver = true;
    await Promise.all([...this.#mending]);
  }

  async #rest(ms: number): Promise<void> {
    const untilMs = performance.now() + ms;
    while (!this.#isOver && performance.now() < untilMs) await sleep(Math.min(50, untilMs - performance.now() + 1));
  }

  #choose(victim: Victim, dice: number): Promise<void> {
    const { server } = this.#around;
    const { proxy } = victim;
    const hasServer = server !== undefined && proxy !== undefined;
    if (dice < (hasServer ? 0.25 : 0.45)) return this.#during("kill", victim.name, () => victim.kill());
    if (dice < (hasServer ? 0.45 : 0.95)) return this.#stop(victim);
    if (dice < 0.5 || !hasServer) {
      return this.#during("wall clock step", victim.name, async () => victim.stepWallClock(this.#between(-7_200_000, 7_200_000)));
    }
    if (dice < 0.85) return this.#disturb(victim.name, proxy, (dice - 0.5) / 0.35);
    return this.#harmServer(server, (dice - 0.85) / 0.15);
  }

  #stop(victim: Victim): Promise<void> {
    const isLong = this.#upTo(3) === 0;
    const ms = isLong ? this.#between(this.#around.leaseMs, this.#around.leaseMs * 2) : this.#between(50, this.#around.leaseMs);
    const concerned = this.#around.stopsHoldOthers ? "server" : victim.name;
    return this.#during(isLong ? "stop beyond the lease" : "stop", concerned, async () => {
      victim.signal("SIGSTOP");
      await this.#rest(ms);
      victim.signal("SIGCONT");
    });
  }

  async #disturb(name: string, proxy: TcpProxy, dice: number): Promise<void> {
    if (dice < 0.3) return this.#during("cut", name, async () => proxy.cut());
    if (dice < 0.6) {
      return this.#during("lost replies", name, async () => {
        proxy.losesReplies = true;
        await this.#rest(this.#between(20, 1_000));
        proxy.cut();
        proxy.losesReplies = false;
      });
    }
    if (dice < 0.85) {
      const isCut = dice < 0.75;
      return this.#during(isCut ? "late requests" : "stalled connection", name, async () => {
        proxy.keepsRequests = true;
        await this.#rest(this.#between(20, 2_500));
        proxy.keepsRequests = false;
        if (isCut) {
          proxy.cut();
          await this.#rest(this.#between(0, 500));
        }
        // The server may be away meanwhile and never take them.
        await Promise.race([proxy.deliverLate(), sleep(1_000)]);
        // What comes after what was kept may be half a request.
        proxy.cut();
      });
    }
    return this.#during("refused connections", name, async () => {
      proxy.refusesConnections = true;
      proxy.cut();
      await this.#rest(this.#between(50, 2_000));
      proxy.refusesConnections = false;
    });
  }

  #isServerHarmed = false;

  async #harmServer(server: FaultyServer, dice: number): Promise<void> {
    if (this.#isServerHarmed) return;
    this.#isServerHarmed = true;
    const isKill = dice < 0.5;
    await this.#during(isKill ? "server killed" : "server stopped", "server", async () => {
      if (isKill) {
        await server.kill();
        await this.#rest(this.#between(0, 1_500));
        await server.start();
      } else {
        server.pause();
        await this.#rest(this.#between(50, 3_000));
        server.proceed();
      }
    });
    this.#isServerHarmed = false;
  }
}
