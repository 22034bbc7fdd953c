/**
 * The file face as adapters see it (HTTP, mount, command line): plain structural types, and errors of the one error table. This file
 * is all that an adapter may know of queues; it imports nothing but core.
 *
 * Paths are absolute, `/` between components, given as text or as UTF-8 bytes. Empty components and `.` are left out, so `//q/./size`
 * is `/q/size`; `..` is refused, since an adapter that knows a current directory has resolved it already. A slash at the end says
 * "directory": after a control file it is `not-a-directory`. The last component decides: the name of a control file means that file
 * of the queue before it. Tasks are files in `/.tasks`, named by their ids; `/.tasks/ID/wait` names what waits for the end of one, although
 * `/.tasks/ID` is a file.
 *
 * Errors that any operation with a path may end with: `invalid-name` (malformed path), `queue-not-found` (no such queue or directory),
 * `path-not-found` (no such file), `task-not-found`, `not-a-directory` (a file amid the path), `closed`, and those of the store.
 */

/** An absolute path, as text or as UTF-8 bytes. */
export type FilePath = string | Uint8Array;

/** What lies at a path. */
export type FileRole =
  /** `/`. */
  | "root"
  /** A directory that has queues under it and is no queue: no control files. */
  | "directory"
  /** A queue: a directory with control files, and perhaps queues under it. */
  | "queue"
  /** A control file of a queue. */
  | "control"
  /** `/.tasks`. */
  | "tasks"
  /** A task, or what waits for its end. */
  | "task";

/** What `stat` and `readdir` tell. */
export interface FileStat {
  /** The last component; empty for the root. */
  readonly name: string;
  readonly kind: "file" | "directory";
  readonly role: FileRole;
  /** Permission bits only, such as 0o755; no type bits. */
  readonly mode: number;
  /** Always 0, as in /proc: what a file will give is not known before it is read. */
  readonly size: number;
  /**
   * Of a task: when it or one of its messages last changed, in milliseconds since 1970-01-01 UTC. Of all else: when this file face was
   * opened, since the store keeps no times of change; of a queue and its control files, where the face follows changes, when it was last told
   * of one. Use {@link FileSystemPort.watch} to learn of changes.
   */
  readonly modifiedAtMs: number;
}

/** Which way a handle is to be used. */
export type OpenMode = "read" | "write" | "read-write";

/** Options of {@link FileSystemPort.read}. */
export interface ReadOptions {
  /**
   * Ends the read, which rejects with the signal's reason. What it claimed (`dequeue`) is released, as soon as the store answers.
   */
  readonly signal?: AbortSignal;
  /** Of `dequeue` only: makes a repeat after a lost reply safe, as `requestId` of a dequeue of the library does. */
  readonly requestId?: string;
  /**
   * Called before the read resolves when it claimed a message, with what gives that back: for readers whose bytes may get lost on their way.
   * Giving back what was settled meanwhile, or given back before, changes nothing.
   */
  readonly onClaim?: (giveBack: () => Promise<void>) => void;
}

/** Options of {@link FileSystemPort.rm}. */
export interface RemoveOptions {
  /** Whether queues under it go too. Default false. */
  readonly recursive?: boolean;
  /**
   * Whether a queue with unacked messages is refused, as a directory with files is by `rmdir`. It is looked at just before: what is enqueued
   * in that moment is not seen. Default false.
   */
  readonly onlyComplete?: boolean;
}

/** Options of {@link FileSystemPort.write}. */
export interface WriteOptions {
  /** Of `enqueue` only: an id for the message, chosen by the caller, which makes a repeat safe. */
  readonly id?: string;
}

/** Options of {@link FileSystemPort.open}. */
export interface OpenOptions extends WriteOptions {
  /** Which way. `read-write` is possible for files that are both (`.dead`). */
  readonly mode: OpenMode;
  /** Of `dequeue` only, as in {@link ReadOptions}. */
  readonly requestId?: string;
  /**
   * Whether control files other than `enqueue` act inside the `write` that completes what they need (text that ends in white space; for
   * `clear` any write) and not only at `close`. For surfaces whose users see errors of writes but not of closes. Default false.
   */
  readonly eager?: boolean;
}

/** What a write did. */
export interface WriteAnswer {
  /** Bytes taken, all of them: a write that fails takes none. */
  readonly bytesWritten: number;
  /** The id of the message stored, of `enqueue`. */
  readonly id?: string;
}

/** Which part of a file to read. */
export interface HandleRead {
  /** Bytes at most, 0 to 2^31 - 1. */
  readonly length: number;
  /** From where, in bytes; where the read before ended, if absent. Of `messages` and `.dead`, at most 1 MiB behind the furthest read. */
  readonly offset?: number;
  /** Ends this read, which rejects with the signal's reason; the handle stays usable, and keeps what it claimed. */
  readonly signal?: AbortSignal;
}

/**
 * One open of one control file. Reading: the content is made at the first read of at least one byte and then stays the same for this
 * handle; one handle of `dequeue` claims at most one message, and a handle that reads nothing claims nothing. Writing: what was
 * written acts at `close`, as one whole; a handle without any write does nothing.
 */
export interface FileHandle {
  /**
   * Bytes of the content; fewer than asked for only at its end, none beyond it.
   *
   * @throws QueueFSError `wrong-mode`, `closed`; whatever making the content ended with, then again at each read
   */
  read(part: HandleRead): Promise<Uint8Array>;
  /**
   * Keeps bytes for the close and answers how many: all. Without `offset` they follow the bytes before; a gap is filled with zeros.
   * After a write that failed, later ones and the close fail alike, and nothing is stored.
   *
   * @throws QueueFSError `wrong-mode`, `closed`; `message-too-large` or `invalid-argument` beyond the limit of the file
   */
  write(data: Uint8Array, offset?: number): Promise<number>;
  /** Shortens or lengthens (with zeros) what was written to `enqueue`; has no effect on other files. Is no write by itself. */
  truncate(size: number): Promise<void>;
  /**
   * Ends the handle: what was written acts now. A message claimed of which no byte was read is released. Closing twice gives the same answer.
   *
   * @throws QueueFSError whatever the act ended with
   */
  close(): Promise<WriteAnswer>;
  /**
   * Ends the handle as if it had not been: what was written and has not acted is dropped, and a message claimed is released whether or
   * not its bytes were read. For readers that went away before they got the bytes, and writers that broke off. Harmless after `close`.
   */
  discard(): Promise<void>;
}

/** A hint that something at or under a watched path may have changed; look again. */
export interface FileChange {
  /**
   * The queues concerned; absent when they are not known, or too many to name (more than 1,000). A task may have changed with them, and with
   * none. What is told of `/.tasks` and what lies in it is only that something in the store changed.
   */
  readonly queues?: readonly string[];
}

/** The file face. */
export interface FileSystemPort {
  /**
   * The whole content of a control file. Counts as delivered when it resolves.
   *
   * @throws QueueFSError `is-a-directory`, `wrong-mode`; `message-too-large` for a listing beyond 1 GiB, which a handle can read
   */
  read(path: FilePath, options?: ReadOptions): Promise<Uint8Array>;
  /**
   * Writes a control file: one open, one write, one close.
   *
   * @throws QueueFSError `is-a-directory`, `wrong-mode`, `message-too-large`, `not-in-processing`, `message-not-found`, `id-conflict`,
   *   `invalid-argument`, as the file has it
   */
  write(path: FilePath, data: Uint8Array, options?: WriteOptions): Promise<WriteAnswer>;
  /** Opens a control file. Touches nothing but the question whether the queue exists. @throws QueueFSError `is-a-directory`, `wrong-mode` */
  open(path: FilePath, options: OpenOptions): Promise<FileHandle>;
  /** What lies at a path. Has no effect. */
  stat(path: FilePath): Promise<FileStat>;
  /**
   * What lies in a directory: control files in the order of their table, then directories by name; tasks, the newest first. Dot files only
   * with `all`, `.tasks` in the root too.
   *
   * @throws QueueFSError `not-a-directory`; `message-too-large` for more than 100,000 tasks
   */
  readdir(path: FilePath, options?: { readonly all?: boolean }): Promise<FileStat[]>;
  /**
   * Makes a queue; parents need not exist. A queue that is there already, and the root, answer `exists` and do not change.
   *
   * @throws QueueFSError `reserved-name` for control files and names that start with a dot
   */
  mkdir(path: FilePath): Promise<"created" | "exists">;
  /**
   * Removes a queue with its messages and dead letters, with `recursive` a directory and all queues under it too; answers how many queues.
   * Of a task that has ended it removes the record, and answers 1.
   *
   * @throws QueueFSError `not-empty`, `wrong-mode` for a control file and for `/.tasks`, `task-active`, `invalid-argument` for the root
   */
  rm(path: FilePath, options?: RemoveOptions): Promise<number>;
  /** Has no effect, for programs that shorten a file before they write it. @throws QueueFSError `is-a-directory`, `wrong-mode` */
  truncate(path: FilePath, size: number): Promise<void>;
  /** Has no effect on what exists: takes and stores no message. */
  touch(path: FilePath): Promise<void>;
  /** Always refused: moving is copying and removing to many programs, which would drain a queue. @throws QueueFSError `unsupported` */
  rename(from: FilePath, to: FilePath): Promise<never>;
  /**
   * Hints of changes at and under a path, from the call on. Hints that nobody took yet are merged into one. Ends, without an error, when
   * `signal` is aborted or the file face is closed; `return` (leaving a `for await`) ends it as well.
   *
   * @throws QueueFSError at once for a malformed path; out of the first `next` when there is nothing at the path
   */
  watch(path: FilePath, options?: { readonly signal?: AbortSignal }): AsyncIterableIterator<FileChange>;
}
