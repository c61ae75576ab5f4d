import { describe, expect, it } from "vitest";
import { panned, parseStretch, stretchText, WHOLE, within, zoomed } from "./stretch";

describe("a stretch", () => {
  it.each([
    [WHOLE, ""],
    [{ x: [120, 400] as const, y: null }, "120..400"],
    [{ x: [-5, 4] as const, y: [0, 2 ** 40] as const }, "-5..4;0..1099511627776"],
    [{ x: null, y: [7, 9] as const }, ";7..9"],
  ])("%o is %s in the address", (stretch, text) => {
    expect(stretchText(stretch)).toBe(text);
    expect(parseStretch(text)).toEqual(stretch);
  });

  it.each(["x", "1..x", "9..3", "4..4", "1.5..2", "1...3"])("%s is no stretch: all is shown", (text) => {
    expect(parseStretch(text)).toEqual(WHOLE);
  });

  it("is whole numbers inside of what there is, or nothing", () => {
    expect(within([1.6, 8.2], [0, 10])).toEqual([1, 9]);
    expect(within([-3, 4], [0, 10])).toEqual([0, 4]);
    expect(within([-3, 40], [0, 10])).toBeNull();
    expect(within([20, 40], [0, 10])).toBeNull();
  });

  it("zooms around a place that stays where it is", () => {
    expect(zoomed([0, 100], [0, 100], 0.5, 20)).toEqual([10, 60]);
    expect(zoomed([10, 60], [0, 100], 2, 20)).toBeNull();
    expect(zoomed([10, 60], [0, 100], 1.2, 60)).toEqual([0, 60]);
    expect(zoomed([10, 20], [0, 100], 0.5, 500)).toEqual([15, 20]);
  });

  it("does not zoom in between two whole numbers", () => {
    expect(zoomed([4, 5], [0, 100], 0.5, 4)).toEqual([4, 5]);
  });

  it("moves as far as there is something", () => {
    expect(panned([10, 20], [0, 100], 0.5)).toEqual([15, 25]);
    expect(panned([10, 20], [0, 100], -5)).toEqual([0, 10]);
    expect(panned([10, 20], [0, 100], 50)).toEqual([90, 100]);
    expect(panned([0, 100], [0, 100], 1)).toBeNull();
  });
});
