/**
 * Checks the package as its users get it: packs it and has publint and attw look at the tarball, and knip at what is unused. Needs a fresh
 * dist/ (`npm run build`); prints what each tool finds and exits 1 when one is not content.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const tools = join(root, "node_modules", ".bin");

/** Runs a program in the repository and tells whether it was content; what it printed is shown only when it was not. */
function run(title: string, program: string, args: readonly string[]): boolean {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    cwd: root,
    encoding: "utf8",
    env: { ...process.env, FORCE_COLOR: "0" },
  });
  if (status === 0) {
    console.log(`${title}: good`);
    return true;
  }
  console.error(`${title}: not good\n${stdout}${stderr}${error?.message ?? ""}`);
  return false;
}

const folder = mkdtempSync(join(tmpdir(), "queuefs-package-"));
try {
  const packed = run("npm pack", "npm", ["pack", "--silent", "--ignore-scripts", "--pack-destination", folder]);
  const tarball = readdirSync(folder).find((file) => file.endsWith(".tgz"));
  if (!packed || tarball === undefined) throw new Error("npm pack made no tarball");
  const path = join(folder, tarball);
  const good = [
    run("publint", join(tools, "publint"), ["run", path, "--strict"]),
    run("attw", join(tools, "attw"), [path, "--profile", "esm-only", "--no-emoji", "--no-color"]),
    run("knip", join(tools, "knip"), ["--no-progress"]),
  ];
  if (good.includes(false)) process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
