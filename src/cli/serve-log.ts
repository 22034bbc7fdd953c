/** The log of `queuefs serve`: lines on standard error, by pino. */

import type { Logger } from "../http/index.ts";
import type { Session } from "./session.ts";
import { visible, visibleLines } from "./visible.ts";

/** How much is told: each says what those before it say, and more. */
export const LOG_LEVELS = ["silent", "error", "warn", "info", "debug"] as const;
/** For people, or one JSON object a line. */
export const LOG_FORMATS = ["text", "json"] as const;

/** What is asked for. */
export interface LogOptions {
  readonly logLevel?: string;
  readonly logFormat?: string;
}

/** A line for people. */
function textOf(line: string): string {
  const { time, level, msg, error, ...fields } = JSON.parse(line) as Record<string, unknown>;
  const pairs = Object.entries(fields).map(([name, value]) => `${name}=${visible(String(value))}`);
  const { stack, message } = (error ?? {}) as { readonly stack?: string; readonly message?: string };
  const words = stack ?? message;
  return [time, String(level).toUpperCase(), msg, ...pairs].join(" ") + (words === undefined ? "" : `: ${visibleLines(words)}`);
}

/** Makes the log. */
export async function openServeLog(session: Session, { logLevel = "warn", logFormat }: LogOptions): Promise<Logger> {
  const format = logFormat ?? (session.json ? "json" : "text");
  const { pino } = await import("pino");
  const logger: Logger = pino(
    {
      level: logLevel,
      // Process and host are known to whoever collects the lines.
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    { write: (line: string) => void session.errors.write(format === "json" ? line : `queuefs: ${textOf(line)}\n`) },
  );
  return logger;
}
