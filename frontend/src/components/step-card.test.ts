import { expect, it } from "vitest";
import { shown, text } from "../testing/dom";
import { measuredSteps, overview } from "../testing/samples";
import { StepCard } from "./step-card";

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
