import { describe, expect, it } from "vitest";
import type { Overview, PeaksAnswer } from "../model/types";
import type { Place } from "../model/place";
import { byTestId, shown, text } from "../testing/dom";
import { leak, measuredSteps, overview, peaks } from "../testing/samples";
import { onChoose } from "./choose";
import type { CurveChart } from "./curve-chart";
import { PeaksCard } from "./peaks-card";

const ready = (value: PeaksAnswer): { state: "ready"; value: PeaksAnswer } => ({ state: "ready", value });

describe("measured peaks", () => {
  const key = async (value: Overview): Promise<string> => {
    const card = await shown(new PeaksCard(), {
      overview: value,
      peaks: ready({ devices: [peaks()], beside: [], leaks: [] }),
      unit: "B",
    });
    return text(card.shadowRoot!.querySelector(".key")!);
  };

  it("say what of them is the data pipeline's, as the prediction is without it", async () => {
    const value = overview("a", { measured: measuredSteps() });
    expect(await key(value)).toContain("peak of a step, with about 50B of the data pipeline");
    expect(await key({ ...value, estimate: null })).not.toContain("data pipeline");
    expect(await key(overview("a", { measured: measuredSteps({ pipeline_bytes: 0 }) }))).not.toContain("data pipeline");
  });

  it("can be of another device, of evaluation or of the host, and grow where they grow", async () => {
    const chosen: Partial<Place>[] = [];
    onChoose(document.body, (change) => chosen.push(change));
    const answer = {
      devices: [peaks(), peaks({ device: "GPU:1" })],
      beside: [{ ...peaks({ windows: [[0, 0, 70, 60, 50, 10]] }), what: "evaluate" as const }],
      leaks: [leak()],
    };
    const card = await shown(new PeaksCard(), { overview: overview("a"), peaks: ready(answer), unit: "B" });
    const root = card.shadowRoot!;
    const buttons = byTestId(root, "series")[0]!.querySelectorAll("button");
    expect([...buttons].map(text)).toEqual(["CPU:0 ↗ grows", "GPU:1", "Evaluate, CPU:0"]);
    const chart = (): CurveChart => byTestId(root, "peaks-chart")[0] as CurveChart;
    expect(chart().trend).toEqual({
      from: { x: 2, bytes: 1890 },
      to: { x: 10, bytes: 1990 },
      text: "grows by 14 B a step since step 2",
      colour: "--warn",
    });
    expect(text(byTestId(root, "leak")[0])).toBe(leak().sentence);
    buttons[2]!.click();
    expect(chosen).toEqual([{ series: "evaluate/CPU:0" }]);
    card.chosen = "evaluate/CPU:0";
    await card.updateComplete;
    expect([chart().dataset["what"], chart().trend, chart().data.x]).toEqual(["evaluate", null, [0, 1]]);
    expect(chart().caption).toBe("batch");
    expect(chart().levels).toEqual([]);
  });

  it("say why there are none", async () => {
    const value = overview("a", { measured: measuredSteps() });
    const failed = { state: "failed" as const, message: "torn file", status: 500 };
    const card = await shown(new PeaksCard(), { overview: value, peaks: failed });
    expect(text(card.shadowRoot!.querySelector("[role=alert]")!)).toBe("torn file");
    const begun = await shown(new PeaksCard(), {
      overview: value,
      peaks: ready({ devices: [peaks({ windows: [] })], beside: [], leaks: [] }),
    });
    expect(text(byTestId(begun.shadowRoot!, "no-steps")[0])).toBe("No step has been measured yet.");
  });
});
