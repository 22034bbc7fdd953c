/** What the benchmark makes of its figures: medians, ratios within rounds, verdicts, and tables in which no figure stands alone. */

import { describe, expect, it } from "vitest";
import { judge } from "../../../bench/aims.ts";
import { Load, runCallers } from "../../../bench/contender.ts";
import { type EarlierResult, takeOver } from "../../../bench/earlier.ts";
import { formatRatio, formatValue } from "../../../bench/format.ts";
import { drawPlots } from "../../../bench/plots.ts";
import { jsonReport, markdownReport, type Report, textReport } from "../../../bench/report.ts";
import { median, quantile, Results } from "../../../bench/results.ts";
import { QUICK, turns } from "../../../bench/settings.ts";

const ABOUT = { title: "SQLite: calls per second", base: "QueueFS, normal", order: ["QueueFS, normal", "plainjob"], note: "A note." };

/** Results of three rounds, between which the machine became ten times slower. */
function resultsOfThreeRounds(): Results {
  const results = new Results();
  results.begin("sqlite", ABOUT);
  for (const [peer, own] of [
    [100, 1_200],
    [10, 110],
    [90, 900],
  ] as const) {
    results.record("sqlite", "enqueue x64", "plainjob", "/s", peer);
    results.record("sqlite", "enqueue x64", "QueueFS, normal", "/s", own);
  }
  return results;
}

function reportOf(results: Results): Report {
  return {
    date: "2026-01-31",
    machine: { cores: 2, processor: "some processor", memoryGiB: 8, platform: "linux x64", loadAtBegin: 0 },
    versions: { "Node.js": "20.20.2" },
    settings: QUICK,
    seconds: { sqlite: 1 },
    results,
    verdicts: judge(results),
  };
}

describe("figures", () => {
  it("have the middle value as median, and values between by weight", () => {
    expect(median([3, 1, 2])).toBe(2);
    expect(median([4, 1, 3, 2])).toBe(2.5);
    expect(quantile([0, 10], 0.99)).toBeCloseTo(9.9);
    expect(median([])).toBeNaN();
  });

  it("are compared within a round, so that a machine that became slower meanwhile does not count", () => {
    const results = resultsOfThreeRounds();
    expect(results.median("sqlite", "enqueue x64", "QueueFS, normal")).toBe(900);
    expect(results.ratio("sqlite", "enqueue x64", "QueueFS, normal", "plainjob")).toBe(11);
    expect(results.ratio("sqlite", "enqueue x64", "QueueFS, normal", "nobody")).toBeNaN();
  });

  it("are written in few characters", () => {
    expect([0.25, 42, 4_367.4, 388_731, 1_020_000].map((value) => formatValue(value, "/s"))).toEqual([
      "0.25",
      "42.0",
      "4,367",
      "388.7k",
      "1.02M",
    ]);
    expect(formatValue(18_647.6, "bytes")).toBe("18,648");
    expect([0, 0.00312, 0.0944, 0.5, 12.34, 388, Number.NaN].map(formatRatio)).toEqual([
      "0",
      "0.0031",
      "0.094",
      "0.50",
      "12.3",
      "388",
      "-",
    ]);
  });
});

describe("aims", () => {
  it("are judged where they were measured, and left out where not", () => {
    const verdicts = judge(resultsOfThreeRounds());
    expect(verdicts).toEqual([
      { aim: "SQLite normal: enqueue x64 / best peer", bound: "at least 10", measured: 11, isMet: true, isGate: false },
    ]);
  });

  it("are missed when the best peer is too near, whatever the others do", () => {
    const results = resultsOfThreeRounds();
    for (const rate of [200, 20, 180]) results.record("sqlite", "enqueue x64", "liteque", "/s", rate);
    expect(judge(results)).toMatchObject([{ measured: 5.5, isMet: false }]);
  });

  it("hold what must not grow to a bound from above", () => {
    const results = new Results();
    results.begin("depth-status", ABOUT);
    for (const [depth, time] of [
      ["10", 2],
      ["1,000", 2.1],
      ["100,000", 3.2],
    ] as const) {
      results.record("depth-status", depth, "SQLite", "us", time);
    }
    expect(judge(results)).toMatchObject([
      { aim: "SQLite: status at 100,000 messages / at 10", measured: 1.6, isMet: false, isGate: true },
    ]);
  });
});

describe("reports", () => {
  it("give every figure its ratio to the base, as text and as Markdown", () => {
    const report = reportOf(resultsOfThreeRounds());
    for (const text of [textReport(report), markdownReport(report, [])]) {
      expect(text).toMatch(/900 \(1\.00\)/);
      expect(text).toMatch(/90\.0 \(0\.091\)/);
      expect(text).toContain("2026-01-31, 2 cores (some processor), 8 GiB of memory, linux x64");
      expect(text).toContain("SQLite normal: enqueue x64 / best peer");
    }
    expect(markdownReport(report, [])).toContain("| plainjob | 90.0 (0.091) |");
  });

  it("set a sweep in relation to its first value, line by line, and draw it", () => {
    const results = new Results();
    const at = { "0": 0, "1,024": 1_024 };
    const plot = { kind: "lines", x: "bytes of a message", y: "cycles per second", at } as const;
    results.begin("payload", { ...ABOUT, title: "Payload < 1 MiB", baseMeasure: "0", order: ["memory", "Redis"], plot });
    for (const [store, none, some] of [
      ["memory", 1_000, 500],
      ["Redis", 100, 75],
    ] as const) {
      results.record("payload", "0", store, "/s", none);
      results.record("payload", "1,024", store, "/s", some);
    }
    const page = markdownReport(reportOf(results), ["payload"]);
    expect(page).toContain("![Payload < 1 MiB](benchmarks/payload.svg)");
    expect(page).toContain("| Redis | 100 (1.00) | 75.0 (0.75) |");
    const picture = drawPlots(results, "A caption.").payload ?? "";
    expect(picture).toMatch(/^<svg .*\n.*\n<title>Payload &lt; 1 MiB<\/title>[\s\S]*<\/svg>\n$/);
    expect(picture.match(/<polyline /g)).toHaveLength(2);
    expect(picture).toContain(">1,024: 0.75 times that of 0</text>");
    expect(picture).not.toContain("NaN");
  });

  it("draw bars that are as long as the figures, each with its ratio", () => {
    const results = new Results();
    results.begin("sqlite", { ...ABOUT, plot: { kind: "bars", measures: ["enqueue x64", "not measured"] } });
    results.record("sqlite", "enqueue x64", "QueueFS, normal", "/s", 1_000);
    results.record("sqlite", "enqueue x64", "plainjob", "/s", 250);
    const picture = drawPlots(results, "").sqlite ?? "";
    const [own = Number.NaN, peer = Number.NaN] = [...picture.matchAll(/<rect [^>]*width="([\d.]+)"/g)].map(([, width]) => Number(width));
    expect(peer / own).toBeCloseTo(0.25);
    expect(picture).toContain(">250 (0.25)</text>");
    expect(picture).not.toContain("not measured");
  });

  it("keep every round in the JSON", () => {
    const json = JSON.parse(jsonReport(reportOf(resultsOfThreeRounds()))) as { suites: Results["suites"] };
    expect(json.suites.sqlite?.measures["enqueue x64"]?.contenders.plainjob?.rounds).toEqual([100, 10, 90]);
  });
});

describe("loads", () => {
  it("count calls, time each call of a single caller, and end after so many", async () => {
    const load = new Load(1, { calls: 5 });
    let calls = 0;
    await runCallers(load, () => {
      calls += 1;
    });
    expect([calls, load.done, load.latenciesMs.length]).toEqual([5, 5, 5]);
    expect(load.perSecond).toBeGreaterThan(0);
  });

  it("run as many callers at once as they are asked for", async () => {
    let atOnce = 0;
    let most = 0;
    await runCallers(new Load(64, { calls: 256 }), async () => {
      atOnce += 1;
      most = Math.max(most, atOnce);
      await Promise.resolve();
      atOnce -= 1;
    });
    expect(most).toBe(64);
  });

  it("begin each round with another contender", () => {
    expect([0, 1, 2, 3].map((round) => turns(["a", "b", "c"], round).join(""))).toEqual(["abc", "bca", "cab", "abc"]);
  });
});

describe("an earlier result", () => {
  it("gives its suites to a run of the same conditions, where those measured anew take their place", () => {
    const report = reportOf(resultsOfThreeRounds());
    const earlier = JSON.parse(jsonReport(report)) as EarlierResult;
    const results = new Results();
    takeOver(results, earlier, { ...report, machine: { ...report.machine, loadAtBegin: 3 } });
    expect(results.suites).toEqual(report.results.suites);
    results.begin("sqlite", ABOUT);
    expect(results.suites.sqlite?.measures).toEqual({});
  });

  it("is refused where anything else was measured, or with anything else", () => {
    const report = reportOf(resultsOfThreeRounds());
    const earlier = JSON.parse(jsonReport(report)) as EarlierResult;
    for (const other of [{ date: "2026-02-01" }, { versions: {} }, { settings: { ...QUICK, rounds: 9 } }])
      expect(() => takeOver(new Results(), earlier, { ...report, ...other })).toThrow("measure all suites anew");
  });
});
