/** A progress bar on a terminal. */

import type { SingleBar } from "cli-progress";
import { formatDuration } from "./duration.ts";
import { type Progress, ProgressMeter } from "./progress-meter.ts";
import type { Session } from "./session.ts";

/** A bar that is drawn from the number of messages that are left. */
export interface ProgressBar {
  update(left: number): void;
  /** Takes the bar away. Harmless when there is none. */
  stop(): void;
}

const NO_BAR: ProgressBar = { update: () => {}, stop: () => {} };

/** What a bar says of the speed. */
export function speedOf(progress: Progress): { readonly speed: string; readonly left: string } {
  const speed = progress.perSecond >= 10 ? progress.perSecond.toFixed(0) : progress.perSecond.toFixed(1);
  return {
    speed,
    left: progress.leftMs === undefined ? "time left unknown" : `${formatDuration(Math.ceil(progress.leftMs / 1_000) * 1_000)} left`,
  };
}

/** A bar on standard error when people look at both outputs, and none otherwise: a pipe gets no bar. */
export async function makeBar(session: Session, format: string): Promise<SingleBar | undefined> {
  if (!session.output.isTerminal || session.errors.isTTY !== true || session.json) return undefined;
  const { default: cliProgress } = await import("cli-progress");
  return new cliProgress.SingleBar(
    {
      format,
      stream: session.errors,
      hideCursor: true,
      clearOnComplete: true,
      stopOnComplete: false,
      gracefulExit: false,
      emptyOnZero: false,
      barsize: 30,
    },
    cliProgress.Presets.shades_classic,
  );
}

/** Begins a bar that shows how many messages are left of those seen since it began. */
export async function startProgressBar(session: Session): Promise<ProgressBar> {
  const bar = await makeBar(session, "{bar} {percentage}% | {value} of {total} | {speed}/s | {left}");
  if (bar === undefined) return NO_BAR;
  const meter = new ProgressMeter();
  let begun = false;
  return {
    update(left) {
      const progress = meter.add(left, performance.now());
      const payload = speedOf(progress);
      // What is complete at the first look needs no bar.
      if (!begun && left === 0) return;
      if (!begun) bar.start(progress.total, progress.done, payload);
      begun = true;
      bar.setTotal(progress.total);
      bar.update(progress.done, payload);
    },
    stop() {
      if (begun) bar.stop();
      begun = false;
    },
  };
}
