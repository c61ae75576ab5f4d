import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { whatIf } from "../testing/samples";
import { choicesOf, judge, outcomeOf, outcomeRecord, type Judgement } from "./what-if";

type Vector = { phases: Record<string, [number, number, number]>; limit: number } & Judgement;

// The same file holds Python to the same answers: tests/unit/memory/test_verdict.py.
const vectors = JSON.parse(readFileSync("../tests/vectors/verdicts.json", "utf8")) as Vector[];

describe("what fits", () => {
  it.each(vectors)("is what Python says: $outcome at $limit", ({ phases, limit, ...said }) => {
    expect(judge(phases, limit)).toEqual(said);
  });
});

describe("choices", () => {
  const nothing = { batch: "", optimizer: "", precision: "", mode: "" };

  it("are as it is where nothing, or nothing that there is, was chosen", () => {
    expect(choicesOf(whatIf(), nothing)).toEqual(whatIf().base);
    expect(choicesOf(whatIf(), { ...nothing, batch: "3", optimizer: "Muon" })).toEqual(whatIf().base);
    expect(choicesOf(whatIf(), { ...nothing, batch: "4", mode: "xla" })).toEqual({
      batch_size: 4,
      optimizer: "Adam",
      precision: "float32",
      mode: "xla",
    });
  });

  it("become records with the highest that any phase can be", () => {
    const record = outcomeRecord(outcomeOf(whatIf(), { ...whatIf().base, optimizer: "SGD" })!);
    expect(record).toMatchObject({ optimizer: "SGD", peak_bytes: 500, highest_bytes: 800, workspace: 0 });
  });

  it("lead to what was estimated for exactly these", () => {
    const base = whatIf().base;
    expect(outcomeOf(whatIf(), { ...base, optimizer: "SGD" })?.peak_bytes).toBe(500);
    expect(outcomeOf(whatIf(), { ...base, optimizer: "SGD", mode: "xla" })).toBeUndefined();
  });
});
