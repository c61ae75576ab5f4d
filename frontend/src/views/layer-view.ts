import type { Place } from "../model/place";
import { CATEGORIES, type Bytes, type Category } from "../model/types";
import type { Filter, SortKey, Sorting } from "./layer-tree";

/** What a person chose for the layer table, in the address's words and in the table's. */

const UP = ".up";
const SORT_KEYS: readonly string[] = ["model", "parameters", "total", "measured", "difference", ...CATEGORIES];

export function sortingOf({ sort }: Pick<Place, "sort">): Sorting {
  const key = sort.endsWith(UP) ? sort.slice(0, -UP.length) : sort;
  return SORT_KEYS.includes(key)
    ? { key: key as SortKey, descending: !sort.endsWith(UP) }
    : { key: "total", descending: true };
}

export function sortText({ key, descending }: Sorting): string {
  return descending ? (key === "total" ? "" : key) : `${key}${UP}`;
}

export function filterOf({ find, category, least }: Pick<Place, "find" | "category" | "least">): Filter {
  return {
    find,
    category: CATEGORIES.includes(category as Category) ? (category as Category) : "",
    least: SIZES.find(({ text }) => text === least)?.bytes ?? 0,
  };
}

/** Sizes to filter by. */
export const SIZES: readonly { text: string; label: string; bytes: Bytes }[] = [
  { text: "1B", label: "1 B", bytes: 1 },
  { text: "1KiB", label: "1 KiB", bytes: 2 ** 10 },
  { text: "100KiB", label: "100 KiB", bytes: 100 * 2 ** 10 },
  { text: "1MiB", label: "1 MiB", bytes: 2 ** 20 },
  { text: "10MiB", label: "10 MiB", bytes: 10 * 2 ** 20 },
  { text: "100MiB", label: "100 MiB", bytes: 100 * 2 ** 20 },
  { text: "1GiB", label: "1 GiB", bytes: 2 ** 30 },
  { text: "10GiB", label: "10 GiB", bytes: 10 * 2 ** 30 },
];
