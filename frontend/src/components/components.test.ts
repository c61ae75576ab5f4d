import type { LitElement } from "lit";
import { afterEach, describe, expect, it, vi } from "vitest";
import { ApiError, type Api } from "../model/api";
import { START } from "../model/place";
import { Store } from "../model/store";
import type { Overview } from "../model/types";
import {
  advice,
  api,
  crash,
  estimate,
  headline,
  host,
  layer,
  measuredSteps,
  overview,
  peaks,
} from "../testing/samples";
import { App } from "./app";
import { CrashCard } from "./crash-card";
import { DominantItems } from "./dominant-items";
import { AdviceCard } from "./advice-card";
import { HostCard } from "./host-card";
import { LayerTable } from "./layer-table";
import { PeaksCard } from "./peaks-card";
import { PhaseBars } from "./phase-bars";
import { StepCard } from "./step-card";
import { TopBar } from "./top-bar";
import { VerdictCard } from "./verdict-card";

async function shown<E extends LitElement>(element: E, properties: Partial<E>): Promise<E> {
  Object.assign(element, properties);
  document.body.append(element);
  await element.updateComplete;
  return element;
}

/** All elements with a test id, in open shadow roots too. */
function byTestId(root: Element | ShadowRoot, id: string): HTMLElement[] {
  const found = [...root.querySelectorAll<HTMLElement>(`[data-testid="${id}"]`)];
  const inside = [...root.querySelectorAll("*")].flatMap((element) =>
    element.shadowRoot ? byTestId(element.shadowRoot, id) : [],
  );
  return [...found, ...inside];
}

const text = (element: Element | undefined): string => (element?.textContent ?? "").replace(/\s+/g, " ").trim();

afterEach(() => document.body.replaceChildren());

describe("the advice card", () => {
  it("lists what helps with its code, and what does not with the reason", async () => {
    const card = await shown(new AdviceCard(), { advice: advice(), unit: "B" });
    const root = card.shadowRoot!;
    const rows = byTestId(root, "advice-lever").map((row) => [...row.children].map((cell) => text(cell)));
    expect(rows).toEqual([
      ["Optimizer SGD", "500B", "500B", "yes", "Needs a tuned learning rate.", "keras.optimizers.SGD()"],
      ["Batch of 1 instead of 2", "900B", "500B", "no", "Needs a tuned learning rate.", "keras.optimizers.SGD()"],
    ]);
    expect(byTestId(root, "advice-useless").map(text)).toEqual(["Precision mixed_float16: weights stay float32"]);
    expect(text(byTestId(root, "advice-batch")[0])).toBe("none");
    expect(byTestId(root, "advice-combination")).toEqual([]);
  });

  it("tells the smallest set where one change is not enough", async () => {
    const combination = { names: ["sgd", "half_batch"], peak_bytes: 400, needs_bytes: 450 };
    const card = await shown(new AdviceCard(), { advice: advice({ combination }), unit: "B" });
    expect(text(byTestId(card.shadowRoot!, "advice-combination")[0])).toBe(
      "Smallest set that fits: Optimizer SGD and Batch of 1 instead of 2; then it needs 450B.",
    );
  });
});

describe("the crash card", () => {
  it("tells what was asked for, whose it was, what was alive and what to change", async () => {
    const element = await shown(new CrashCard(), { crash: crash() });
    const root = element.shadowRoot!;
    expect(text(byTestId(root, "crash-headline")[0])).toBe(crash().headline);
    const facts = Object.fromEntries(
      [...root.querySelectorAll("dl > div")].map((fact) => [
        text(fact.querySelector("dt")!),
        text(fact.querySelector("dd")!),
      ]),
    );
    expect(facts).toMatchObject({ "Failed op": "adam/Mul_7", Layer: "net/a", Variable: "net/a/kernel", Step: "2" });
    expect(facts["Tensor"]).toMatch(/10.*10.*float32/);
    const exact = [...root.querySelectorAll<HTMLElement>("dl [data-bytes]")].map((one) => one.dataset["bytes"]);
    expect(exact).toEqual(["400", "2900", "3000"]);
    expect([...byTestId(root, "crash-advice")[0]!.children].map(text)).toEqual(crash().advice);
    expect(byTestId(root, "item-row").map((row) => row.dataset["name"])).toEqual(["net/a/kernel"]);
    expect(text(root.querySelector("details")!)).toContain("And 2 smaller items.");
    expect(text(root.querySelector("summary")!)).toContain("Alive at the predicted peak");
  });

  it("leaves out what is not known", async () => {
    const unknown = { op: null, shape: null, dtype: null, bytes: null, layer: null, variable: null, step: null };
    const nowhere = { in_use_bytes: null, limit_bytes: null, device: null, allocator: null };
    const rest = { live: [], live_count: 0, live_bytes: 0, expectation: null, advice: [] };
    const element = await shown(new CrashCard(), { crash: crash({ ...unknown, ...nowhere, ...rest }) });
    expect(text(element.shadowRoot!.querySelector("section")!)).toBe(`Out of memory ${crash().headline}`);
  });

  it("says whether what was alive was seen", async () => {
    const element = await shown(new CrashCard(), { crash: crash({ live_is_predicted: false }) });
    expect(text(element.shadowRoot!.querySelector("summary")!)).toContain("Alive when it failed");
  });
});

describe("the layer table", () => {
  const rows = (table: LayerTable): string[] =>
    byTestId(table.shadowRoot!, "layer-row").map((row) => row.dataset["path"]!);

  it("has a column for each category there is, exact bytes in every cell, and a total that is the peak", async () => {
    const { layers, total } = estimate();
    const table = await shown(new LayerTable(), { layers, total });
    const cells = (row: Element): Record<string, number> =>
      Object.fromEntries(
        [...row.querySelectorAll<HTMLElement>("[data-testid=layer-cell]")].map((cell) => [
          cell.dataset["column"] ?? "",
          Number(cell.dataset["bytes"]),
        ]),
      );
    expect(rows(table)).toEqual(["net/c", "net/b", "net/a"]);
    expect(byTestId(table.shadowRoot!, "layer-row").map(cells)).toEqual([
      { total: 1600, weights: 1600, activations: 0 },
      { total: 900, weights: 0, activations: 900 },
      { total: 500, weights: 400, activations: 100 },
    ]);
    const [sum] = byTestId(table.shadowRoot!, "layer-total");
    expect(cells(sum!)).toEqual({ total: 3000, weights: 2000, activations: 1000 });
    expect(sum!.querySelector<HTMLElement>("[data-column=total]")!.title).toBe("3,000 B");
  });

  it("is sorted by a click on a head, and says so", async () => {
    const { layers, total } = estimate();
    const table = await shown(new LayerTable(), { layers, total });
    const button = table.shadowRoot!.querySelector<HTMLButtonElement>("[data-sort=activations]")!;
    button.click();
    await table.updateComplete;
    expect(rows(table)).toEqual(["net/b", "net/a", "net/c"]);
    expect(button.closest("th")!.getAttribute("aria-sort")).toBe("descending");
    button.click();
    await table.updateComplete;
    expect(rows(table)).toEqual(["net/c", "net/a", "net/b"]);
  });

  it("follows a new estimate", async () => {
    const { layers, total } = estimate();
    const table = await shown(new LayerTable(), { layers, total });
    table.layers = [layer("net/only", 40, 0)];
    await table.updateComplete;
    expect(rows(table)).toEqual(["net/only"]);
  });
});

describe("the verdict", () => {
  const verdict = {
    limit_bytes: 2000,
    outcome: "does not fit" as const,
    margin_bytes: -1000,
    sentence: "Needs 2.9 KiB; the limit is 2.0 KiB: 1000 B short.",
    phases: {},
  };
  const figures = (card: VerdictCard): Record<string, string | undefined> =>
    Object.fromEntries(
      ["predicted-peak", "measured-peak", "limit", "margin"].map((id) => [
        id,
        byTestId(card.shadowRoot!, id)[0]?.querySelector<HTMLElement>(".value [data-bytes]")?.dataset["bytes"],
      ]),
    );

  it("gives Python's sentence and the figures behind it", async () => {
    const measured = { ...overview("a").measured, peak_bytes: 2950, difference: 50 / 2950 };
    const card = await shown(new VerdictCard(), { overview: overview("a", { verdict, measured }) });
    expect(text(byTestId(card.shadowRoot!, "verdict-sentence")[0])).toBe(verdict.sentence);
    expect(byTestId(card.shadowRoot!, "verdict")[0]!.dataset["outcome"]).toBe("does not fit");
    expect(figures(card)).toEqual({
      "predicted-peak": "3000",
      "measured-peak": "2950",
      limit: "2000",
      margin: "1000",
    });
    expect(text(byTestId(card.shadowRoot!, "difference")[0])).toBe("+1.7 %");
    expect(text(byTestId(card.shadowRoot!, "margin")[0])).toContain("Short by");
    expect(text(byTestId(card.shadowRoot!, "predicted-peak")[0])).toContain("can be 2.8 KiB to 3.5 KiB");
  });

  it("keeps the data pipeline apart where there is one", async () => {
    const value = overview("a", { measured: measuredSteps() });
    const card = await shown(new VerdictCard(), { overview: value, unit: "B" });
    const [held] = byTestId(card.shadowRoot!, "pipeline-bytes");
    expect([held!.dataset["bytes"], text(held)]).toEqual(["50", "50B"]);
    expect(text(held!.parentElement!)).toBe("+ 50B of the data pipeline, which on a CPU shares the allocator");
    expect(figures(card)["measured-peak"]).toBe("3050");
    expect(text(byTestId(card.shadowRoot!, "difference")[0])).toBe("−1.6 %");
    for (const pipeline_bytes of [0, null]) {
      const none = overview("a", { measured: measuredSteps({ pipeline_bytes }) });
      const other = await shown(new VerdictCard(), { overview: none });
      expect(byTestId(other.shadowRoot!, "pipeline-bytes")).toEqual([]);
    }
  });

  it("asks for a limit where there is none, and judges nothing", async () => {
    const card = await shown(new VerdictCard(), { overview: overview("a"), unit: "B" });
    expect(text(byTestId(card.shadowRoot!, "verdict-sentence")[0])).toMatch(/^Needs 3,000B\. Give a limit/);
    expect(figures(card)).toEqual({ "predicted-peak": "3000" });
    expect(text(byTestId(card.shadowRoot!, "measured-peak")[0])).toContain("not measured");
  });

  it("tells a run that was only measured", async () => {
    const measured = { ...overview("a").measured, peak_bytes: 2950 };
    const card = await shown(new VerdictCard(), { overview: overview("a", { estimate: null, measured }) });
    expect(text(byTestId(card.shadowRoot!, "verdict-sentence")[0])).toMatch(/^Used 2\.9KiB at its peak, measured/);
    expect(figures(card)).toEqual({ "measured-peak": "2950" });
  });
});

it("phases are bars whose segments carry their bytes and whose label says them", async () => {
  const bars = await shown(new PhaseBars(), { overview: overview("a") });
  const drawn = byTestId(bars.shadowRoot!, "phase-bar").map((bar) => [
    bar.dataset["phase"],
    [...bar.querySelectorAll<HTMLElement>(".segment")].map((segment) => [
      segment.dataset["category"],
      segment.dataset["bytes"],
    ]),
  ]);
  expect(drawn).toEqual([
    ["build", [["weights", "2500"]]],
    [
      "step",
      [
        ["weights", "2000"],
        ["activations", "1000"],
      ],
    ],
  ]);
  expect(byTestId(bars.shadowRoot!, "phase-bar")[1]!.getAttribute("aria-label")).toContain("Step, predicted: 2.9 KiB");
});

it("phases are marked with the steps' own peaks", async () => {
  const bars = await shown(new PhaseBars(), { overview: overview("a", { measured: measuredSteps() }) });
  const marks = byTestId(bars.shadowRoot!, "phase-measured").map((mark) => mark.dataset["bytes"]);
  expect(marks).toEqual(["2600", "3000", "3050"]);
  expect(text(bars.shadowRoot!.querySelector(".key")!)).toContain("measured, the steps without the data pipeline");
});

describe("the data pipeline", () => {
  it("draws every stage from where the one before it ends, with bytes and the reason", async () => {
    const card = await shown(new HostCard(), { host: host(), unit: "B" });
    const stages = byTestId(card.shadowRoot!, "host-stage");
    expect(stages.map((row) => row.dataset["name"])).toEqual(["cache", "shuffle", "in use"]);
    expect(text(stages[0])).toBe("cache 1,000B 100 10B Every element stays in memory.");
    const drawn = stages.map((row) => row.querySelector<HTMLElement>(".segment")!.style);
    expect(drawn.map(({ left }) => Number.parseFloat(left).toFixed(1))).toEqual(["0.0", "76.9", "92.3"]);
    expect(drawn.map(({ width }) => Number.parseFloat(width).toFixed(1))).toEqual(["76.9", "15.4", "7.7"]);
    expect(text(byTestId(card.shadowRoot!, "host-peak")[0])).toBe("1,300B");
  });

  it("tells what each change saves, and which save nothing", async () => {
    const card = await shown(new HostCard(), { host: host({ slack_bytes: 40, startup_bytes: 2000 }), unit: "B" });
    const levers = byTestId(card.shadowRoot!, "host-lever");
    expect(text(levers[0])).toBe('cache in a file 300B 1,000B reads dataset.cache("file")');
    expect(text(levers[1])).toContain("nothing It is shared.");
    expect(text(card.shadowRoot!.querySelector("header")!)).toContain("up to 40B");
    expect(text(card.shadowRoot!.querySelector("header")!)).toContain("at the start 2,000B");
    expect(text(byTestId(card.shadowRoot!, "host-assumptions")[0])).toBe("AUTOTUNE is taken to prefetch 2 elements.");
  });

  it("is shown for runs that have it, and left out for others", async () => {
    const answers = api({ host: (run) => Promise.resolve({ host: run === "a" ? host() : null }) });
    const store = new Store(answers);
    const app = await shown(new App(), { store });
    await store.start(START);
    await app.updateComplete;
    expect(byTestId(app.shadowRoot!, "host-stage")).toHaveLength(3);
    await store.selectRun("b");
    await app.updateComplete;
    expect(byTestId(app.shadowRoot!, "host-stage")).toHaveLength(0);
  });
});

describe("measured peaks", () => {
  const key = async (value: Overview): Promise<string> => {
    const card = await shown(new PeaksCard(), { overview: value, devices: [peaks()], unit: "B" });
    return text(card.shadowRoot!.querySelector(".key")!);
  };

  it("say what of them is the data pipeline's, as the prediction is without it", async () => {
    const value = overview("a", { measured: measuredSteps() });
    expect(await key(value)).toContain("peak of a step, with about 50B of the data pipeline");
    expect(await key({ ...value, estimate: null })).not.toContain("data pipeline");
    expect(await key(overview("a", { measured: measuredSteps({ pipeline_bytes: 0 }) }))).not.toContain("data pipeline");
  });
});

it("a measured curve says that the data pipeline is in it, which it is not in the predicted one", async () => {
  const timeline = { unit: "op" as const, ticks: [0, 1], live_bytes: [1, 2], op_index: [0, 0], ops: ["x"], spans: [] };
  const load = { state: "ready" as const, value: { peak_bytes: 2, events: 2, timeline } };
  const profile = {
    id: "p",
    allocator: "bfc",
    host: "h",
    started_at: "now",
    before_bytes: 1,
    peak_bytes: 2,
    before: [],
  };
  const notes = async (pipeline_bytes: number): Promise<boolean[]> => {
    const value = overview("a", { measured: measuredSteps({ pipeline_bytes, profiles: [profile] }) });
    const card = await shown(new StepCard(), { overview: value, profileId: "p", profile: load, curve: load });
    return [...card.shadowRoot!.querySelectorAll(".below")].map((note) =>
      text(note).includes("with the data pipeline"),
    );
  };
  expect(await notes(50)).toEqual([false, true]);
  expect(await notes(0)).toEqual([false, false]);
});

it("dominant items give words, exact bytes and shares", async () => {
  const part = { category: "weights" as const, count: 1, bytes: 600, share: 0.2 };
  const entry = {
    name: "net/a/kernel",
    layer: "net/a",
    shape: [2, 3],
    bytes: 1800,
    share: 0.6,
    sentence: "It is most of it.",
    parts: [
      { ...part, role: "weight" },
      { ...part, role: "update temporary", count: 2, bytes: 1200, share: 0.4 },
    ],
  };
  const card = await shown(new DominantItems(), { dominant: [entry] });
  expect(byTestId(card.shadowRoot!, "dominant-part").map(text)).toEqual([
    "weight 600B 20.0 %",
    "update temporary × 2 1.2KiB 40.0 %",
  ]);
  expect(text(byTestId(card.shadowRoot!, "dominant-total")[0])).toBe("together 1.8KiB 60.0 %");
  expect(text(byTestId(card.shadowRoot!, "dominant-sentence")[0])).toBe("It is most of it.");
});

describe("the top bar", () => {
  it("tells what a person chose", async () => {
    const chosen: [string, unknown][] = [];
    const bar = await shown(new TopBar(), { runs: [headline("a"), headline("b")], run: "a" });
    for (const type of ["choose-run", "choose-limit", "choose-unit"]) {
      bar.addEventListener(type, (event) => chosen.push([type, (event as CustomEvent<unknown>).detail]));
    }
    bar.shadowRoot!.querySelector<HTMLInputElement>("input[value=b]")!.click();
    const limit = byTestId(bar.shadowRoot!, "limit-input")[0] as HTMLInputElement;
    limit.value = "24GB";
    limit.dispatchEvent(new Event("change"));
    bar.shadowRoot!.querySelectorAll<HTMLButtonElement>("[data-testid=unit-switch] button")[2]!.click();
    expect(chosen).toEqual([
      ["choose-run", "b"],
      ["choose-limit", "24GB"],
      ["choose-unit", "B"],
    ]);
  });

  it("shows why a limit was refused", async () => {
    const bar = await shown(new TopBar(), { runs: [headline("a")], limit: "3 parsecs", limitError: "no size" });
    expect(text(byTestId(bar.shadowRoot!, "limit-error")[0])).toBe("no size");
    expect(byTestId(bar.shadowRoot!, "limit-input")[0]!.getAttribute("aria-invalid")).toBe("true");
  });
});

describe("the tab", () => {
  async function tab(change: Partial<Api>, place = START): Promise<App> {
    const app = new App();
    app.store = new Store(api(change));
    await shown(app, {});
    await app.store.start(place);
    await app.updateComplete;
    return app;
  }
  const has = (app: App, id: string): boolean => byTestId(app.shadowRoot!, id).length > 0;

  it("explains itself where there is no run", async () => {
    const app = await tab({ runs: () => Promise.resolve([]) });
    expect(text(byTestId(app.shadowRoot!, "empty")[0])).toContain('memest.log_model(model, logdir="runs/my-run")');
  });

  it("shows an error of the server in its words", async () => {
    const app = await tab({ overview: () => Promise.reject(new ApiError("torn file", 500)) });
    expect(text(byTestId(app.shadowRoot!, "error")[0])).toContain("torn file");
    expect(has(app, "run-picker")).toBe(true);
  });

  it("says that a run is not there, and keeps the picker", async () => {
    const app = await tab({}, { ...START, run: "gone" });
    expect(text(byTestId(app.shadowRoot!, "unknown-run")[0])).toContain("gone");
    expect(byTestId(app.shadowRoot!, "run-option").map((option) => option.dataset["run"])).toEqual(["a", "b"]);
  });

  it("waits visibly", async () => {
    const app = new App();
    app.store = new Store(api({ runs: () => new Promise(() => undefined) }));
    await shown(app, {});
    void app.store.start(START);
    await app.updateComplete;
    expect(has(app, "loading")).toBe(true);
  });

  it("never hides problems, notes and assumptions", async () => {
    const value = overview("a", {
      estimate: estimate({ assumptions: ["float32 targets"] }),
      problems: ["a newer record"],
    });
    value.measured.notes = ["no GPU here"];
    const app = await tab({ overview: () => Promise.resolve(value) });
    await vi.waitFor(() => expect(has(app, "assumptions")).toBe(true));
    expect(["problems", "notes", "assumptions"].map((id) => text(byTestId(app.shadowRoot!, id)[0]))).toEqual([
      "a newer record",
      "no GPU here",
      "float32 targets",
    ]);
  });

  it("lists what is alive only when asked", async () => {
    const asked = vi.fn(api().items);
    const app = await tab({ items: asked });
    expect(asked).not.toHaveBeenCalled();
    const [details] = byTestId(app.shadowRoot!, "items") as HTMLDetailsElement[];
    details!.open = true;
    details!.dispatchEvent(new Event("toggle"));
    await vi.waitFor(() => expect(asked.mock.calls).toEqual([["a", "step"]]));
  });
});
