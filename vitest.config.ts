import { defineConfig } from "vitest/config";

/** The projects: one per folder of test/, with whether it runs the built package and how long one test may take, in milliseconds. */
const PROJECTS = {
  unit: { built: false, testTimeout: 20_000 },
  conformance: { built: false, testTimeout: 60_000 },
  model: { built: false, testTimeout: 180_000 },
  fuzz: { built: false, testTimeout: 600_000 },
  simulation: { built: false, testTimeout: 300_000 },
  faults: { built: false, testTimeout: 180_000 },
  compat: { built: false, testTimeout: 60_000 },
  e2e: { built: true, testTimeout: 120_000 },
  types: { built: true, testTimeout: 60_000 },
  docs: { built: true, testTimeout: 120_000 },
  tidy: { built: true, testTimeout: 120_000 },
};

export default defineConfig({
  test: {
    // Tests start servers and child processes of their own; a process per file keeps them apart, and two suit a small machine.
    pool: "forks",
    maxWorkers: 2,
    hookTimeout: 60_000,
    coverage: { provider: "v8", include: ["src/**"], exclude: ["src/**/*.generated.ts"], reporter: ["text-summary", "html"] },
    projects: Object.entries(PROJECTS).map(([name, { built, testTimeout }]) => ({
      extends: true as const,
      test: {
        name,
        include: [`test/${name}/**/*.test.ts`],
        testTimeout,
        ...(built ? { globalSetup: ["test/support/build-once.ts"] } : {}),
      },
    })),
  },
});
