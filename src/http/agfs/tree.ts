/** What clients see as one tree: the directories above the mount point, the queues, and the README among them. */

import type { Backend } from "../../backend/contract.ts";
import { type Clock, systemClock } from "../../core/clock.ts";
import { READ_ONLY } from "../../core/control-files.ts";
import { isQueueFSError, QueueFSError, quote } from "../../core/errors.ts";
import { DIRECTORY_MODE, type FileStat, type ParsedPath, parsePath, QueueFS } from "../../fs/index.ts";
import { describeFile, type FileInfo } from "./file-info.ts";
import { lastOf, Mount, type Place, README_NAME, under } from "./mount.ts";
import { readmeText } from "./readme.ts";

/** What a path leads to, once the README is told from a queue of that name. */
export type Target =
  | Exclude<Place, { kind: "inside" }>
  | { readonly kind: "readme"; readonly path: string }
  /** `parsed` says what it names; whether that exists is another question. */
  | { readonly kind: "inside"; readonly path: string; readonly inner: string; readonly parsed: ParsedPath };

/** Options of {@link Tree}. */
export interface TreeOptions {
  readonly mount: string;
  readonly leaseMs: number;
  readonly clock?: Clock;
  readonly onError?: (error: unknown) => void;
}

const README_PATH = `/${README_NAME}`;

/** The tree over one store, which stays the caller's to close, after this. */
export class Tree {
  readonly files: QueueFS;
  readonly mount: Mount;
  readonly readme: Uint8Array;
  readonly #openedAtMs: number;

  /** @throws QueueFSError `invalid-argument` */
  constructor(backend: Backend, { mount, leaseMs, clock = systemClock, onError }: TreeOptions) {
    this.mount = new Mount(mount);
    this.files = new QueueFS(backend, { leaseMs, clock, followChanges: true, ...(onError === undefined ? {} : { onError }) });
    this.readme = new TextEncoder().encode(readmeText(this.mount.path));
    this.#openedAtMs = clock.wallMs();
  }

  /** What a path leads to. @throws QueueFSError `path-not-found`, `invalid-name` */
  async target(path: string): Promise<Target> {
    const place = this.mount.place(path);
    if (place.kind !== "inside") return place;
    if (place.inner === README_PATH && !(await this.#hasQueueNamedReadme())) return { kind: "readme", path: place.path };
    return { ...place, parsed: parsePath(place.inner) };
  }

  /** What is known of a file or directory, without an effect. */
  async stat(target: Target): Promise<FileInfo> {
    if (target.kind === "readme") return this.#describeReadme();
    if (target.kind === "above") return this.#describeAbove(lastOf(target.path), target.path === "/");
    const stat = await this.files.stat(target.inner);
    return describeFile(stat.role === "root" ? { ...stat, name: lastOf(target.path) } : stat);
  }

  /** What is in a directory, the README first. @throws QueueFSError `not-a-directory` */
  async list(target: Target): Promise<FileInfo[]> {
    if (target.kind === "readme") throw new QueueFSError("not-a-directory", `${quote(target.path)} is not a directory`);
    if (target.kind === "above") return [this.#describeAbove(target.child, false, under(target.path, target.child))];
    const stats = await this.files.readdir(target.inner);
    const isRoot = target.parsed.kind === "root";
    const hidesReadme = !isRoot || stats.some(({ name }) => name === README_NAME);
    return [...(hidesReadme ? [] : [this.#describeReadme()]), ...stats.map(describeFile)];
  }

  /** Ends the file face. */
  close(): Promise<void> {
    return this.files.close();
  }

  async #hasQueueNamedReadme(): Promise<boolean> {
    try {
      await this.files.stat(README_PATH);
      return true;
    } catch (error) {
      if (isQueueFSError(error, "queue-not-found")) return false;
      throw error;
    }
  }

  #describeReadme(): FileInfo {
    return {
      ...describeFile(this.#fixed(README_NAME, "file")),
      size: this.readme.byteLength,
      meta: { Name: "queuefs", Type: "doc", Content: {} },
    };
  }

  #describeAbove(name: string, isRoot: boolean, path = ""): FileInfo {
    const type = isRoot ? "root" : path === this.mount.path ? "mount-point" : "directory";
    return { ...describeFile(this.#fixed(name, "directory")), meta: { Name: "queuefs", Type: type, Content: {} } };
  }

  #fixed(name: string, kind: FileStat["kind"]): FileStat {
    const mode = kind === "file" ? READ_ONLY : DIRECTORY_MODE;
    return { name, kind, role: kind === "file" ? "control" : "directory", mode, size: 0, modifiedAtMs: this.#openedAtMs };
  }
}
