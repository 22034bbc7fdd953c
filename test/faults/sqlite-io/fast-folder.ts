/** Where files are fast, since they are in memory: whether a disk would keep them is played, not measured. */

import { accessSync, constants } from "node:fs";

/** A folder for temporary files in memory, or `undefined` where there is none. */
export function fastFolder(): string | undefined {
  try {
    accessSync("/dev/shm", constants.W_OK);
    return "/dev/shm";
  } catch {
    return undefined;
  }
}
