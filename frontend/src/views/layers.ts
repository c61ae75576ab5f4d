import { CATEGORIES, type Bytes, type Category, type LayerRow, type Total } from "../model/types";

/** What the table can be sorted by: the model's own order, parameters, the total, or one category. */
export type SortKey = "model" | "parameters" | "total" | Category;

export interface Sorting {
  key: SortKey;
  descending: boolean;
}

/** The categories that get a column: those that hold anything at the peak. */
export function columnsOf(total: Total): Category[] {
  return CATEGORIES.filter((category) => (total.bytes_per_category[category] ?? 0) > 0);
}

/** A new list in the wanted order; rows that are equal stay in the model's order. */
export function sorted(rows: readonly LayerRow[], { key, descending }: Sorting): LayerRow[] {
  if (key === "model") {
    return descending ? [...rows].reverse() : [...rows];
  }
  const sign = descending ? -1 : 1;
  return [...rows].sort((a, b) => sign * (sortValue(a, key) - sortValue(b, key)));
}

/** What a click on a column's head does: figures start with the largest, the model's order with its first layer. */
export function nextSorting(now: Sorting, key: SortKey): Sorting {
  return now.key === key ? { key, descending: !now.descending } : { key, descending: key !== "model" };
}

/** Path without the model's name, where it has it: what tells one layer from another. */
export function layerName(path: string, model: string): string {
  return path.startsWith(`${model}/`) ? path.slice(model.length + 1) : path;
}

function sortValue(row: LayerRow, key: Exclude<SortKey, "model">): Bytes {
  switch (key) {
    case "parameters":
      return row.parameters;
    case "total":
      return row.bytes_at_peak;
    default:
      return row.bytes_per_category[key] ?? 0;
  }
}
