import { describe, expect, it } from "vitest";
import { estimate, measuredSteps, overview, peaks } from "../testing/samples";
import { deviceOf } from "./device";
import { phaseRecords, phaseRows, segmentsOf } from "./phases";

describe("phaseRows", () => {
  it("puts what was measured beside what was predicted", () => {
    const rows = phaseRows(overview("a", { measured: measuredSteps() }));
    expect(rows.map(({ name, peak, range, measured }) => ({ name, peak, range, measured }))).toEqual([
      { name: "build", peak: 2500, range: null, measured: { bytes: 2600, what: "before the first step" } },
      { name: "step", peak: 3000, range: [2900, 3600], measured: { bytes: 3000, what: "in all later steps" } },
      { name: "first_step", peak: null, range: null, measured: { bytes: 3050, what: "in the first step" } },
    ]);
  });

  it("knows no first step where it was not measured alone, and no build where that is unknown", () => {
    const steps = measuredSteps({ phases: { step: 3050 } });
    steps.devices[0]!.before_bytes = null;
    const rows = phaseRows(overview("a", { measured: steps }));
    expect(rows.map(({ name, measured }) => [name, measured])).toEqual([
      ["build", null],
      ["step", { bytes: 3050, what: "in all steps" }],
    ]);
  });

  it("shows measurements of a run without an estimate", () => {
    const rows = phaseRows(overview("a", { estimate: null, measured: measuredSteps() }));
    expect(rows.map(({ label, peak, measured }) => [label, peak, measured?.bytes])).toEqual([
      ["Before the steps", null, 2600],
      ["First step", null, 3050],
      ["Step", null, 3000],
    ]);
  });

  it("becomes records with every number, and with the same fields in each", () => {
    const records = phaseRecords(overview("a", { measured: measuredSteps() }));
    expect(
      records.map(({ phase, predicted_bytes, lowest_bytes, highest_bytes, measured_bytes, weights }) => [
        ...[phase, predicted_bytes, lowest_bytes, highest_bytes, measured_bytes, weights],
      ]),
    ).toEqual([
      ["build", 2500, 2500, 2500, 2600, 2500],
      ["step", 3000, 2900, 3600, 3000, 2000],
      ["first_step", null, null, null, 3050, 0],
    ]);
    expect(new Set(records.map((record) => Object.keys(record).join())).size).toBe(1);
  });

  it("takes outcomes from the verdict", () => {
    const margin = { peak_bytes: 3000, margin_bytes: -1, outcome: "does not fit" as const };
    const verdict = {
      limit_bytes: 2999,
      limit_name: null,
      risks: [],
      outcome: margin.outcome,
      margin_bytes: -1,
      sentence: "",
      phases: { step: margin },
    };
    expect(phaseRows(overview("a", { verdict })).map((row) => row.outcome)).toEqual([null, "does not fit"]);
  });
});

it("stacks categories in one order and leaves empty ones out", () => {
  expect(segmentsOf({ constants: 1, activations: 2, weights: 3, inputs: 0 })).toEqual([
    { category: "weights", bytes: 3 },
    { category: "activations", bytes: 2 },
    { category: "constants", bytes: 1 },
  ]);
});

it("compares an estimate with a device of its own kind only", () => {
  const devices = [peaks({ device: "CPU:0" }), peaks({ device: "GPU:0" }), peaks({ device: "GPU:1" })];
  const gpu = estimate({ subject: { ...estimate().subject, device: "GPU" } });
  expect(deviceOf(gpu, devices)?.device).toBe("GPU:0");
  expect(deviceOf(gpu, devices.slice(0, 1))).toBeUndefined();
  expect(deviceOf(null, devices)?.device).toBe("CPU:0");
});
