import { describe, expect, it } from "vitest";
import type { Place } from "../model/place";
import { byTestId, shown, text } from "../testing/dom";
import { aligned, curve, measuredSteps, overview } from "../testing/samples";
import { onChoose } from "./choose";
import type { CurveChart } from "./curve-chart";
import { StepCard } from "./step-card";

const profile = {
  id: "p",
  allocator: "bfc",
  host: "h",
  started_at: "now",
  before_bytes: 1,
  peak_bytes: 2,
  before: [],
};

it("a measured curve says that the data pipeline is in it, which it is not in the predicted one", async () => {
  const load = { state: "ready" as const, value: curve() };
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

describe("the measured step over the predicted one", () => {
  const ready = <T>(value: T): { state: "ready"; value: T } => ({ state: "ready", value });
  const card = (phase: string): Promise<StepCard> =>
    shown(new StepCard(), {
      overview: overview("a", { measured: measuredSteps({ profiles: [profile] }) }),
      phase,
      profileId: "p",
      curve: ready(curve()),
      profile: ready(curve({ unit: "ns" })),
      aligned: ready(aligned()),
      unit: "B",
    });

  it("is drawn where the phase is the one that was profiled, and says what was taken off it", async () => {
    const root = (await card("step")).shadowRoot!;
    expect(text(byTestId(root, "step-key")[0])).toBe(
      "predicted measured, step 3, without 50B that were in use beside it",
    );
    const chart = byTestId(root, "predicted-chart")[0] as CurveChart;
    expect(chart.data.series.map(({ label }) => label)).toEqual(["predicted", "measured"]);
    const other = (await card("build")).shadowRoot!;
    expect(byTestId(other, "step-key")).toEqual([]);
    expect((byTestId(other, "predicted-chart")[0] as CurveChart).data.series).toHaveLength(1);
  });

  it("says what is along the axis of each, and without a profile how to get one", async () => {
    const root = (await card("step")).shadowRoot!;
    const captions = ["predicted-chart", "measured-chart"].map((id) => (byTestId(root, id)[0] as CurveChart).caption);
    expect(captions).toEqual(["ops, in the order in which they run", "time since the profile began"]);
    const alone = await shown(new StepCard(), { overview: overview("a"), curve: ready(curve()) });
    expect(byTestId(alone.shadowRoot!, "measured-curve")).toEqual([]);
  });

  it("tells op by op where they differ", async () => {
    const root = (await card("step")).shadowRoot!;
    const rows = byTestId(root, "op-difference").map((row) => [...row.children].map(text));
    expect(rows).toEqual([
      ["net/b/MatMul", "300 B", "330 B", "900 B", "980 B"],
      ["net/b/Extra", "–", "20 B", "–", "1,000 B"],
    ]);
  });

  it("looks into the moment that was picked, and shows the stretch that was chosen", async () => {
    const chosen: Partial<Place>[] = [];
    onChoose(document.body, (change) => chosen.push(change));
    const root = (await card("step")).shadowRoot!;
    const fire = (id: string, type: string, detail: unknown): boolean =>
      byTestId(root, id)[0]!.dispatchEvent(new CustomEvent(type, { detail }));
    fire("predicted-chart", "pick", 3); // its x is 2, the third event
    fire("measured-chart", "pick", 1);
    fire("predicted-chart", "stretch", { x: [1, 3], y: null });
    fire("measured-chart", "stretch", { x: null, y: [5, 9] });
    expect(chosen).toEqual([{ moment: "p2" }, { moment: "m1" }, { step: "1..3" }, { time: ";5..9" }]);
  });
});
