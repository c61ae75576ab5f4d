import type { Fields } from "../format/records";
import { CATEGORIES, type Bytes, type Category, type Outcome, type Overview } from "../model/types";
import { deviceOf } from "./device";
import { phaseLabel } from "./words";

export interface Segment {
  category: Category;
  bytes: Bytes;
}

/** One phase as a bar. */
export interface PhaseRow {
  name: string;
  label: string;
  /** Predicted; null where only measurements exist. */
  peak: Bytes | null;
  segments: Segment[];
  /** Lowest and highest possible peak; null where the order of execution changes nothing. */
  range: [Bytes, Bytes] | null;
  /** The op at which the predicted peak is reached. */
  op: string;
  /** What that op allocates, in words; null where that is not known. */
  peakOf: string | null;
  /** What it takes of the host's memory besides. */
  host: Bytes;
  outcome: Outcome | null;
  measured: { bytes: Bytes; what: string } | null;
}

/** The phases of a run in the order in which it passes them, each with what was predicted and what was measured. */
export function phaseRows(overview: Overview): PhaseRow[] {
  const { estimate, verdict } = overview;
  const measured = measuredPhases(overview);
  const rows = (estimate?.phases ?? []).map((phase): PhaseRow => {
    const [low, high] = phase.peak_range;
    return {
      name: phase.name,
      label: phaseLabel(phase.name),
      peak: phase.peak_bytes,
      segments: segmentsOf(phase.categories),
      range: low === high ? null : [low, high],
      op: phase.peak_op,
      peakOf: phase.peak_of,
      host: phase.host_peak_bytes,
      outcome: verdict?.phases[phase.name]?.outcome ?? null,
      measured: measured.get(phase.name) ?? null,
    };
  });
  const told = new Set(rows.map((row) => row.name));
  for (const [name, value] of measured) {
    if (!told.has(name)) {
      rows.push({
        name,
        label: name === "build" ? "Before the steps" : phaseLabel(name),
        peak: null,
        segments: [],
        range: null,
        op: "",
        peakOf: null,
        host: 0,
        outcome: null,
        measured: value,
      });
    }
  }
  return rows;
}

/** One record a phase for other programs, every number exact. */
export function phaseRecords(overview: Overview): Fields[] {
  return phaseRows(overview).map(({ name, peak, range, op, host, outcome, measured, segments }) => {
    const held = new Map(segments.map(({ category, bytes }) => [category, bytes]));
    return {
      phase: name,
      predicted_bytes: peak,
      lowest_bytes: range?.[0] ?? peak,
      highest_bytes: range?.[1] ?? peak,
      measured_bytes: measured?.bytes ?? null,
      outcome,
      peak_op: op,
      host_bytes: host,
      ...Object.fromEntries(CATEGORIES.map((category) => [category, held.get(category) ?? 0])),
    };
  });
}

/** The categories that hold anything, in the order in which they are stacked everywhere. */
export function segmentsOf(categories: Partial<Record<Category, Bytes>>): Segment[] {
  return CATEGORIES.flatMap((category) => {
    const bytes = categories[category];
    return bytes ? [{ category, bytes }] : [];
  });
}

function measuredPhases({ estimate, measured }: Overview): Map<string, { bytes: Bytes; what: string }> {
  const found = new Map<string, { bytes: Bytes; what: string }>();
  const device = deviceOf(estimate, measured.devices);
  if (device && device.before_bytes !== null) {
    found.set("build", { bytes: device.before_bytes, what: "before the first step" });
  }
  const { first_step: first, step, evaluate, predict } = measured.phases;
  if (first !== undefined) {
    found.set("first_step", { bytes: first, what: "in the first step" });
  }
  if (step !== undefined) {
    found.set("step", { bytes: step, what: first === undefined ? "in all steps" : "in all later steps" });
  }
  if (evaluate !== undefined) {
    found.set("evaluate", { bytes: evaluate, what: "in evaluation" });
  }
  if (predict !== undefined) {
    found.set("predict", { bytes: predict, what: "in prediction" });
  }
  return found;
}
