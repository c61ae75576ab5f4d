import { describe, expect, it } from "vitest";
import type { LayerGroup, LayerRow } from "../model/types";
import { layer } from "../testing/samples";
import { ALL, isOpen, LayerTree, nextSorting, toggled, type Folds, type Sorting } from "./layer-tree";

const group = (path: string, layers: number, weights: number, activations: number): LayerGroup => ({
  path,
  layers,
  parameters: weights / 4,
  bytes_per_category: { weights, activations },
  bytes_at_peak: weights + activations,
  measured_bytes: null,
  difference_bytes: null,
});

/** head, then encoder with two blocks, one of which holds bytes of its own. */
const layers: LayerRow[] = [
  layer("head", 40, 5),
  layer("encoder", 0, 0, { class_name: "Functional" }),
  layer("encoder/b0", 0, 7, { class_name: "Attention" }),
  layer("encoder/b0/query", 100, 0),
  layer("encoder/b1", 0, 0, { class_name: "Functional" }),
  layer("encoder/b1/up", 300, 1),
  layer("encoder/b1/down", 200, 2),
  layer("(step)", 0, 3, { class_name: "" }),
];
const groups = [group("encoder", 6, 600, 10), group("encoder/b0", 2, 100, 7), group("encoder/b1", 3, 500, 3)];
const tree = new LayerTree(layers, groups);
const MODEL: Sorting = { key: "model", descending: false };
const names = (rows: { key: string; depth: number }[]): string[] => rows.map(({ key, depth }) => `${depth} ${key}`);
const every = (): boolean => true;
const none = (): boolean => false;

describe("the tree", () => {
  it("has a group where its first layer stands, and in it what it holds itself", () => {
    expect(names(tree.rows(every, MODEL, ALL))).toEqual([
      "0 head",
      "0 encoder",
      "1 encoder/b0",
      "2 encoder/b0/",
      "2 encoder/b0/query",
      "1 encoder/b1",
      "2 encoder/b1/up",
      "2 encoder/b1/down",
      "0 (step)",
    ]);
    expect(tree.size).toBe(6);
    expect(tree.groups).toEqual(["encoder", "encoder/b0", "encoder/b1"]);
  });

  it("has the server's sums in a group's row and the group's class", () => {
    const [row] = tree.rows(none, { key: "total", descending: true }, ALL);
    expect(row).toMatchObject({
      path: "encoder",
      class_name: "Functional",
      bytes_at_peak: 610,
      layers: 6,
      open: false,
    });
  });

  it("sorts neighbours among themselves, and the list as a whole", () => {
    const sorting: Sorting = { key: "total", descending: true };
    expect(names(tree.rows(every, sorting, ALL)).slice(0, 4)).toEqual([
      "0 encoder",
      "1 encoder/b1",
      "2 encoder/b1/up",
      "2 encoder/b1/down",
    ]);
    expect(names(tree.list(sorting, ALL))).toEqual([
      "0 encoder/b1/up",
      "0 encoder/b1/down",
      "0 encoder/b0/query",
      "0 head",
      "0 encoder/b0/",
      "0 (step)",
    ]);
    expect(names(tree.list({ key: "model", descending: true }, ALL))[0]).toBe("0 (step)");
  });

  it("puts what was not measured last, whichever way", () => {
    const some = new LayerTree(
      [
        layer("a", 1, 0),
        layer("b", 1, 0, { measured_bytes: 5, difference_bytes: -9 }),
        layer("c", 1, 0, { measured_bytes: 7, difference_bytes: 2 }),
      ],
      [],
    );
    expect(names(some.list({ key: "measured", descending: true }, ALL))).toEqual(["0 c", "0 b", "0 a"]);
    expect(names(some.list({ key: "measured", descending: false }, ALL))).toEqual(["0 b", "0 c", "0 a"]);
    expect(names(some.list({ key: "difference", descending: true }, ALL))).toEqual(["0 b", "0 c", "0 a"]);
  });
});

describe("filters", () => {
  it("find by path or class, in any case, and unfold what holds a find", () => {
    expect(names(tree.rows(none, MODEL, { ...ALL, find: " QUERY " }))).toEqual([
      "0 encoder",
      "1 encoder/b0",
      "2 encoder/b0/query",
    ]);
    expect(names(tree.list(MODEL, { ...ALL, find: "attention" }))).toEqual(["0 encoder/b0/"]);
    expect(tree.rows(none, MODEL, { ...ALL, find: "nothing like it" })).toEqual([]);
  });

  it("never hide many small layers that together are large", () => {
    expect(names(tree.rows(every, MODEL, { ...ALL, least: 450 }))).toEqual(["0 encoder", "1 encoder/b1"]);
    expect(names(tree.rows(every, MODEL, { ...ALL, category: "activations", least: 4 }))).toEqual([
      "0 head",
      "0 encoder",
      "1 encoder/b0",
      "2 encoder/b0/",
    ]);
    expect(names(tree.list(MODEL, { ...ALL, category: "inputs" }))).toEqual([]);
  });
});

describe("folding", () => {
  it("starts with as many levels as are easy to take in", () => {
    expect(tree.usualDepth).toBe(2);
    const wide = Array.from({ length: 60 }, (_, n) => layer(`net/block_${n % 20}/dense_${n}`, 4, 0));
    const blocks = Array.from({ length: 20 }, (_, n) => group(`net/block_${n}`, 3, 12, 0));
    const large = new LayerTree(wide, [group("net", 60, 240, 0), ...blocks]);
    expect(large.usualDepth).toBe(1);
    expect(new LayerTree(wide, []).usualDepth).toBe(0);
  });

  it("remembers exceptions from the usual, from all and from none", () => {
    const open = (folds: Folds): string[] => tree.groups.filter((path) => isOpen(tree, folds, path));
    const usual: Folds = { unfold: "", folds: "" };
    expect(open(usual)).toEqual(["encoder", "encoder/b0", "encoder/b1"]);
    const folded = toggled(usual, "encoder/b0");
    expect(open(folded)).toEqual(["encoder", "encoder/b1"]);
    expect(toggled(folded, "encoder/b0")).toEqual(usual);
    expect(open(toggled({ unfold: "none", folds: "" }, "encoder"))).toEqual(["encoder"]);
    expect(tree.around("encoder/b1/up")).toEqual(["encoder", "encoder/b1"]);
    expect(tree.around("encoder/b1")).toEqual(["encoder", "encoder/b1"]);
  });
});

it("starts with the largest and turns around on the second click", () => {
  expect(nextSorting({ key: "total", descending: true }, "weights")).toEqual({ key: "weights", descending: true });
  expect(nextSorting({ key: "total", descending: true }, "total")).toEqual({ key: "total", descending: false });
  expect(nextSorting({ key: "total", descending: true }, "model")).toEqual({ key: "model", descending: false });
});
