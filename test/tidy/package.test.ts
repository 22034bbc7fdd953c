/** The package as its users get it: what package.json promises is built and packed, and nothing else is. */

import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "..", "..");
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  readonly exports: Record<string, string | { readonly types: string; readonly default: string }>;
  readonly bin: Record<string, string>;
  readonly dependencies: Record<string, string>;
  readonly peerDependencies: Record<string, string>;
};
/** The subpaths that hold code, with what each stands for. */
const modules = Object.entries(manifest.exports).flatMap(([subpath, target]) =>
  typeof target === "string" ? [] : [{ subpath, ...target }],
);

/** Index modules that are a layer's front for the layers above it, and no subpath of the package. */
const INTERNAL_FRONTS = ["src/cli/commands/index.ts", "src/queue/index.ts", "src/task/index.ts", "src/testing/conformance/index.ts"];

/** Modules that have another name than their folder, since that is taken by another: the server is `queuefs/http`. */
const RENAMED: Readonly<Record<string, string>> = { "src/backend/http/index.ts": "http-client" };

function filesUnder(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1));
}

let packed: readonly { readonly path: string; readonly mode: number }[] = [];

beforeAll(() => {
  const answer = execFileSync("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], {
    cwd: root,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
  packed = (JSON.parse(answer) as [{ files: { path: string; mode: number }[] }])[0].files;
});

describe("exports", () => {
  it("name what was built", () => {
    const promised = modules.flatMap(({ types, default: code }) => [types, code]).map((file) => file.slice(2));
    const built = new Set(filesUnder("dist"));
    expect(promised.filter((file) => !built.has(file))).toEqual([]);
  });

  it("are the index modules of src/, each under the name of its folder, a few named internal ones excepted", () => {
    const fronts = filesUnder("src").filter((file) => /(?:^|\/)index\.ts$/.test(file));
    expect(INTERNAL_FRONTS.filter((file) => !fronts.includes(file))).toEqual([]);
    const published = fronts.filter((file) => !INTERNAL_FRONTS.includes(file));
    const expected = published.map((file) => {
      const folder = file.replace(/^src\//, "").replace(/\/?index\.ts$/, "");
      const name = RENAMED[file] ?? folder.replace(/^backend\//, "");
      return [folder === "" ? "." : `./${name}`, `./${join("dist", folder, "index.js")}`];
    });
    expect(modules.map(({ subpath, default: code }) => [subpath, code]).sort()).toEqual(expected.sort());
  });

  it.each(modules)("$subpath loads and gives something", async ({ default: code }) => {
    const module = (await import(pathToFileURL(join(root, code)).href)) as object;
    expect(Object.keys(module).length).toBeGreaterThan(0);
  });
});

describe("the tarball", () => {
  it("holds the built code, the documentation and nothing else", () => {
    const strays = packed
      .map(({ path }) => path)
      .filter(
        (path) => !/^(?:dist\/.+\.(?:js|js\.map|d\.ts)|docs\/.+\.(?:md|svg)|README\.md|CHANGELOG\.md|LICENSE|package\.json)$/.test(path),
      );
    expect(strays).toEqual([]);
    for (const path of ["README.md", "CHANGELOG.md", "LICENSE", "docs/errors.md", "dist/index.js"])
      expect(packed.map((file) => file.path)).toContain(path);
  });

  it("holds every module of src/ once", () => {
    const expected = filesUnder("src")
      .filter((file) => file.endsWith(".ts"))
      .map((file) => file.replace(/^src\//, "dist/").replace(/\.ts$/, ".js"));
    const code = packed.map(({ path }) => path).filter((path) => path.endsWith(".js"));
    expect(code.sort()).toEqual(expected.sort());
  });

  it("has programs that can be started", () => {
    for (const file of Object.values(manifest.bin)) {
      expect(readFileSync(join(root, file), "utf8").split("\n")[0]).toBe("#!/usr/bin/env node");
      expect(statSync(join(root, file)).mode & 0o111).toBe(0o111);
    }
  });

  it("depends on every package its code imports", () => {
    const declared = new Set([...Object.keys(manifest.dependencies), ...Object.keys(manifest.peerDependencies)]);
    const imports = filesUnder("dist")
      .filter((file) => file.endsWith(".js"))
      .flatMap((file) => [...readFileSync(join(root, file), "utf8").matchAll(/(?:\bfrom |\bimport\(|^import )"([^".][^"]*)"/gm)])
      .map((match) => match[1] as string)
      .filter((specifier) => !specifier.startsWith("node:"));
    expect(imports.length).toBeGreaterThan(0);
    const packages = new Set(
      imports.map((specifier) =>
        specifier
          .split("/")
          .slice(0, specifier.startsWith("@") ? 2 : 1)
          .join("/"),
      ),
    );
    expect([...packages].filter((name) => !declared.has(name))).toEqual([]);
  });
});
