/** The test's side of test/support/file-calls.c: builds it, and sets what is to happen to the file calls of a process that has it loaded. */

import { execFileSync } from "node:child_process";
import { closeSync, openSync, readSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";

/** Kinds of calls, in the order of the C library's numbers. */
export const CALL_KINDS = ["read", "write", "sync", "truncate", "open", "map", "unlink", "stat"] as const;
export type CallKind = (typeof CALL_KINDS)[number];

/**
 * What happens to a call: an errno of Linux; half of a write and then no room for more; the process stops (SIGSTOP); a write is said to be done
 * and is not.
 */
export const ACTIONS = { none: 0, EIO: 5, EMFILE: 24, ENOSPC: 28, ESTALE: 116, half: -1, stop: -2, drop: -3 } as const;
export type Action = keyof typeof ACTIONS;

const FIELDS = ["kinds", "before", "action", "sticky", "seen", "struck", "recording", "lying", "lock"] as const;
type Field = (typeof FIELDS)[number];
const FIELD_BYTES = 8;

/** A fault: the `number`-th call of `kind`, counted from 1, and with `sticky` all after it too. */
export interface Fault {
  readonly kind: CallKind;
  readonly action: Action;
  readonly number: number;
  readonly sticky: boolean;
}

/** Compiles the library into a folder. @returns its file */
export function buildFileCalls(folder: string): string {
  const library = join(folder, "file-calls.so");
  const source = join(import.meta.dirname, "..", "..", "support", "file-calls.c");
  execFileSync("gcc", ["-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o", library, source, "-ldl"], { stdio: "pipe" });
  return library;
}

/** Makes the files of the control and the record, and says what a child's environment must have. */
export function prepareFileCalls(
  library: string,
  folder: string,
  controlFolder: string,
): { environment: Record<string, string>; record: string } {
  const control = join(controlFolder, "control");
  const record = join(controlFolder, "record");
  writeFileSync(control, Buffer.alloc(4_096));
  writeFileSync(record, "");
  return {
    record,
    environment: {
      LD_PRELOAD: library,
      QUEUEFS_FILE_CALLS_FOLDER: folder,
      QUEUEFS_FILE_CALLS_CONTROL: control,
      QUEUEFS_FILE_CALLS_RECORD: record,
    },
  };
}

/** The fields that the loaded library reads at each call. */
export class FileCallControl {
  readonly #file: number;

  /** @param path the control file, mapped by the processes concerned */
  constructor(path: string) {
    this.#file = openSync(path, "r+");
  }

  set(field: Field, value: number): void {
    const bytes = Buffer.alloc(FIELD_BYTES);
    bytes.writeBigInt64LE(BigInt(value));
    writeSync(this.#file, bytes, 0, FIELD_BYTES, FIELDS.indexOf(field) * FIELD_BYTES);
  }

  get(field: Field): number {
    const bytes = Buffer.alloc(FIELD_BYTES);
    readSync(this.#file, bytes, 0, FIELD_BYTES, FIELDS.indexOf(field) * FIELD_BYTES);
    return Number(bytes.readBigInt64LE());
  }

  /** From now on this fault. */
  arm({ kind, action, number, sticky }: Fault): void {
    this.set("action", ACTIONS.none);
    this.set("seen", 0);
    this.set("struck", 0);
    this.set("before", number - 1);
    this.set("sticky", sticky ? 1 : 0);
    this.set("kinds", 1 << CALL_KINDS.indexOf(kind));
    this.set("action", ACTIONS[action]);
  }

  /** Leaves out of account, and unharmed, what the test itself does meanwhile. */
  pausing(during: () => void): void {
    const kinds = this.get("kinds");
    this.set("kinds", 0);
    try {
      during();
    } finally {
      this.set("kinds", kinds);
    }
  }

  /** No more faults. @returns how many calls of the kind there were, and how many failed */
  disarm(): { seen: number; struck: number } {
    this.set("action", ACTIONS.none);
    this.set("kinds", 0);
    return { seen: this.get("seen"), struck: this.get("struck") };
  }

  close(): void {
    closeSync(this.#file);
  }
}
