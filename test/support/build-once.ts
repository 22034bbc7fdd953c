/** Global set-up of the projects that run the built package: builds it when a source is newer than what was built. */

import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The folder of the repository. */
const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..");

/** When a file under `folder` was last changed, in milliseconds since 1970; 0 when there is none. */
function newestMs(folder: string): number {
  if (!existsSync(folder)) return 0;
  let newest = 0;
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (entry.isFile()) newest = Math.max(newest, statSync(join(entry.parentPath, entry.name)).mtimeMs);
  }
  return newest;
}

/** Called by vitest before the first test of a project that needs dist/. */
export function setup(): void {
  const settingsMs = Math.max(
    ...["package.json", "tsconfig.json", "tsconfig.build.json"].map((file) => statSync(join(root, file)).mtimeMs),
  );
  if (newestMs(join(root, "dist")) > Math.max(newestMs(join(root, "src")), settingsMs)) return;
  const run = spawnSync("npm", ["run", "--silent", "build"], { cwd: root, encoding: "utf8" });
  if (run.status !== 0) throw new Error(`npm run build failed; mend what it says first:\n${run.stdout}${run.stderr}`);
}
