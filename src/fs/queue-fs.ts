/** Queues as files: paths in, bytes out, over any backend. */

import type { Backend } from "../backend/contract.ts";
import { type Clock, systemClock } from "../core/clock.ts";
import { CONTROL_FILES, type ControlFileName, isControlFileName, READ_ONLY } from "../core/control-files.ts";
import { closedError, isQueueFSError, QueueFSError, quote } from "../core/errors.ts";
import { DEFAULT_PLAIN_LEASE_MS, MAX_LEASE_MS, MIN_LEASE_MS } from "../core/limits.ts";
import type { DeliveryOwner, QueueStatus } from "../core/message.ts";
import type { QueueName } from "../core/names.ts";
import { checkInteger, type OptionTable, readOptions } from "../core/options.ts";
import type { Task } from "../core/task.ts";
import { ChangeTimes } from "./change-times.ts";
import type { ControlCall } from "./control-reads.ts";
import { readHandler, writeHandler } from "./control-table.ts";
import { checkBytes, type WriteCall } from "./control-writes.ts";
import { directoryNotFound, listDirectory, roleOf } from "./directory.ts";
import { OpenFile } from "./handle.ts";
import { isADirectory, notADirectory, type ParsedPath, parseNewDirectory, parsePath, TASK_WAIT, TASKS_DIRECTORY } from "./path.ts";
import type {
  FileChange,
  FileHandle,
  FilePath,
  FileRole,
  FileStat,
  FileSystemPort,
  OpenOptions,
  ReadOptions,
  RemoveOptions,
  WriteAnswer,
  WriteOptions,
} from "./port.ts";
import { ReadSide } from "./read-side.ts";
import { listTasks, readTask, readTaskWait } from "./task-files.ts";
import { Watch } from "./watch.ts";
import { WriteSide } from "./write-side.ts";

/** Permission bits of every directory. */
export const DIRECTORY_MODE = 0o755;

/** Options of {@link QueueFS}. */
export interface QueueFSOptions {
  /** How long a message read from `dequeue` may be held, in milliseconds. 10 ms to 7 days, default 900,000 (15 minutes). */
  readonly leaseMs?: number;
  /** Who holds such a message. Default `receipt`: a program that reads a file and ends has not given it up. */
  readonly owner?: DeliveryOwner;
  /** The clock of modification times. Default: the host's. */
  readonly clock?: Clock;
  /** Whether the modification times of queues and control files follow what the store tells of changes. Default false. */
  readonly followChanges?: boolean;
  /** Gets failures that no caller waits for: releases after a reader had gone. The lease heals them. Default: they are dropped. */
  readonly onError?: (error: unknown) => void;
}

/** Options of {@link QueueFS}, as a table. */
export const QUEUE_FS_OPTIONS = {
  leaseMs: {
    type: "integer",
    minimum: MIN_LEASE_MS,
    maximum: MAX_LEASE_MS,
    default: DEFAULT_PLAIN_LEASE_MS,
    meaning: "lease of a read of dequeue, in milliseconds",
  },
  owner: { type: "choice", choices: ["process", "receipt"], default: "receipt", meaning: "who holds what was read from dequeue" },
  clock: { type: "object", meaning: "the clock of modification times" },
  followChanges: { type: "boolean", default: false, meaning: "whether modification times follow changes" },
  onError: { type: "object", meaning: "gets failures that no caller waits for" },
} as const satisfies OptionTable;

/** Options of {@link QueueFS.open}, as a table. */
export const OPEN_OPTIONS = {
  mode: { type: "choice", choices: ["read", "write", "read-write"], meaning: "which way" },
  eager: { type: "boolean", default: false, meaning: "whether control files act before the close" },
  id: { type: "text", meaning: "an id for the message enqueued" },
  requestId: { type: "text", meaning: "makes a repeated dequeue safe" },
} as const satisfies OptionTable;

/** Options of {@link QueueFS.read}, as a table. */
export const READ_OPTIONS = {
  requestId: OPEN_OPTIONS.requestId,
  signal: { type: "object", meaning: "ends the read" },
  onClaim: { type: "object", meaning: "gets what gives a claimed message back" },
} as const satisfies OptionTable;
/** Options of {@link QueueFS.rm}, as a table. */
export const REMOVE_OPTIONS = {
  recursive: { type: "boolean", default: false, meaning: "whether queues under it go too" },
  onlyComplete: { type: "boolean", default: false, meaning: "whether a queue with unacked messages is refused" },
} as const satisfies OptionTable;
/** Options of {@link QueueFS.write}, as a table. */
export const WRITE_OPTIONS = { id: OPEN_OPTIONS.id } as const satisfies OptionTable;

type ControlPath = Extract<ParsedPath, { kind: "control" }>;
type TaskPath = Extract<ParsedPath, { kind: "task" }>;

/**
 * The file face over one open backend, which stays the caller's to close, after this. Each method follows {@link FileSystemPort}.
 */
export class QueueFS implements FileSystemPort, AsyncDisposable {
  readonly #backend: Backend;
  readonly #leaseMs: number;
  readonly #owner: DeliveryOwner;
  readonly #onError: ((error: unknown) => void) | undefined;
  readonly #openedAtMs: number;
  readonly #changeTimes: ChangeTimes | undefined;
  readonly #files = new Set<OpenFile>();
  readonly #watches = new Set<Watch>();
  /** What goes on although no caller waits for it. */
  readonly #background = new Set<Promise<void>>();
  #closing: Promise<void> | undefined;

  /** @throws QueueFSError `invalid-argument` */
  constructor(backend: Backend, options?: QueueFSOptions) {
    const values = readOptions("QueueFS", QUEUE_FS_OPTIONS, options);
    this.#backend = backend;
    this.#leaseMs = values.leaseMs;
    this.#owner = values.owner;
    this.#onError = options?.onError;
    const clock = options?.clock ?? systemClock;
    this.#openedAtMs = clock.wallMs();
    this.#changeTimes = values.followChanges ? new ChangeTimes(backend, clock) : undefined;
  }

  /** See {@link FileSystemPort.read}. */
  async read(path: FilePath, options?: ReadOptions): Promise<Uint8Array> {
    const file = await this.#parseFile(path);
    const { requestId } = readOptions("read", READ_OPTIONS, options);
    const reading = this.#readSide(file, requestId);
    const opened = this.#opened(file, reading, undefined);
    try {
      return await reading.readAll(options?.signal, options?.onClaim);
    } finally {
      // Not waited for: when the reader has gone, its claim may still be in the air; when it has its bytes, there is nothing to do.
      this.#inBackground(opened.close());
    }
  }

  /** See {@link FileSystemPort.write}. */
  async write(path: FilePath, data: Uint8Array, options?: WriteOptions): Promise<WriteAnswer> {
    const file = writable(await this.#parseFile(path));
    const { id } = readOptions("write", WRITE_OPTIONS, options);
    const handler = writeHandler(file.file, file.shown);
    const call = this.#writeCall(file, id);
    const answer = await handler.act(call, checkBytes(data));
    return { bytesWritten: data.byteLength, ...answer };
  }

  /** See {@link FileSystemPort.open}. */
  async open(path: FilePath, options: OpenOptions): Promise<FileHandle> {
    const file = await this.#parseFile(path);
    const { mode, eager, id, requestId } = readOptions("open", OPEN_OPTIONS, options);
    if (mode === undefined) throw new QueueFSError("invalid-argument", "open takes a mode: read, write or read-write");
    const reading = mode === "write" ? undefined : this.#readSide(file, requestId);
    const writing = mode === "read" ? undefined : this.#writeSide(writable(file), id, eager);
    await this.#statOf(file);
    return this.#opened(file, reading, writing);
  }

  /** See {@link FileSystemPort.stat}. */
  async stat(path: FilePath): Promise<FileStat> {
    return this.#statOf(this.#parse(path));
  }

  /** See {@link FileSystemPort.readdir}. */
  async readdir(path: FilePath, options?: { readonly all?: boolean }): Promise<FileStat[]> {
    const parsed = this.#parse(path);
    const { all } = readOptions("readdir", { all: { type: "boolean", default: false, meaning: "whether dot files are listed" } }, options);
    if (parsed.kind === "tasks") return (await listTasks(this.#backend)).map((task) => this.#statTask(task.id, task));
    if (parsed.kind === "control" || parsed.kind === "task") {
      await this.#statOf(parsed);
      throw notADirectory(parsed.shown);
    }
    const listed = await listDirectory(this.#backend, parsed.kind === "root" ? "" : parsed.name);
    if (listed === undefined) throw directoryNotFound(parsed.shown);
    const files = listed.role === "queue" ? Object.keys(CONTROL_FILES).filter(isControlFileName) : [];
    return [
      ...(all && parsed.kind === "root" ? [this.#statDirectory(TASKS_DIRECTORY, "tasks")] : []),
      ...files.filter((file) => all || !file.startsWith(".")).map((file) => this.#statFile(file, queueAt(parsed, ""))),
      ...listed.children.map(([name, role]) => this.#statDirectory(name, role, queueAt(parsed, name))),
    ];
  }

  /** See {@link FileSystemPort.mkdir}. */
  async mkdir(path: FilePath): Promise<"created" | "exists"> {
    this.#checkOpen();
    const name = parseNewDirectory(path);
    return name === undefined ? "exists" : this.#backend.createQueue(name);
  }

  /** See {@link FileSystemPort.rm}. */
  async rm(path: FilePath, options?: RemoveOptions): Promise<number> {
    const parsed = this.#parse(path);
    const { recursive, onlyComplete } = readOptions("rm", REMOVE_OPTIONS, options);
    if (parsed.kind === "root") throw new QueueFSError("invalid-argument", "the root cannot be removed; remove the queues in it by name");
    if (parsed.kind === "task" && !parsed.isWait) {
      await this.#backend.removeTask(parsed.id);
      return 1;
    }
    if (parsed.kind !== "directory") {
      await this.#statOf(parsed);
      const instead = { control: "a control file; remove its queue", task: "no file by itself; remove its task" };
      const what = parsed.kind === "tasks" ? "always there; remove the tasks in it" : instead[parsed.kind];
      throw new QueueFSError("wrong-mode", `permission denied: ${quote(parsed.shown)} cannot be removed, since it is ${what}`);
    }
    if (onlyComplete) await this.#checkComplete(parsed, recursive);
    try {
      return await this.#backend.removeQueue(parsed.name, { recursive });
    } catch (error) {
      if (!isQueueFSError(error, "queue-not-found")) throw error;
      if (recursive || (await roleOf(this.#backend, parsed.name)) === undefined) throw directoryNotFound(parsed.shown);
      throw new QueueFSError(
        "not-empty",
        `directory ${quote(parsed.shown)} is not empty: queues lie under it; remove them first, or remove recursively`,
      );
    }
  }

  /** See {@link FileSystemPort.truncate}. */
  async truncate(path: FilePath, size: number): Promise<void> {
    const file = writable(await this.#parseFile(path));
    checkInteger("size", size, 0, Number.MAX_SAFE_INTEGER);
    writeHandler(file.file, file.shown);
    await this.#backend.status(file.name);
  }

  /** See {@link FileSystemPort.touch}. */
  async touch(path: FilePath): Promise<void> {
    await this.stat(path);
  }

  /** See {@link FileSystemPort.rename}. */
  async rename(from: FilePath, to: FilePath): Promise<never> {
    await this.#statOf(this.#parse(from));
    parseNewDirectory(to);
    throw new QueueFSError(
      "unsupported",
      "queues and control files cannot be renamed; make a new queue and let a consumer forward the messages",
    );
  }

  /** See {@link FileSystemPort.watch}. @throws QueueFSError at once for a malformed path, `closed` */
  watch(path: FilePath, options?: { readonly signal?: AbortSignal }): AsyncIterableIterator<FileChange> {
    this.#checkOpen();
    const parsed = parsePath(path);
    const { signal } = options ?? {};
    const watched = "name" in parsed ? { under: parsed.name } : parsed.kind === "root" ? { under: "" as const } : "tasks";
    const watch = new Watch(this.#backend, watched, this.#statOf(parsed), signal, (ended) => this.#watches.delete(ended));
    if (!watch.ended) this.#watches.add(watch);
    return watch;
  }

  /**
   * Ends watches and open files (what was written to them and has not acted is dropped, what they claimed is released) and waits for what
   * goes on in the background. Later calls reject with `closed`; closing twice is harmless. The backend stays open.
   */
  close(): Promise<void> {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  /** See {@link close}. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #end(): Promise<void> {
    this.#changeTimes?.end();
    for (const watch of this.#watches) watch.end();
    for (const file of this.#files) this.#inBackground(file.discard());
    while (this.#background.size > 0) await Promise.all(this.#background);
  }

  #inBackground(work: Promise<unknown>): void {
    const done: Promise<void> = work
      .then(
        () => {},
        (error) => this.#onError?.(error),
      )
      // A listener that throws must not fail the process.
      .catch(() => {})
      .finally(() => this.#background.delete(done));
    this.#background.add(done);
  }

  #opened(file: ControlPath | TaskPath, reading: ReadSide | undefined, writing: WriteSide | undefined): OpenFile {
    // The face may have been closed since the path was looked up; a file registered now would be ended by nobody.
    this.#checkOpen();
    const opened = new OpenFile(file.shown, reading, writing, (ended) => this.#files.delete(ended));
    this.#files.add(opened);
    return opened;
  }

  #readSide(file: ControlPath | TaskPath, requestId: string | undefined): ReadSide {
    if (file.kind === "task") {
      if (requestId !== undefined) throw foreignOption("requestId", "dequeue", file.shown);
      const { id, isWait } = file;
      return new ReadSide((whenEnded) => (isWait ? readTaskWait(this.#backend, id, whenEnded()) : readTask(this.#backend, id)));
    }
    const handler = readHandler(file.file, file.shown);
    if (requestId !== undefined && file.file !== "dequeue") throw foreignOption("requestId", "dequeue", file.shown);
    const call = { ...this.#call(file), ...(requestId === undefined ? {} : { requestId }) };
    return new ReadSide((whenEnded) => handler({ ...call, whenEnded }));
  }

  #writeSide(file: ControlPath, id: string | undefined, eager: boolean): WriteSide {
    return new WriteSide(file.file, writeHandler(file.file, file.shown), this.#writeCall(file, id), eager);
  }

  #writeCall(file: ControlPath, id: string | undefined): WriteCall {
    if (id !== undefined && file.file !== "enqueue") throw foreignOption("id", "enqueue", file.shown);
    return { ...this.#call(file), ...(id === undefined ? {} : { id }) };
  }

  #call(file: ControlPath): ControlCall {
    return { backend: this.#backend, queue: file.name, leaseMs: this.#leaseMs, owner: this.#owner };
  }

  #parse(path: FilePath): ParsedPath {
    this.#checkOpen();
    return parsePath(path);
  }

  async #parseFile(path: FilePath): Promise<ControlPath | TaskPath> {
    const parsed = this.#parse(path);
    if (parsed.kind === "control" || parsed.kind === "task") return parsed;
    if (parsed.kind === "directory" && (await roleOf(this.#backend, parsed.name)) === undefined) {
      throw new QueueFSError(
        "path-not-found",
        `${quote(parsed.shown)} not found: no such file, and no queue of that name; list the directory to see what there is`,
      );
    }
    throw isADirectory(parsed.shown);
  }

  async #statOf(parsed: ParsedPath): Promise<FileStat> {
    if (parsed.kind === "root") return this.#statDirectory("", "root");
    if (parsed.kind === "tasks") return this.#statDirectory(TASKS_DIRECTORY, "tasks");
    if (parsed.kind === "task") return this.#statTask(parsed.isWait ? TASK_WAIT : parsed.id, await this.#backend.task(parsed.id));
    if (parsed.kind === "control") {
      await this.#backend.status(parsed.name);
      return this.#statFile(parsed.file, parsed.name);
    }
    const role = await roleOf(this.#backend, parsed.name);
    if (role === undefined) throw directoryNotFound(parsed.shown);
    return this.#statDirectory(parsed.name.slice(parsed.name.lastIndexOf("/") + 1), role, parsed.name);
  }

  #statDirectory(name: string, role: FileRole, queue?: string): FileStat {
    const modifiedAtMs = role === "queue" ? this.#changedAtMs(queue) : this.#openedAtMs;
    return { name, kind: "directory", role, mode: DIRECTORY_MODE, size: 0, modifiedAtMs };
  }

  #statFile(name: ControlFileName, queue: string): FileStat {
    return { name, kind: "file", role: "control", mode: CONTROL_FILES[name].mode, size: 0, modifiedAtMs: this.#changedAtMs(queue) };
  }

  #changedAtMs(queue: string | undefined): number {
    return (queue === undefined ? undefined : this.#changeTimes?.of(queue)) ?? this.#openedAtMs;
  }

  /** Refuses a queue that somebody still has work in. @throws QueueFSError `not-empty` */
  async #checkComplete({ name, shown }: Extract<ParsedPath, { kind: "directory" }>, recursive: boolean): Promise<void> {
    const statuses = recursive ? await this.#backend.statuses({ under: name }) : await this.#statusIfAny(name);
    const held = statuses.find(({ pending, processing }) => pending + processing > 0);
    if (held === undefined) return;
    throw new QueueFSError(
      "not-empty",
      `${quote(shown)} is not empty: queue ${quote(held.queue)} has ${held.pending} pending messages and ${held.processing} in processing; ` +
        "work them off, clear the queue, or remove it recursively",
    );
  }

  async #statusIfAny(queue: QueueName): Promise<QueueStatus[]> {
    try {
      return [{ queue, ...(await this.#backend.status(queue)) }];
    } catch (error) {
      if (isQueueFSError(error, "queue-not-found")) return [];
      throw error;
    }
  }

  #statTask(name: string, { updatedAtMs }: Task): FileStat {
    return { name, kind: "file", role: "task", mode: READ_ONLY, size: 0, modifiedAtMs: updatedAtMs };
  }

  #checkOpen(): void {
    if (this.#closing !== undefined) throw closedError("this QueueFS");
  }
}

/** Tasks are changed by what is done with their messages, not by writing. */
function writable(file: ControlPath | TaskPath): ControlPath {
  if (file.kind === "control") return file;
  throw new QueueFSError("wrong-mode", `permission denied: ${quote(file.shown)} can only be read (a read gives the task as JSON)`);
}

/** The queue whose name is `child` in a directory, or the directory itself. */
function queueAt(parsed: ParsedPath, child: string): string {
  const name = "name" in parsed ? parsed.name : "";
  return name === "" || child === "" ? `${name}${child}` : `${name}/${child}`;
}

function foreignOption(option: string, file: string, shown: string): QueueFSError {
  return new QueueFSError("invalid-argument", `option ${option} belongs to ${file} and cannot be used with ${quote(shown)}; leave it out`);
}
