/** The README in the mount root: how queues are used as files, for whoever meets them without having been told. */

import { CONTROL_FILES, type ControlFile, isControlFileName } from "../../core/control-files.ts";

/** The text of the README. @param mount the mount point */
export function readmeText(mount: string): string {
  const root = mount === "/" ? "" : mount;
  const lines: string[] = [];
  for (const name of Object.keys(CONTROL_FILES).filter(isControlFileName)) {
    if (name.startsWith(".")) continue;
    const file: ControlFile = CONTROL_FILES[name];
    const uses = [file.read && `a read gives: ${file.read}`, file.write && `a write ${file.write}`].filter(Boolean);
    lines.push(`  ${name.padEnd(10)}${uses.join("; ")}`);
  }
  return `# QueueFS

Each directory here is a durable queue of messages.

  mkdir ${root}/NAME                 make a queue; NAME may have slashes
  echo text > ${root}/NAME/enqueue   store a message
  cat ${root}/NAME/dequeue           take the oldest one
  echo ID > ${root}/NAME/ack         say that it is done
  rm -r ${root}/NAME                 remove the queue and what is in it

A message that was taken stays in the queue until it is acked. Without an ack it is given out again when its lease has ended, or
its consumer is known to be gone. A queue is complete when both numbers in its file "status" are 0.

Files in each queue:

${lines.join("\n")}
`;
}
