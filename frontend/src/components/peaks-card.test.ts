import { describe, expect, it } from "vitest";
import type { Overview } from "../model/types";
import { shown, text } from "../testing/dom";
import { measuredSteps, overview, peaks } from "../testing/samples";
import { PeaksCard } from "./peaks-card";

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
