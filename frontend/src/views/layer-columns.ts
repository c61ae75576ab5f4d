import { formatShape } from "../format/bytes";
import { CATEGORIES, type Category, type Estimate } from "../model/types";
import { LABELS } from "../style/palette";
import type { SortKey, TreeRow } from "./layer-tree";

/** A column beside the layer's name. */
export type Column = "output" | "parameters" | "picture" | "total" | "share" | "measured" | "difference" | Category;

const BESIDE_CATEGORIES = ["output", "parameters", "picture", "total", "share", "measured", "difference"] as const;

export const COLUMN_LABELS: Record<Column, string> = {
  output: "Output",
  parameters: "Parameters",
  picture: "By category",
  total: "At the peak",
  share: "Share",
  measured: "Measured",
  difference: "Measured −\u00a0predicted",
  ...LABELS,
};

/** The columns that an estimate can fill: measured ones only where there is a profile, categories that hold anything. */
export function columnsOf({ total }: Estimate): Column[] {
  const measured = total.measured_bytes !== null && total.measured_bytes !== undefined;
  return [
    ...BESIDE_CATEGORIES.filter((column) => measured || (column !== "measured" && column !== "difference")),
    ...CATEGORIES.filter((category) => (total.bytes_per_category[category] ?? 0) > 0),
  ];
}

/** Below this share of the whole a category has no column of its own unless somebody wants it: bars show all of them. */
const WORTH_A_COLUMN = 0.01;

/**
 * Those on show: what a person chose, in the table's order, or the usual ones, which are all but the share and categories
 * that hold next to nothing; what is sorted or filtered by is among them.
 */
export function shownColumns(
  { total }: Estimate,
  available: readonly Column[],
  chosen: readonly string[],
  asked: readonly string[] = [],
): Column[] {
  const least = WORTH_A_COLUMN * total.bytes_at_peak;
  const isUsual = (column: Column): boolean =>
    column !== "share" && (!isCategory(column) || (total.bytes_per_category[column] ?? 0) >= least);
  return available.filter((column) =>
    chosen.length ? chosen.includes(column) : isUsual(column) || asked.includes(column),
  );
}

export const isCategory = (column: Column): column is Category => CATEGORIES.includes(column as Category);

/** What a click on a column's head sorts by; null where there is nothing to sort. */
export function sortKeyOf(column: Column): SortKey | null {
  switch (column) {
    case "output":
    case "picture":
      return null;
    case "share":
      return "total";
    default:
      return column;
  }
}

/** One record a layer for other programs, every number exact. */
export function layerRecords(rows: readonly TreeRow[], available: readonly Column[]): Record<string, unknown>[] {
  const categories = CATEGORIES.filter((category) => available.includes(category));
  return rows.map((row) => ({
    layer: row.path,
    class: row.class_name,
    output_shape: row.output_shape ? formatShape(row.output_shape) : "",
    parameters: row.parameters,
    bytes_at_peak: row.bytes_at_peak,
    ...(available.includes("measured")
      ? { measured_bytes: row.measured_bytes, difference_bytes: row.difference_bytes }
      : {}),
    ...Object.fromEntries(categories.map((category) => [category, row.bytes_per_category[category] ?? 0])),
  }));
}
