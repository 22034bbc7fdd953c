/**
 * Builds the package into dist/. The compiler writes into a folder of its own, which then takes the place of dist/, so that a program
 * that runs from dist/ meanwhile never sees half a build.
 */
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const ATTEMPTS = 20;
const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const fresh = mkdtempSync(join(root, ".build-"));

/** Puts the new dist/ where the old one is. Another build may do the same at this very moment: then the later one stays. */
function putInPlace(): void {
  for (let attempt = 1; ; attempt += 1) {
    try {
      if (existsSync(join(root, "dist"))) renameSync(join(root, "dist"), join(fresh, `old-${attempt}`));
      renameSync(join(fresh, "dist"), join(root, "dist"));
      return;
    } catch (error) {
      if (attempt === ATTEMPTS) throw error;
    }
  }
}

try {
  const compiler = join(root, "node_modules", "typescript", "bin", "tsc");
  const run = spawnSync(process.execPath, [compiler, "-p", join(root, "tsconfig.build.json"), "--outDir", join(fresh, "dist")], {
    stdio: "inherit",
  });
  if (run.status === 0) {
    const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { bin: Record<string, string> };
    for (const file of Object.values(manifest.bin)) chmodSync(join(fresh, file), 0o755);
    putInPlace();
  } else {
    process.exitCode = 1;
  }
} finally {
  rmSync(fresh, { recursive: true, force: true });
}
