import type { Fields } from "../format/records";
import type { Bytes, Span } from "../model/types";

/** What a chart draws; colours are names of custom properties, so that both themes work. */
export interface ChartSeries {
  label: string;
  /** null where the line has not begun. */
  values: readonly (Bytes | null)[];
  colour: string;
  area?: string;
}

export interface ChartData {
  x: readonly number[];
  series: readonly ChartSeries[];
}

/** One record a moment for other programs, every number exact. */
export function chartRecords({ x, series }: ChartData): Fields[] {
  return x.map((at, n) => ({
    x: at,
    ...Object.fromEntries(series.map(({ label, values }) => [label, values[n] ?? null])),
  }));
}

/** A level across the whole chart: the limit, the predicted peak. */
export interface Level {
  label: string;
  bytes: Bytes;
  colour: string;
  side: "left" | "right";
  /** Words go under the line instead of over it. */
  below?: boolean;
}

export type Band = Span;

/** A point that is named whatever is on show: the peak. */
export interface Pin {
  x: number;
  bytes: Bytes;
  text: string;
  colour: string;
}

/** What is told about one moment of a chart. */
export interface Told {
  title: string;
  where: string;
  figures: { label: string; bytes: Bytes; text: string }[];
}

/** Growth, from one point to another. */
export interface Trend {
  from: { x: number; bytes: Bytes };
  to: { x: number; bytes: Bytes };
  text: string;
  colour: string;
}
