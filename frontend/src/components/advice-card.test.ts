import { describe, expect, it } from "vitest";
import { byTestId, shown, text } from "../testing/dom";
import { advice } from "../testing/samples";
import { AdviceCard } from "./advice-card";

describe("the advice card", () => {
  it("lists what helps with its code, and what does not with the reason", async () => {
    const card = await shown(new AdviceCard(), { advice: advice(), unit: "B" });
    const root = card.shadowRoot!;
    const rows = byTestId(root, "advice-lever").map((row) => [...row.children].map((cell) => text(cell)));
    expect(rows).toEqual([
      [
        "Optimizer SGD",
        "",
        "500B up to 600B",
        "500B",
        "yes",
        "Needs a tuned learning rate.",
        "keras.optimizers.SGD() Copy",
      ],
      [
        "Batch of 1 instead of 2",
        "",
        "900B up to 1,000B",
        "500B",
        "no",
        "Needs a tuned learning rate.",
        "keras.optimizers.SGD() Copy",
      ],
    ]);
    expect(byTestId(root, "advice-useless").map(text)).toEqual(["Precision mixed_float16: weights stay float32"]);
    expect(text(byTestId(root, "advice-batch")[0])).toBe("no batch is small enough");
    expect(byTestId(root, "advice-combination")).toEqual([]);
  });

  it("says whose memory is saved where it is the host's", async () => {
    const board = { ...advice().levers[0]!, name: "histogram_freq", saving_bytes: 0, host_saving_bytes: 240 };
    const card = await shown(new AdviceCard(), { advice: advice({ levers: [board] }), unit: "B" });
    expect(text(byTestId(card.shadowRoot!, "advice-lever")[0])).toContain("240B of the host");
  });

  it("folds away what saves little, unless it decides", async () => {
    const [lever] = advice().levers;
    const little = { ...lever!, name: "little", saving_bytes: 1, fits: true };
    const folded = async (fits: boolean): Promise<string[]> => {
      const card = await shown(new AdviceCard(), { advice: advice({ fits, levers: [lever!, little] }), unit: "B" });
      return byTestId(card.shadowRoot!, "advice-little").map((details) => text(details.querySelector("summary")!));
    };
    expect(await folded(true)).toEqual(["1 change that saves little"]);
    expect(await folded(false)).toEqual([]);
  });

  it("tells the smallest set where one change is not enough", async () => {
    const combination = { names: ["sgd", "half_batch"], peak_bytes: 400, needs_bytes: 450 };
    const card = await shown(new AdviceCard(), { advice: advice({ combination }), unit: "B" });
    expect(text(byTestId(card.shadowRoot!, "advice-combination")[0])).toBe(
      "Smallest set that fits: Optimizer SGD and Batch of 1 instead of 2; then it needs 450B.",
    );
  });
});
