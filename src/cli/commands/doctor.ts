/** `queuefs doctor` */

import { ERROR_TABLE, isQueueFSError } from "../../core/errors.ts";
import type { Finding } from "../../core/message.ts";
import type { CommandRow } from "../command.ts";
import type { Session } from "../session.ts";
import { styled, writeTable } from "../table.ts";
import { visible } from "../visible.ts";

const COLOURS = { ok: "green", warning: "yellow", error: "red" } as const;

async function print(session: Session, findings: readonly Finding[]): Promise<void> {
  if (session.json) {
    for (const { severity, check, message } of findings) await session.jsonLine({ severity, check, message });
    return;
  }
  const rows = findings.map((finding) => [
    styled(session, COLOURS[finding.severity], finding.severity),
    visible(finding.check),
    visible(finding.message),
  ]);
  await writeTable(session, [{ title: "RESULT" }, { title: "CHECK" }, { title: "WHAT WAS FOUND" }], rows);
}

/** Looks over a store. */
export const doctor: CommandRow = {
  name: "doctor",
  summary: "check a store and say what to do",
  description:
    "It looks at integrity, counters against records, orphans, versions and settings. Exit code 0: no errors, though there may be warnings.",
  examples: [{ title: "Check the store in use", lines: ["queuefs mkdir jobs", "queuefs doctor"] }],
  define(command, run) {
    command.action(() =>
      run(async (session) => {
        let findings: readonly Finding[];
        let description: string;
        try {
          const backend = await session.openStore();
          description = `${backend.description.kind} at ${backend.description.location}`;
          findings = await backend.inspect();
        } catch (error) {
          if (!isQueueFSError(error)) throw error;
          await print(session, [{ severity: "error", check: "open", message: error.message }]);
          return error.exitCode;
        }
        if (!session.json) await session.output.line(`store: ${visible(description)}`);
        await print(session, findings);
        return findings.some((finding) => finding.severity === "error") ? ERROR_TABLE["store-corrupt"].exitCode : 0;
      }),
    );
  },
};
