import { describe, expect, it, vi } from "vitest";
import { api, deferred, estimate, headline, overview } from "../testing/samples";
import { ApiError } from "./api";
import { joined, START, type Place } from "./place";
import { markOf, othersOf, phaseOf, profileOf, runOf, xprofSessionOf } from "./questions";
import { Store } from "./store";
import type { Headline, Overview } from "./types";

const profile = {
  id: "p1",
  allocator: "bfc",
  host: "h",
  started_at: "",
  before_bytes: 0,
  peak_bytes: 0,
  before: [],
};

describe("starting", () => {
  it("shows the run that began last when the address names none, without touching the address", async () => {
    const remember = vi.fn();
    const runs = [headline("a", { began: 10 }), headline("b", { began: 30 }), headline("c", { began: 20 })];
    const store = new Store(api({ runs: () => Promise.resolve(runs) }), remember);
    await store.goTo(START);
    expect(runOf(store.state)).toBe("b");
    expect(store.state.overview).toMatchObject({ state: "ready", value: { name: "b" } });
    expect(remember).not.toHaveBeenCalled();
  });

  it("stays with that run when another begins, and has it in the address with whatever is chosen", async () => {
    const places: Place[] = [];
    const runs = [headline("a", { began: 10 })];
    const store = new Store(api({ runs: () => Promise.resolve([...runs]) }), (place) => places.push(place));
    await store.goTo(START);
    runs.push(headline("b", { began: 20 }));
    await store.reload();
    expect(runOf(store.state)).toBe("a");
    await store.choose({ unit: "MiB" });
    expect(places).toEqual([{ ...START, run: "a", unit: "MiB" }]);
  });

  it("shows the first run where nothing tells when they began", async () => {
    const store = new Store(api());
    await store.goTo(START);
    expect(runOf(store.state)).toBe("a");
  });

  it("shows the run of the address", async () => {
    const store = new Store(api());
    await store.goTo({ ...START, run: "b" });
    expect(store.state.overview).toMatchObject({ state: "ready", value: { name: "b" } });
  });

  it("does not ask for a run that is not there", async () => {
    const asked = vi.fn();
    const store = new Store(api({ overview: asked }));
    await store.goTo({ ...START, run: "gone" });
    expect(runOf(store.state)).toBe("gone");
    expect(store.state.overview).toEqual({ state: "idle" });
    expect(asked).not.toHaveBeenCalled();
  });

  it("keeps the reason when the runs cannot be read", async () => {
    const store = new Store(api({ runs: () => Promise.reject(new ApiError("torn file", 500)) }));
    await store.goTo(START);
    expect(store.state.runs).toEqual({ state: "failed", message: "torn file", status: 500 });
  });

  it("asks for curve, profile and peaks only where the run has them", async () => {
    const timeline = vi.fn(api().timeline);
    const profiles = vi.fn(api().profile);
    const peaks = vi.fn(api().peaks);
    const measured = {
      ...overview("a").measured,
      devices: [{ device: "CPU:0", source: "", before_bytes: null, limit_bytes: null, peak_bytes: 1, steps: 1 }],
      profiles: [profile],
    };
    const answers: Record<string, Overview> = {
      a: overview("a", { estimate: null, measured }),
      b: overview("b"),
    };
    const store = new Store(
      api({ timeline, profile: profiles, peaks, overview: (run) => Promise.resolve(answers[run]!) }),
    );
    await store.goTo(START);
    expect([timeline, profiles, peaks].map((asked) => asked.mock.calls)).toEqual([[], [["a", "p1", null]], [["a"]]]);
    await store.choose({ run: "b" });
    expect([timeline, profiles, peaks].map((asked) => asked.mock.calls.length)).toEqual([1, 1, 1]);
    expect(profileOf(store.state)).toBeNull();
    expect(store.state.profile).toEqual({ state: "idle" });
  });
});

describe("answers that come too late", () => {
  it("drops the answer about a run that is no longer on show", async () => {
    const slow = deferred<Overview>();
    const store = new Store(api({ overview: (run) => (run === "a" ? slow.promise : Promise.resolve(overview(run))) }));
    const started = store.goTo(START);
    await vi.waitFor(() => expect(store.state.overview.state).toBe("loading"));
    await store.choose({ run: "b" });
    slow.resolve(overview("a"));
    await started;
    expect(store.state.overview).toMatchObject({ value: { name: "b" } });
    expect(runOf(store.state)).toBe("b");
  });

  it("drops a curve of the run before, even when the new run has none", async () => {
    const slow = deferred<Awaited<ReturnType<ReturnType<typeof api>["timeline"]>>>();
    const store = new Store(
      api({
        timeline: () => slow.promise,
        overview: (run) => Promise.resolve(overview(run, run === "b" ? { estimate: null } : {})),
      }),
    );
    const started = store.goTo(START);
    await vi.waitFor(() => expect(store.state.curve.state).toBe("loading"));
    await store.choose({ run: "b" });
    slow.resolve({ ...(await api().timeline("a", "step", null)), peak_bytes: 42 });
    await started;
    expect(store.state.curve).toEqual({ state: "idle" });
  });

  it("takes the last of two limits, whichever answer is first", async () => {
    const first = deferred<Overview>();
    const verdict = {
      outcome: "fits" as const,
      margin_bytes: 1,
      sentence: "",
      limit_name: null,
      risks: [],
      phases: {},
    };
    const store = new Store(
      api({
        overview: (run, limit) =>
          limit === "1GiB"
            ? first.promise
            : Promise.resolve(overview(run, { verdict: { ...verdict, limit_bytes: 2 } })),
      }),
    );
    await store.goTo(START);
    const one = store.choose({ limit: "1GiB" });
    await store.choose({ limit: "2GiB" });
    first.resolve(overview("a", { verdict: { ...verdict, limit_bytes: 1 } }));
    await one;
    expect(store.state.overview).toMatchObject({ value: { verdict: { limit_bytes: 2 } } });
  });
});

describe("the limit", () => {
  const refusing = api({
    overview: (run, limit) =>
      limit ? Promise.reject(new ApiError("no memory size", 400)) : Promise.resolve(overview(run)),
  });

  it("that the server refuses is explained, and the run is shown all the same", async () => {
    const store = new Store(refusing);
    await store.goTo({ ...START, limit: "3 parsecs" });
    expect(store.state.overview).toMatchObject({ value: { refusedLimit: "no memory size" } });
    expect(store.state.overview).toMatchObject({ state: "ready", value: { name: "a" } });
    await store.choose({ limit: "" });
    expect(store.state.overview).toMatchObject({ value: { refusedLimit: null } });
  });

  it("is kept in the address, and asked for once", async () => {
    const places: Place[] = [];
    const asked = vi.fn(api().overview);
    const store = new Store(api({ overview: asked }), (place) => places.push(place));
    await store.goTo(START);
    await store.choose({ limit: "9.29GiB" });
    await store.choose({ limit: "9.29GiB" });
    expect(places).toEqual([{ ...START, run: "a", limit: "9.29GiB" }]);
    expect(asked.mock.calls).toEqual([
      ["a", ""],
      ["a", "9.29GiB"],
    ]);
  });

  it("is not blamed for another error", async () => {
    const store = new Store(api({ overview: () => Promise.reject(new ApiError("torn file", 500)) }));
    await store.goTo({ ...START, limit: "1GiB" });
    expect(store.state.overview).toEqual({ state: "failed", message: "torn file", status: 500 });
  });
});

describe("a stretch and a moment", () => {
  it("are asked for, and end with the curve that they are of", async () => {
    const timeline = vi.fn(api().timeline);
    const store = new Store(api({ timeline }));
    await store.goTo({ ...START, step: "5..70", moment: "p3", group: "net/a" });
    expect(timeline.mock.lastCall).toEqual(["a", "step", [5, 70]]);
    expect(markOf(store.state)).toEqual({ on: "predicted", tick: 2 });
    await store.choose({ by: "op" });
    expect(store.state.place).toMatchObject({ step: "5..70", moment: "p3", group: "" });
    await store.choose({ phase: "build" });
    expect(timeline.mock.lastCall).toEqual(["a", "build", null]);
    expect(store.state.place).toEqual({ ...START, run: "a", phase: "build", by: "op" });
    expect(markOf(store.state)).toBeNull();
  });

  it("zooms on the bytes without asking anew", async () => {
    const timeline = vi.fn(api().timeline);
    const store = new Store(api({ timeline }));
    await store.goTo(START);
    await store.choose({ step: ";10..90" });
    expect(timeline).toHaveBeenCalledTimes(1);
  });
});

describe("reloading", () => {
  it("keeps place and what is known in view until the new answer is there", async () => {
    const later = deferred<Headline[]>();
    let answers = 0;
    const store = new Store(
      api({ runs: () => (answers++ ? later.promise : Promise.resolve([headline("a"), headline("b")])) }),
    );
    await store.goTo({ ...START, run: "b", unit: "MiB" });
    await store.choose({ moment: "p1" });
    const reloaded = store.reload();
    expect(store.state.runs).toMatchObject({ state: "loading", value: [{ name: "a" }, { name: "b" }] });
    expect(store.state.overview).toMatchObject({ value: { name: "b" } });
    later.resolve([headline("0"), headline("a"), headline("b")]);
    await reloaded;
    expect(store.state.place).toEqual({ ...START, run: "b", unit: "MiB", moment: "p1" });
    expect(store.state.overview).toMatchObject({ state: "ready", value: { name: "b" } });
    expect(store.state.moment.state).toBe("ready");
  });

  it("moves on to a phase that the estimate has", async () => {
    let phases = estimate().phases;
    const store = new Store(
      api({ overview: (run) => Promise.resolve(overview(run, { estimate: estimate({ phases }) })) }),
    );
    await store.goTo(START);
    expect(phaseOf(store.state)).toBe("step");
    phases = phases.slice(0, 1);
    await store.reload();
    expect(phaseOf(store.state)).toBe("build");
  });

  it("shows a later step where the first one peaks alike", async () => {
    const [build, step] = estimate().phases;
    const opened = async (peak: number): Promise<string | null> => {
      const phases = [build!, { ...step!, name: "first_step", peak_bytes: peak }, step!];
      const made = estimate({ phases, peak_bytes: peak, peak_phase: "first_step" });
      const store = new Store(api({ overview: (run) => Promise.resolve(overview(run, { estimate: made })) }));
      await store.goTo(START);
      return phaseOf(store.state);
    };
    expect(await opened(3002)).toBe("step");
    expect(await opened(3100)).toBe("first_step");
  });
});

describe("comparing", () => {
  it("asks for the other runs by the same limit, and for none that is not there", async () => {
    const asked = vi.fn(api().compare);
    const store = new Store(api({ compare: asked }));
    await store.goTo({ ...START, run: "a", limit: "1GiB", compare: joined(["b", "gone, sadly", "a"]) });
    expect(othersOf(store.state)).toEqual(["b"]);
    expect(store.state.compared).toMatchObject({ state: "ready", value: { runs: [{ name: "a" }, { name: "b" }] } });
    expect(asked.mock.calls).toEqual([["a", ["b"], "1GiB"]]);
    await store.choose({ compare: "" });
    expect(store.state.compared).toEqual({ state: "idle" });
  });
});

describe("XProf's page of a profile", () => {
  it("is that of the same run and time", async () => {
    const measured = { ...overview("a").measured, profiles: [{ ...profile, started_at: "2026_01_01" }] };
    const sessions = ["b/2026_01_01", "a/2026_01_01", "a/2026_01_02"];
    const store = new Store(
      api({
        overview: (run) => Promise.resolve(overview(run, { measured })),
        xprofSessions: () => Promise.resolve(sessions),
      }),
    );
    await store.goTo(START);
    expect(xprofSessionOf(store.state)).toBe("a/2026_01_01");
  });

  it("is not looked for without a profile", async () => {
    const asked = vi.fn(api().xprofSessions);
    const store = new Store(api({ xprofSessions: asked }));
    await store.goTo(START);
    expect(asked).not.toHaveBeenCalled();
    expect(xprofSessionOf(store.state)).toBeNull();
  });
});

describe("following the address", () => {
  it("asks only for what changed", async () => {
    const asked = vi.fn(api().overview);
    const remember = vi.fn();
    const store = new Store(api({ overview: asked }), remember);
    await store.goTo(START);
    await store.goTo({ ...START, unit: "B" });
    expect(asked).toHaveBeenCalledTimes(1);
    expect(store.state.place.unit).toBe("B");
    await store.goTo({ ...START, run: "b", limit: "1GiB", unit: "B" });
    expect(asked.mock.calls.at(-1)).toEqual(["b", "1GiB"]);
    expect(remember).not.toHaveBeenCalled();
  });
});
