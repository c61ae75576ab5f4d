import { describe, expect, it } from "vitest";
import { estimate, overview, peaks } from "../testing/samples";
import { deviceOf } from "./device";
import { phaseRows, segmentsOf } from "./phases";

describe("phaseRows", () => {
  it("puts what was measured beside what was predicted", () => {
    const rows = phaseRows(overview("a"), [peaks()]);
    expect(rows.map(({ name, peak, range, measured }) => ({ name, peak, range, measured }))).toEqual([
      { name: "build", peak: 2500, range: null, measured: { bytes: 2600, what: "before the first step" } },
      { name: "step", peak: 3000, range: [2900, 3600], measured: { bytes: 3050, what: "in steps 1 to 9" } },
      { name: "first_step", peak: null, range: null, measured: { bytes: 3100, what: "in the first step" } },
    ]);
  });

  it("does not call a window of several steps the first step", () => {
    const rows = phaseRows(overview("a"), [peaks({ before_bytes: null, windows: [[0, 9, 3100, 2000]] })]);
    expect(rows.map(({ name, measured }) => [name, measured])).toEqual([
      ["build", null],
      ["step", { bytes: 3100, what: "in steps 0 to 9" }],
    ]);
  });

  it("shows measurements of a run without an estimate", () => {
    const rows = phaseRows(overview("a", { estimate: null }), [peaks()]);
    expect(rows.map(({ label, peak, measured }) => [label, peak, measured?.bytes])).toEqual([
      ["Before the steps", null, 2600],
      ["First step", null, 3100],
      ["Step", null, 3050],
    ]);
  });

  it("takes outcomes from the verdict", () => {
    const margin = { peak_bytes: 3000, margin_bytes: -1, outcome: "does not fit" as const };
    const verdict = {
      limit_bytes: 2999,
      outcome: margin.outcome,
      margin_bytes: -1,
      sentence: "",
      phases: { step: margin },
    };
    expect(phaseRows(overview("a", { verdict }), []).map((row) => row.outcome)).toEqual([null, "does not fit"]);
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
