import { describe, expect, it } from "vitest";
import { estimate, layer } from "../testing/samples";
import { columnsOf, layerName, nextSorting, sorted } from "./layers";

const rows = [layer("m/a", 40, 5), layer("m/b", 0, 90), layer("m/c", 40, 1)];
const paths = (key: Parameters<typeof sorted>[1]["key"], descending: boolean): string =>
  sorted(rows, { key, descending })
    .map(({ path }) => path.slice(2))
    .join("");

describe("sorting", () => {
  it("goes by any column, equal rows in the model's order", () => {
    expect(paths("total", true)).toBe("bac");
    expect(paths("total", false)).toBe("cab");
    expect(paths("weights", true)).toBe("acb");
    expect(paths("activations", true)).toBe("bac");
    expect(paths("parameters", false)).toBe("bac");
    expect(paths("model", false)).toBe("abc");
    expect(paths("model", true)).toBe("cba");
  });

  it("starts with the largest and turns around on the second click", () => {
    expect(nextSorting({ key: "total", descending: true }, "weights")).toEqual({ key: "weights", descending: true });
    expect(nextSorting({ key: "total", descending: true }, "total")).toEqual({ key: "total", descending: false });
    expect(nextSorting({ key: "total", descending: true }, "model")).toEqual({ key: "model", descending: false });
  });
});

it("gives a column to the categories that hold anything", () => {
  expect(columnsOf(estimate().total)).toEqual(["weights", "activations"]);
  expect(columnsOf({ parameters: 0, bytes_per_category: { inputs: 0, unattributed: 1 }, bytes_at_peak: 1 })).toEqual([
    "unattributed",
  ]);
});

it("leaves the model's own name out of a layer's", () => {
  expect(layerName("sequential/dense", "sequential")).toBe("dense");
  expect(layerName("m/block/dense", "m")).toBe("block/dense");
  expect(layerName("block/dense", "m")).toBe("block/dense");
  expect(layerName("(optimizer)", "m")).toBe("(optimizer)");
});
