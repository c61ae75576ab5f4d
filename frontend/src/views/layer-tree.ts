import { joined, parted } from "../model/place";
import type { Bytes, BytesPerCategory, Category, LayerGroup, LayerRow, Shape } from "../model/types";

/** A row of the layer table: a layer, a group with all that lies below it, or what a group holds itself. */
export interface TreeRow {
  /** Tells one row from another. */
  key: string;
  path: string;
  /** What tells it from its neighbours. */
  name: string;
  kind: "layer" | "group" | "own";
  /** How deep it lies, 0 for the outermost. */
  depth: number;
  /** For a group, whether what lies below it is on show. */
  open: boolean;
  class_name: string;
  /** For a group, how many layers are in it. */
  layers: number;
  output_shape: Shape | null;
  parameters: number;
  bytes_per_category: BytesPerCategory;
  bytes_at_peak: Bytes;
  measured_bytes: Bytes | null;
  difference_bytes: Bytes | null;
}

/** What the table can be sorted by: the model's own order, or a figure. */
export type SortKey = "model" | "parameters" | "total" | "measured" | "difference" | Category;

export interface Sorting {
  key: SortKey;
  descending: boolean;
}

/** Which rows are on show. */
export interface Filter {
  /** Part of a path or of a class, in any case. */
  find: string;
  /** Only what holds something of this category; empty for all. */
  category: Category | "";
  /** Only what holds at least so much at the peak, of the category where one is chosen. */
  least: Bytes;
}

export const ALL: Filter = { find: "", category: "", least: 0 };

const EASY_ROWS = 40;

interface Node {
  row: TreeRow;
  children: Node[];
}

/** The layers of an estimate as a tree. Made once; what is on show of it changes with every click. */
export class LayerTree {
  readonly #roots: Node[] = [];
  readonly #groups = new Map<string, Node>();
  readonly #leaves: TreeRow[] = [];
  /** Down to which depth groups are unfolded at first. */
  readonly usualDepth: number;

  /** `groups` come with the outer before the inner. */
  constructor(layers: readonly LayerRow[], groups: readonly LayerGroup[]) {
    const sums = new Map(groups.map((group) => [group.path, group]));
    const own = new Map(layers.map((layer) => [layer.path, layer]));
    for (const layer of layers) {
      let siblings = this.#roots;
      for (const path of [...above(layer.path), layer.path]) {
        const sum = sums.get(path);
        if (sum) {
          siblings = this.#group(sum, own.get(path), siblings).children;
        }
      }
      const inGroup = sums.has(layer.path);
      // A model that only holds others has nothing of its own to tell.
      if (!inGroup || layer.bytes_at_peak > 0 || layer.parameters > 0 || (layer.measured_bytes ?? 0) > 0) {
        const row = leafRow(layer, inGroup);
        siblings.push({ row, children: [] });
        this.#leaves.push(row);
      }
    }
    this.usualDepth = usualDepth(this.#roots);
  }

  /** Paths of all groups, the outer before the inner. */
  get groups(): string[] {
    return [...this.#groups.keys()];
  }

  /** How many rows there are without groups. */
  get size(): number {
    return this.#leaves.length;
  }

  /**
   * What is on show as a tree: groups before what lies in them.
   *
   * @param isOpen - whether a group is unfolded; while something is searched for, every group with a find in it is.
   */
  rows(isOpen: (path: string) => boolean, sorting: Sorting, filter: Filter): TreeRow[] {
    const searching = wanted(filter) !== "";
    const found: TreeRow[] = [];
    const visit = (nodes: readonly Node[]): void => {
      for (const { row, children } of ordered(nodes, sorting, (node) => node.row)) {
        if (!shows({ row, children }, filter)) {
          continue;
        }
        if (row.kind !== "group") {
          found.push(row);
          continue;
        }
        const open = searching || isOpen(row.path);
        found.push({ ...row, open });
        if (open) {
          visit(children);
        }
      }
    };
    visit(this.#roots);
    return found;
  }

  /** What is on show as one list, every layer under its whole path. */
  list(sorting: Sorting, filter: Filter): TreeRow[] {
    const rows = this.#leaves.filter((row) => isLarge(row, filter) && isFound(row, filter));
    return ordered(rows, sorting, (row) => row).map((row) => ({ ...row, depth: 0, name: row.path }));
  }

  /** Paths of the groups around a path, and its own where it is one: what has to be open for it to be seen. */
  around(path: string): string[] {
    return [...above(path), path].filter((one) => this.#groups.has(one));
  }

  /** The group, which takes its place among its siblings when the first of its layers comes. */
  #group(sum: LayerGroup, own: LayerRow | undefined, siblings: Node[]): Node {
    let node = this.#groups.get(sum.path);
    if (!node) {
      const { class_name, output_shape } = own ?? { class_name: "", output_shape: null };
      node = {
        row: { ...sum, ...placed(sum.path), key: sum.path, kind: "group", open: false, class_name, output_shape },
        children: [],
      };
      this.#groups.set(sum.path, node);
      siblings.push(node);
    }
    return node;
  }
}

/** As deep as the table stays easy to take in. */
function usualDepth(roots: readonly Node[]): number {
  let level = roots;
  let rows = level.length;
  let depth = 0;
  for (;;) {
    level = level.flatMap(({ children }) => children);
    rows += level.length;
    if (level.length === 0 || rows > EASY_ROWS) {
      return depth;
    }
    depth++;
  }
}

/** Which groups are unfolded: all, none or as many as fit well, and the exceptions that a person made. */
export interface Folds {
  unfold: (typeof FOLDS)[number];
  /** Paths of the exceptions, as `joined` writes them. */
  folds: string;
}

export const FOLDS = ["", "all", "none"] as const;

export function isOpen(tree: LayerTree, { unfold, folds }: Folds, path: string): boolean {
  const usual = unfold === "" ? path.split("/").length <= tree.usualDepth : unfold === "all";
  return parted(folds).includes(path) ? !usual : usual;
}

/** The folds with one group folded or unfolded. */
export function toggled({ unfold, folds }: Folds, path: string): Folds {
  const exceptions = parted(folds);
  const next = exceptions.includes(path) ? exceptions.filter((one) => one !== path) : [...exceptions, path];
  return { unfold, folds: joined(next) };
}

/** What a click on a column's head does: figures start with the largest, the model's order with its first layer. */
export function nextSorting(now: Sorting, key: SortKey): Sorting {
  return now.key === key ? { key, descending: !now.descending } : { key, descending: key !== "model" };
}

function leafRow(layer: LayerRow, inGroup: boolean): TreeRow {
  const { name, depth } = placed(layer.path);
  return {
    ...layer,
    key: inGroup ? `${layer.path}/` : layer.path,
    kind: inGroup ? "own" : "layer",
    name: inGroup ? "itself" : name,
    depth: inGroup ? depth + 1 : depth,
    open: false,
    layers: 1,
    measured_bytes: layer.measured_bytes ?? null,
    difference_bytes: layer.difference_bytes ?? null,
  };
}

function placed(path: string): { name: string; depth: number } {
  const parts = path.split("/");
  return { name: parts.at(-1)!, depth: parts.length - 1 };
}

/** `a` and `a/b` for `a/b/c`. */
function above(path: string): string[] {
  const parts = path.split("/");
  return parts.slice(1).map((_, n) => parts.slice(0, n + 1).join("/"));
}

function shows(node: Node, filter: Filter): boolean {
  // A group is as large as all that lies in it, so that what is small but many is never hidden.
  return isLarge(node.row, filter) && (isFound(node.row, filter) || node.children.some((one) => shows(one, filter)));
}

function isLarge(row: TreeRow, { category, least }: Filter): boolean {
  const held = category ? (row.bytes_per_category[category] ?? 0) : row.bytes_at_peak;
  return held >= least && (category === "" || held > 0);
}

const wanted = ({ find }: Filter): string => find.trim().toLowerCase();

function isFound(row: TreeRow, filter: Filter): boolean {
  const text = wanted(filter);
  return text === "" || row.path.toLowerCase().includes(text) || row.class_name.toLowerCase().includes(text);
}

/** A new list in the wanted order; what is equal stays in the model's order. */
function ordered<T>(all: readonly T[], { key, descending }: Sorting, row: (one: T) => TreeRow): T[] {
  if (key === "model") {
    return descending ? [...all].reverse() : [...all];
  }
  const sign = descending ? -1 : 1;
  // What was not measured goes last, whichever way.
  const value = (one: T): number => figure(row(one), key) ?? sign * Infinity;
  return [...all].sort((a, b) => {
    const [left, right] = [value(a), value(b)];
    return left === right ? 0 : sign * (left - right);
  });
}

function figure(row: TreeRow, key: Exclude<SortKey, "model">): number | null {
  switch (key) {
    case "parameters":
      return row.parameters;
    case "total":
      return row.bytes_at_peak;
    case "measured":
      return row.measured_bytes;
    case "difference":
      return row.difference_bytes === null ? null : Math.abs(row.difference_bytes);
    default:
      return row.bytes_per_category[key] ?? 0;
  }
}
