/** What is asked of a server before work is trusted to it. */

import { QueueFSError } from "../../core/errors.ts";
import type { Finding } from "../../core/message.ts";
import type { Argument } from "./client.ts";

/** What a server says of itself; settings that it does not show are absent. */
export interface ServerFacts {
  /** `redis` or `valkey`. */
  readonly product: string;
  readonly version: string;
  readonly role: string | undefined;
  readonly maxMemoryBytes: number | undefined;
  readonly evictionPolicy: string | undefined;
  readonly usesAppendOnlyFile: boolean | undefined;
  readonly appendFsync: string | undefined;
  readonly save: string | undefined;
}

/** Oldest version that is taken: the first that tells errors of scripts as they were raised. The tests run on it. */
const OLDEST = [7, 0] as const;

type Ask = (name: string, ...values: Argument[]) => Promise<unknown>;

/** Asks a server about itself; `undefined` when this user may not ask. */
export async function askServer(ask: Ask): Promise<ServerFacts | undefined> {
  let text: string;
  try {
    text = String(await ask("info"));
  } catch (error) {
    if (isForbidden(error)) return undefined;
    throw error;
  }
  const facts = new Map<string, string>();
  for (const line of text.split("\r\n")) {
    const colon = line.indexOf(":");
    if (colon > 0) facts.set(line.slice(0, colon), line.slice(colon + 1));
  }
  const number = (name: string): number | undefined => (facts.has(name) ? Number(facts.get(name)) : undefined);
  return {
    product: facts.has("valkey_version") ? "valkey" : "redis",
    version: facts.get("valkey_version") ?? facts.get("redis_version") ?? "0",
    role: facts.get("role"),
    maxMemoryBytes: number("maxmemory"),
    evictionPolicy: facts.get("maxmemory_policy"),
    usesAppendOnlyFile: facts.has("aof_enabled") ? facts.get("aof_enabled") === "1" : undefined,
    appendFsync: await askSetting(ask, "appendfsync"),
    save: await askSetting(ask, "save"),
  };
}

// Managed services often forbid CONFIG: what is not known is not judged.
async function askSetting(ask: Ask, name: string): Promise<string | undefined> {
  try {
    const reply = await ask("config", "get", name);
    return Array.isArray(reply) && reply.length === 2 ? String(reply[1]) : undefined;
  } catch {
    return undefined;
  }
}

function isForbidden(error: unknown): boolean {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return cause instanceof Error && /^(NOPERM|ERR unknown command)/.test(cause.message);
}

function isOlder(version: string, than: readonly [number, number]): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major < than[0] || (major === than[0] && minor < than[1]);
}

function evicts(facts: ServerFacts): boolean {
  return (facts.maxMemoryBytes ?? 0) > 0 && facts.evictionPolicy !== undefined && facts.evictionPolicy !== "noeviction";
}

/**
 * Refuses a server that cannot keep the promises.
 *
 * @throws QueueFSError `store-unsuitable`
 */
export function checkServer(facts: ServerFacts, location: string, allowEviction: boolean): void {
  const refuse = (what: string): QueueFSError => new QueueFSError("store-unsuitable", `the server at ${location} ${what}`);
  if (isOlder(facts.version, OLDEST))
    throw refuse(`is ${facts.product} ${facts.version}; QueueFS needs Redis ${OLDEST.join(".")} or newer, or Valkey`);
  if (facts.role === "slave")
    throw refuse("is a replica, whose numbers are those of a moment ago and which takes no writes; connect to the master");
  if (evicts(facts) && !allowEviction) {
    throw refuse(
      `deletes keys when its memory is full (maxmemory-policy ${facts.evictionPolicy}), and messages with them; set maxmemory-policy noeviction, or pass allowEviction`,
    );
  }
}

/** What the settings of a server mean for the promises. */
export function judgeServer(facts: ServerFacts | undefined): Finding[] {
  if (facts === undefined) {
    return [
      {
        severity: "warning",
        check: "server",
        message: "this user may not ask the server about itself (INFO); version, eviction and persistence are not known",
      },
    ];
  }
  return [judgeVersion(facts), judgeEviction(facts), judgePersistence(facts)];
}

function judgeVersion({ product, version, role }: ServerFacts): Finding {
  if (role === "slave") return { severity: "error", check: "versions", message: "the server has become a replica; connect to the master" };
  return { severity: "ok", check: "versions", message: `${product} ${version}` };
}

function judgeEviction(facts: ServerFacts): Finding {
  const check = "eviction-policy";
  if (facts.evictionPolicy === undefined || facts.maxMemoryBytes === undefined) {
    return {
      severity: "warning",
      check,
      message: "the server does not say what it does when its memory is full; make sure that it is noeviction",
    };
  }
  if (evicts(facts)) {
    return {
      severity: "error",
      check,
      message: `maxmemory-policy is ${facts.evictionPolicy}: a full server deletes messages; set maxmemory-policy noeviction`,
    };
  }
  if (facts.evictionPolicy !== "noeviction") {
    return {
      severity: "warning",
      check,
      message: `maxmemory-policy is ${facts.evictionPolicy}, harmless only while maxmemory is 0; set noeviction before setting maxmemory`,
    };
  }
  return { severity: "ok", check, message: "a full server refuses new messages and deletes none (noeviction)" };
}

function judgePersistence(facts: ServerFacts): Finding {
  const check = "persistence";
  if (facts.usesAppendOnlyFile === undefined) {
    return {
      severity: "warning",
      check,
      message: "the server does not say whether it writes to disk; without an append-only file its end loses messages",
    };
  }
  if (!facts.usesAppendOnlyFile) {
    const snapshots = facts.save
      ? "writes only snapshots, so its end loses what came after the last one"
      : "writes nothing to disk, so its end loses everything";
    return { severity: "warning", check, message: `the server ${snapshots}; set appendonly yes` };
  }
  if (facts.appendFsync !== "always") {
    const policy = facts.appendFsync ?? "unknown";
    return {
      severity: "warning",
      check,
      message: `the append-only file is synced "${policy}": a power loss, or the end of the server while the disk is slow, loses up to two seconds; set appendfsync always`,
    };
  }
  return { severity: "ok", check, message: "every change is on disk before it is answered (appendonly yes, appendfsync always)" };
}
