import { expect, it } from "vitest";
import { estimate, layer } from "../testing/samples";
import { columnsOf, layerRecords, shownColumns } from "./layer-columns";
import { ALL, LayerTree } from "./layer-tree";
import { filterOf, sortingOf, sortText } from "./layer-view";

it("offers what an estimate can fill, and shows what a person chose", () => {
  const plain = columnsOf(estimate());
  expect(plain).toEqual(["output", "parameters", "picture", "total", "share", "weights", "activations"]);
  const { total } = estimate();
  expect(columnsOf(estimate({ total: { ...total, measured_bytes: 0 } }))).toContain("difference");
  const usual = ["output", "parameters", "picture", "total", "weights", "activations"];
  expect(shownColumns(estimate(), plain, [])).toEqual(usual);
  expect(shownColumns(estimate(), plain, ["share", "total", "measured"])).toEqual(["total", "share"]);
});

it("has no column for a category that holds next to nothing, unless it is asked for", () => {
  const { total } = estimate();
  const held = { weights: 2970, inputs: 30, constants: 29 };
  const value = estimate({ total: { ...total, bytes_per_category: held, bytes_at_peak: 3000 } });
  const categories = (...asked: string[]): string[] =>
    shownColumns(value, columnsOf(value), [], asked).filter((column) => column in held);
  expect(categories()).toEqual(["weights", "inputs"]);
  expect(categories("constants")).toEqual(["weights", "inputs", "constants"]);
});

it("exports every number exactly", () => {
  const rows = new LayerTree([layer("a/b", 2 ** 41, 3, { measured_bytes: 7, difference_bytes: -1 })], []).list(
    sortingOf({ sort: "" }),
    ALL,
  );
  const plain = columnsOf(estimate());
  expect(layerRecords(rows, plain)).toEqual([
    {
      layer: "a/b",
      class: "Dense",
      output_shape: "(1, 8)",
      parameters: 2 ** 39,
      bytes_at_peak: 2 ** 41 + 3,
      weights: 2 ** 41,
      activations: 3,
    },
  ]);
  expect(layerRecords(rows, [...plain, "measured"])[0]).toMatchObject({ measured_bytes: 7, difference_bytes: -1 });
});

it("keeps sorting and filter in words that are read back", () => {
  for (const key of ["model", "total", "measured", "weights"] as const) {
    for (const descending of [true, false]) {
      expect(sortingOf({ sort: sortText({ key, descending }) })).toEqual({ key, descending });
    }
  }
  expect(sortText({ key: "total", descending: true })).toBe("");
  expect(sortingOf({ sort: "nonsense.up" })).toEqual({ key: "total", descending: true });
  expect(filterOf({ find: "x", category: "inputs", least: "1MiB" })).toEqual({
    find: "x",
    category: "inputs",
    least: 2 ** 20,
  });
  expect(filterOf({ find: "", category: "nonsense", least: "7" })).toEqual(ALL);
});
