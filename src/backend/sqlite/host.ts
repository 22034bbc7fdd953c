/** What of the host decides whose lease has ended: which boot this is, and whether a process still exists. Facts of proc(5). */

import { execFileSync } from "node:child_process";
import { readFileSync, readlinkSync } from "node:fs";
import { uptime } from "node:os";

/** A process as another process of the same host can recognise it. */
export interface ProcessIdentity {
  readonly processId: number;
  /** When it started, in whatever form the system tells; empty when it does not. Process ids are used again, the pair is not. */
  readonly started: string;
  /** In which namespace its id counts; empty where there are none. A process of another namespace cannot be judged. */
  readonly namespace: string;
}

/** Names this run of the host: monotonic times of another run say nothing. */
export function readBootId(): string {
  if (process.platform === "linux") return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  if (process.platform === "darwin") return execFileSync("sysctl", ["-n", "kern.bootsessionuuid"], { encoding: "utf8" }).trim();
  // Elsewhere: the time of the boot to the hour, which a small step of the wall clock seldom moves.
  return `boot-${Math.round((Date.now() / 1000 - uptime()) / 3600)}`;
}

/** When the process started, or `undefined` when it does not exist. */
function startOf(processId: number): string | undefined {
  if (process.platform === "linux") {
    try {
      // Field 22; the second one, the name in parentheses, may hold spaces. State Z: dead, waiting for its parent.
      const fields = readFileSync(`/proc/${processId}/stat`, "latin1")
        .replace(/^.*\) /s, "")
        .split(" ");
      return fields[0] === "Z" || fields[0] === "X" ? undefined : (fields[19] ?? "");
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code;
      if (code !== "ENOENT" && code !== "ESRCH") return "";
      // A /proc mounted with hidepid hides living processes of other users: let the signal below decide.
    }
  }
  try {
    process.kill(processId, 0);
    return "";
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ESRCH" ? undefined : "";
  }
}

function namespaceOfThisProcess(): string {
  try {
    return process.platform === "linux" ? readlinkSync("/proc/self/ns/pid") : "";
  } catch {
    // Without a name for the namespace, processes of others cannot be told apart from our own: judge nobody but ourselves.
    return `unknown-${process.pid}-${Date.now()}`;
  }
}

let ownIdentity: ProcessIdentity | undefined;

/** This process. */
export function identifyThisProcess(): ProcessIdentity {
  ownIdentity ??= { processId: process.pid, started: startOf(process.pid) ?? "", namespace: namespaceOfThisProcess() };
  return ownIdentity;
}

/** Whether the process provably no longer exists. In doubt, no: its lease then ends by itself. */
export function isProvablyGone(identity: ProcessIdentity): boolean {
  if (identity.namespace !== identifyThisProcess().namespace) return false;
  const started = startOf(identity.processId);
  return started === undefined || (started !== "" && identity.started !== "" && started !== identity.started);
}
