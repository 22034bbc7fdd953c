/** The routes of the AGFS file API as a table: what is asked for at which path, and whether clients may repeat it. */

import { QueueFSError } from "../../core/errors.ts";
import { capabilities, health, mounts, plugins, ready, version } from "./about.ts";
import type { AgfsCall, Step } from "./call.ts";
import { digest } from "./digest.ts";
import type { FormQuery } from "./form.ts";
import { grep } from "./grep.ts";
import { list, stat } from "./looks.ts";
import { readFile } from "./reads.ts";
import type { Service } from "./service.ts";
import { createFile, makeDirectory, remove, touch, truncate, writeAlias, writeFile } from "./writes.ts";

/** Does what is asked for. */
export type Handler = (call: AgfsCall, query: FormQuery, service: Service) => Promise<Response>;

/** One route. */
export interface AgfsRoute {
  /** Below `/api/v1`. */
  readonly path: string;
  readonly methods: readonly string[];
  readonly summary: string;
  /** What a repeat does; of a write it depends on the file, see {@link stepOf}. */
  readonly step: Step;
  readonly handle: Handler;
}

function row(methods: string, path: string, step: Step, handle: Handler, summary: string): AgfsRoute {
  return { path, methods: methods.split(" "), step, handle, summary };
}

function refused(methods: string, path: string, what: string): AgfsRoute {
  return row(
    methods,
    path,
    "repeatable",
    async () => {
      throw new QueueFSError("unsupported", `${what} not supported: this server offers queues at one mount point, and nothing else`);
    },
    `${what} not supported (501)`,
  );
}

const ANY = "GET POST PUT DELETE";

/** All routes. */
export const AGFS_ROUTES: readonly AgfsRoute[] = [
  row("GET", "/files", "read", readFile, "reads a file"),
  row("PUT", "/files", "once", writeFile, "writes a file"),
  row("POST", "/files", "repeatable", createFile, "makes a file; has no effect on control files"),
  row("DELETE", "/files", "repeatable", remove, "removes a queue"),
  row("GET", "/directories", "read", list, "lists a directory"),
  row("POST", "/directories", "repeatable", makeDirectory, "makes a queue"),
  row("DELETE", "/directories", "repeatable", remove, "removes a queue"),
  row("GET", "/stat", "read", stat, "tells of a file or directory"),
  row("POST", "/truncate", "repeatable", truncate, "has no effect"),
  row("POST", "/touch", "repeatable", touch, "has no effect"),
  row("POST", "/grep", "read", grep, "searches files"),
  row("POST", "/digest", "read", digest, "a checksum of a file"),
  row("POST", "/mkdir", "repeatable", makeDirectory, "makes a queue"),
  row("POST", "/write", "once", writeAlias, "writes a file"),
  row("GET", "/list", "read", list, "lists a directory"),
  row(ANY, "/health", "read", health, "whether the store answers"),
  row("GET", "/ready", "read", ready, "whether the store answers, by its status"),
  row("GET", "/version", "read", version, "the version"),
  row("GET", "/capabilities", "read", capabilities, "what is offered"),
  row("GET", "/mounts", "read", mounts, "the mount point"),
  row("GET", "/plugins", "read", plugins, "the one plugin"),
  refused("POST", "/mount", "mounting is"),
  refused("POST", "/unmount", "unmounting is"),
  refused("POST", "/plugins/load", "plugins of others are"),
  refused("POST", "/plugins/unload", "plugins of others are"),
  refused("POST", "/rename", "renaming queues and control files is"),
  refused("POST", "/chmod", "changing permissions is"),
  refused("POST", "/symlink", "links are"),
  refused("GET", "/readlink", "links are"),
  refused(ANY, "/handles", "file handles are"),
  refused(ANY, "/handles/*", "file handles are"),
];

/** Files of which a second write does no more than the first: a receipt or id is acked once, and a lease that is renewed twice is renewed. */
const REPEATABLE_FILES: ReadonlySet<string> = new Set(["ack", ".extend"]);

/** What a repeat of a request would do. */
export function stepOf(route: AgfsRoute, query: FormQuery): Step {
  if (route.step !== "once") return route.step;
  const path = query.text("path") ?? "";
  return REPEATABLE_FILES.has(path.slice(path.lastIndexOf("/") + 1)) ? "repeatable" : "once";
}
