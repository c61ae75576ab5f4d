import { expect, it } from "vitest";
import { shown, text } from "../testing/dom";
import { curve, measuredSteps, overview } from "../testing/samples";
import { StepCard } from "./step-card";

it("a measured curve says that the data pipeline is in it, which it is not in the predicted one", async () => {
  const load = { state: "ready" as const, value: curve() };
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
