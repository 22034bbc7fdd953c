/** Files and directories as AGFS clients are told of them. */

import { formatTimestamp } from "../../core/codec.ts";
import type { FileStat } from "../../fs/index.ts";

/** What `stat` and listings tell. */
export interface FileInfo {
  readonly name: string;
  readonly size: number;
  /** Permission bits only: agfs-fuse puts the type bits to them. */
  readonly mode: number;
  /** RFC 3339 with a fraction. */
  readonly modTime: string;
  readonly isDir: boolean;
  /** With capitals, and never null: agfs-shell asks it for values. */
  readonly meta: { readonly Name: string; readonly Type: string; readonly Content: object };
}

/** What AGFS calls the kinds of things in a queue file system. */
const TYPES: { readonly [Role in FileStat["role"]]: string } = {
  root: "mount-point",
  directory: "directory",
  queue: "queue",
  control: "control",
  tasks: "directory",
  task: "task",
};

/** The files that AGFS calls status files. */
const STATUS_FILES: ReadonlySet<string> = new Set(["size", "status"]);

/** A file or directory of the file face. */
export function describeFile({ name, kind, role, mode, size, modifiedAtMs }: FileStat): FileInfo {
  const type = role === "control" && STATUS_FILES.has(name) ? "status" : TYPES[role];
  return {
    name,
    size,
    mode,
    modTime: formatTimestamp(modifiedAtMs),
    isDir: kind === "directory",
    meta: { Name: "queuefs", Type: type, Content: {} },
  };
}
