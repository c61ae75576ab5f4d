import { describe, expect, it } from "vitest";
import { byTestId, shown, text } from "../testing/dom";
import type { Advice, Overview } from "../model/types";
import { advice, crash, host, measuredSteps, overview } from "../testing/samples";
import { VerdictCard } from "./verdict-card";

describe("the verdict", () => {
  const verdict = {
    limit_bytes: 2000,
    limit_name: null,
    risks: ["A display takes its share first."],
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
    expect(byTestId(card.shadowRoot!, "verdict-risk").map(text)).toEqual(verdict.risks);
    expect(text(byTestId(card.shadowRoot!, "difference")[0])).toBe("+1.7 %");
    expect(text(byTestId(card.shadowRoot!, "margin")[0])).toContain("Short by");
    expect(text(byTestId(card.shadowRoot!, "predicted-peak")[0])).toContain("can be 2.8 KiB to 3.5 KiB");
  });

  it("tells first that a run ran out of memory, whatever the estimate says", async () => {
    const fits = { ...verdict, outcome: "fits" as const, margin_bytes: 10, sentence: "It fits with 10 B to spare." };
    const risky = { ...fits, risks: ["A risk that the card of the crash tells."] };
    const card = await shown(new VerdictCard(), { overview: overview("a", { verdict: risky, crash: crash() }) });
    const root = card.shadowRoot!;
    expect(text(byTestId(root, "verdict-sentence")[0])).toBe("The run ran out of memory in step 2.");
    expect(text(byTestId(root, "verdict-predicted")[0]!.parentElement!)).toBe(
      "By the estimate: It fits with 10 B to spare. What happened",
    );
    expect(byTestId(root, "verdict")[0]!.dataset["outcome"]).toBe("ran out of memory");
    expect(byTestId(root, "verdict-risk")).toEqual([]);
    expect(text(byTestId(root, "margin")[0])).toContain("predicted: fits");
    const unlimited = await shown(new VerdictCard(), { overview: overview("a", { crash: crash() }) });
    expect(text(byTestId(unlimited.shadowRoot!, "verdict-sentence")[0])).toBe("The run ran out of memory in step 2.");
    expect(byTestId(unlimited.shadowRoot!, "verdict-predicted")).toEqual([]);
  });

  it("holds no prediction against a run that ended before it needed all", async () => {
    const measured = measuredSteps({ difference: 0.7 });
    const card = await shown(new VerdictCard(), { overview: overview("a", { measured, crash: crash() }) });
    expect(byTestId(card.shadowRoot!, "difference")).toEqual([]);
    expect(text(byTestId(card.shadowRoot!, "measured-peak")[0])).toContain("until it ran out");
  });

  it("names the smallest change that fits and the one that saves most", async () => {
    const [sample] = advice().levers;
    const levers = [["a", 1900] as const, ["b", 500] as const].map(([name, needs_bytes]) => ({
      ...sample!,
      ...{ name, title: `Change ${name}`, needs_bytes },
    }));
    const smallest = (name: string): Advice =>
      advice({ limit_bytes: 2000, levers, combination: { names: [name], peak_bytes: 0, needs_bytes: 1900 } });
    const told = async (change: Partial<Overview>): Promise<string> => {
      const card = await shown(new VerdictCard(), { overview: overview("a", change), unit: "B" });
      return byTestId(card.shadowRoot!, "verdict-fix").map(text).join("");
    };
    expect(await told({ verdict, advice: smallest("a") })).toBe(
      "Smallest change that fits: Change a, then it needs at most 1,900B. What saves most: Change b, then at most 500B. All changes",
    );
    expect(await told({ verdict, advice: smallest("b") })).not.toContain("What saves most");
    const fits = { ...verdict, outcome: "fits" as const };
    expect(await told({ verdict: fits, advice: smallest("a") })).toBe("");
    expect(await told({ verdict: fits, crash: crash(), advice: smallest("a") })).toContain("Change b");
  });

  it("asks for nothing that could only not be read", async () => {
    const value = overview("a", { estimate: null, problems: ["This record has format 2."] });
    const card = await shown(new VerdictCard(), { overview: value });
    expect(text(byTestId(card.shadowRoot!, "verdict-sentence")[0])).toBe(
      "What was recorded of this run could not be read.",
    );
    expect(text(byTestId(card.shadowRoot!, "verdict")[0])).not.toContain("log_model");
  });

  it("says what the data pipeline holds where that is all there is", async () => {
    const card = await shown(new VerdictCard(), {
      overview: overview("a", { estimate: null }),
      host: host(),
      unit: "B",
    });
    expect(text(byTestId(card.shadowRoot!, "verdict-sentence")[0])).toMatch(
      /^The data pipeline holds [\d,]+B of the host/,
    );
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
