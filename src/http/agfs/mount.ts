/** Where in the tree that clients see the queues lie. */

import { QueueFSError, quote } from "../../core/errors.ts";
import { parseQueueName } from "../../core/names.ts";

/** The name of the file that says how the others are used. */
export const README_NAME = "README";

/** What a path of a client leads to. */
export type Place =
  /** A directory above the mount point; `child` is the only thing in it. */
  | { readonly kind: "above"; readonly path: string; readonly child: string }
  /** Something of the file face, at `inner`. */
  | { readonly kind: "inside"; readonly path: string; readonly inner: string };

/** A path as it is meant: absolute, without empty components, `.` and `..`, which stops at the root. */
export function cleanPath(path: string): string {
  const components: string[] = [];
  for (const component of path.split("/")) {
    if (component === "..") components.pop();
    else if (component !== "" && component !== ".") components.push(component);
  }
  return `/${components.join("/")}`;
}

/** The last component of a clean path; `/` for the root. */
export function lastOf(path: string): string {
  return path === "/" ? path : path.slice(path.lastIndexOf("/") + 1);
}

/** A path below a clean one. */
export function under(path: string, name: string): string {
  return path === "/" ? `/${name}` : `${path}/${name}`;
}

/** The point at which the queues are mounted. */
export class Mount {
  /** A clean path. */
  readonly path: string;

  /** @throws QueueFSError `invalid-argument` for a path that is not absolute, or whose components could not be names of queues */
  constructor(path: string) {
    this.path = cleanPath(path);
    if (!path.startsWith("/")) throw new QueueFSError("invalid-argument", `a mount point must be an absolute path, got ${quote(path)}`);
    if (this.path === "/") return;
    try {
      parseQueueName(this.path.slice(1));
    } catch (error) {
      throw new QueueFSError("invalid-argument", `${quote(path)} cannot be a mount point: ${error instanceof Error ? error.message : ""}`);
    }
  }

  /** What lies at a path. @throws QueueFSError `path-not-found` beside the mount point */
  place(given: string): Place {
    const path = cleanPath(given);
    if (this.path === "/") return { kind: "inside", path, inner: path };
    if (path === this.path) return { kind: "inside", path, inner: "/" };
    if (path.startsWith(`${this.path}/`)) return { kind: "inside", path, inner: path.slice(this.path.length) };
    const above = path === "/" ? "/" : `${path}/`;
    if (this.path.startsWith(above)) {
      const [child = ""] = this.path.slice(above.length).split("/", 1);
      return { kind: "above", path, child };
    }
    throw new QueueFSError("path-not-found", `${quote(path)} not found: all there is lies in ${this.path}, where the queues are`);
  }
}
