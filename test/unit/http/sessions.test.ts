import { describe, expect, it } from "vitest";
import { QueueFSError } from "../../../src/core/errors.ts";
import { type KeptAnswer, Sessions, type StepAnswer } from "../../../src/http/sessions.ts";

const clock = { nowMs: 0, monotonicMs: () => clock.nowMs };
const answer = (body: string): KeptAnswer => ({ status: 200, headers: {}, body });
const final = (body: string) => async (): Promise<StepAnswer> => ({ answer: answer(body), isFinal: true });

describe("sessions", () => {
  it("answer a repeat as they answered first, and do not do it again", async () => {
    const sessions = new Sessions(clock);
    let done = 0;
    const step = async (): Promise<StepAnswer> => {
      done += 1;
      return { answer: answer(String(done)), isFinal: true };
    };
    expect((await sessions.run("s", 1, "POST /a", step)).body).toBe("1");
    expect((await sessions.run("s", 1, "POST /a", step)).body).toBe("1");
    expect((await sessions.run("s", 2, "POST /a", step)).body).toBe("2");
    expect((await sessions.run("other", 1, "POST /a", step)).body).toBe("3");
    await expect(sessions.run("s", 1, "POST /b", step)).rejects.toMatchObject({ code: "id-conflict" });
  });

  it("let a repeat wait for the first, and do it only when that did nothing", async () => {
    const sessions = new Sessions(clock);
    let release: (value: StepAnswer) => void = () => {};
    const first = sessions.run("s", 1, "r", () => new Promise((resolve) => (release = resolve)));
    const repeats = [sessions.run("s", 1, "r", final("again")), sessions.run("s", 1, "r", final("again"))];
    release({ answer: answer("first"), isFinal: true });
    expect([(await first).body, ...(await Promise.all(repeats)).map(({ body }) => body)]).toEqual(["first", "first", "first"]);

    let fail: (error: Error) => void = () => {};
    const broken = sessions.run("s", 2, "r", () => new Promise((_, reject) => (fail = reject)));
    const later = [sessions.run("s", 2, "r", final("one")), sessions.run("s", 2, "r", final("two"))];
    fail(new QueueFSError("store-busy", "busy"));
    await expect(broken).rejects.toMatchObject({ code: "store-busy" });
    expect((await Promise.all(later)).map(({ body }) => body)).toEqual(["one", "one"]);
  });

  it("do again what was answered as not done, and refuse what comes out of turn", async () => {
    const sessions = new Sessions(clock);
    await sessions.run("s", 5, "r", async () => ({ answer: answer("busy"), isFinal: false }));
    expect((await sessions.run("s", 5, "r", final("done"))).body).toBe("done");
    await expect(sessions.run("s", 4, "r", final("late"))).rejects.toMatchObject({ code: "outcome-unknown" });
  });

  it("remember a bounded number of answers and sessions", async () => {
    const sessions = new Sessions(clock, { answers: 3, sessions: 2, idleMs: 1_000 });
    for (let number = 1; number <= 4; number += 1) await sessions.run("s", number, "r", final("0123456789"));
    await expect(sessions.run("s", 1, "r", final("x"))).rejects.toMatchObject({ code: "outcome-unknown" });
    expect((await sessions.run("s", 2, "r", final("x"))).body).toBe("0123456789");
    expect(sessions.size.bytes).toBe(30);
    await sessions.run("t", 1, "r", final("y".repeat(95)));
    expect(sessions.size).toEqual({ sessions: 2, bytes: 125 });
    // Both have just asked: forgetting one could have it do something twice.
    await expect(sessions.run("u", 1, "r", final("x"))).rejects.toMatchObject({ code: "overloaded" });
    clock.nowMs += 1_000;
    expect((await sessions.run("u", 1, "r", final("x"))).body).toBe("x");
    expect(sessions.size).toEqual({ sessions: 1, bytes: 1 });
  });

  it("keep the last answer of each, however large, and refuse what has no room any more", async () => {
    const sessions = new Sessions(clock, { bytes: 1_000, tokenBytes: 100 });
    await sessions.run("s", 1, "r", final("1".repeat(10)), "a");
    await sessions.run("s", 2, "r", final("2".repeat(150)), "a");
    await sessions.run("t", 1, "r", final("small"), "b");
    // Nothing that the client of `s` has not gone beyond is forgotten for another session.
    await expect(sessions.run("u", 1, "r", final("x"), "a")).rejects.toMatchObject({ code: "overloaded" });
    expect((await sessions.run("s", 2, "r", final("x"), "a")).body).toBe("2".repeat(150));
    // Another token has room of its own, and the session itself goes on.
    await sessions.run("t", 2, "r", final("small"), "b");
    expect((await sessions.run("s", 3, "r", final("3"), "a")).body).toBe("3");
    await expect(sessions.run("s", 2, "r", final("x"), "a")).rejects.toMatchObject({ code: "outcome-unknown" });
    expect((await sessions.run("u", 2, "r", final("u".repeat(150)), "a")).body).toHaveLength(150);
    // What has asked nothing for a minute makes room, for the same token only.
    clock.nowMs += 60_000;
    expect((await sessions.run("v", 1, "r", final("v"), "a")).body).toBe("v");
    await expect(sessions.run("u", 2, "r", final("x"), "a")).rejects.toMatchObject({ code: "outcome-unknown" });
    expect((await sessions.run("t", 2, "r", final("x"), "b")).body).toBe("small");
  });

  it("are bounded in all, without forgetting those of another token", async () => {
    const sessions = new Sessions(clock, { bytes: 100, tokenBytes: 80, sessions: 3, tokenSessions: 2 });
    await sessions.run("s", 1, "r", final("s".repeat(70)), "a");
    await sessions.run("s", 1, "r", final("t".repeat(70)), "b");
    clock.nowMs += 60_000;
    await expect(sessions.run("s", 1, "r", final("x"), "c")).rejects.toMatchObject({ code: "overloaded" });
    expect((await sessions.run("s", 1, "r", final("x"), "a")).body).toBe("s".repeat(70));
    await expect(sessions.run("t", 1, "r", final("x"), "a")).rejects.toMatchObject({ code: "overloaded" });
    const releases: ((value: StepAnswer) => void)[] = [];
    const crowd = new Sessions(clock, { tokenBytes: 100 });
    const steps = [1, 2, 3, 4].map((each) => crowd.run(`s${each}`, 1, "r", () => new Promise((resolve) => releases.push(resolve))));
    for (const release of releases) release({ answer: answer("x".repeat(90)), isFinal: true });
    await Promise.all(steps);
    expect(crowd.size.bytes).toBe(180);
    await expect(crowd.run("s1", 1, "r", final("x"))).rejects.toMatchObject({ code: "outcome-unknown" });
    expect((await crowd.run("s4", 1, "r", final("x"))).body).toBe("x".repeat(90));
  });

  it("count no bytes of a session that was forgotten while it worked", async () => {
    const sessions = new Sessions(clock, { idleMs: 10 });
    let release: (value: StepAnswer) => void = () => {};
    const slow = sessions.run("s", 1, "r", () => new Promise((resolve) => (release = resolve)));
    clock.nowMs += 1_000;
    await sessions.run("t", 1, "r", final("x"));
    release({ answer: answer("first"), isFinal: true });
    expect((await slow).body).toBe("first");
    expect(sessions.size).toEqual({ sessions: 1, bytes: 1 });
  });
});
