import { grouped } from "../format/bytes";
import type { Category, Compared, ComparedRow } from "../model/types";
import { LABELS } from "../style/palette";
import { phaseLabel } from "./words";

/** The tables of bytes in a comparison. */
export type Section = "peaks" | "phases" | "categories" | "layers";

const SECTIONS: readonly Section[] = ["peaks", "phases", "categories", "layers"];

const PEAKS: Record<string, string> = {
  predicted: "Predicted peak",
  measured: "Measured peak",
  resident: "Between the steps",
};

const FACTS: Record<string, string> = {
  model_name: "Model",
  parameters: "Parameters",
  trainable_parameters: "Trainable parameters",
  optimizer: "Optimizer",
  batch_size: "Batch size",
  mode: "Mode",
  device: "Device",
  pool: "Pool",
};

export const factLabel = (name: string): string => FACTS[name] ?? name;

export function rowLabel(section: Section, name: string): string {
  switch (section) {
    case "peaks":
      return PEAKS[name] ?? name;
    case "phases":
      return phaseLabel(name);
    case "categories":
      return LABELS[name as Category] ?? name;
    case "layers":
      return name;
  }
}

/** Whether the runs differ in it; what a run does not have differs from what another has. */
export function isChanged({ values }: ComparedRow): boolean {
  return values.some((value) => value !== values[0]);
}

/** `+1,024 B`, `−1,024 B`. */
export function inBytes(difference: number): string {
  return `${difference < 0 ? "−" : "+"}${grouped(Math.abs(difference))} B`;
}

/** One record a row for other programs: each run's figure, and those of differences. */
export function comparedRecords(compared: Compared): Record<string, unknown>[] {
  return SECTIONS.flatMap((section) =>
    compared[section].map((row) => {
      const record: Record<string, unknown> = { section, name: row.name };
      compared.runs.forEach(({ name }, n) => {
        record[name] = row.values[n] ?? null;
        if (n) {
          record[`${name} difference`] = row.differences[n] ?? null;
        }
      });
      return record;
    }),
  );
}
