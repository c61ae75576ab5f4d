import { describe, expect, it } from "vitest";
import { byteAxis, byteTicks, tickLabel, zoomedAxis } from "./axis";

const GIB = 2 ** 30;
const MIB = 2 ** 20;

describe("byteAxis", () => {
  it("holds every figure and a limit within reach", () => {
    const axis = byteAxis([3 * GIB, 17 * GIB], 20 * GIB, "GiB");
    expect(axis.max).toBeGreaterThan(20 * GIB);
    expect(axis.limitBeyond).toBe(false);
  });

  it("does not shrink everything for a limit far above", () => {
    const axis = byteAxis([GIB], 80 * GIB, "GiB");
    expect(axis.max).toBeLessThan(2 * GIB);
    expect(axis.limitBeyond).toBe(true);
  });

  it("is an axis even without figures", () => {
    expect(byteAxis([], null, "GiB").max).toBeGreaterThan(0);
    expect(byteAxis([0, 0], null, "B").max).toBeGreaterThan(0);
  });
});

describe("zoomedAxis", () => {
  const axis = byteAxis([17 * GIB], 20 * GIB, "GiB");

  it("is the axis itself where nothing is zoomed", () => {
    expect(zoomedAxis(axis, null, "GiB")).toBe(axis);
  });

  it("has marks of its own inside a stretch", () => {
    const zoomed = zoomedAxis(axis, [17 * GIB, 17.1 * GIB], "GiB");
    expect([zoomed.min, zoomed.max]).toEqual([17 * GIB, 17.1 * GIB]);
    expect(zoomed.ticks.map((tick) => tickLabel(tick, zoomed.max, "GiB"))).toEqual(["17 GiB", "17.05 GiB", "17.1 GiB"]);
  });
});

describe("ticks", () => {
  it("are round numbers of the unit that is shown", () => {
    expect(byteTicks(18.2 * GIB, "GiB").map((tick) => tick / GIB)).toEqual([0, 5, 10, 15]);
    expect(byteTicks(1.2 * GIB, "MiB", 4).map((tick) => tick / MIB)).toEqual([0, 500, 1000]);
    expect(byteTicks(700 * MIB, "GiB", 4).map((tick) => tick / MIB)).toEqual([0, 200, 400, 600]);
  });

  it("are labelled in that unit, in readable units even where figures are exact bytes", () => {
    expect(tickLabel(0, 18 * GIB, "GiB")).toBe("0");
    expect(tickLabel(0.5 * GIB, 1.3 * GIB, "GiB")).toBe("0.5 GiB");
    expect(tickLabel(1000 * MIB, 1.2 * GIB, "MiB")).toBe("1,000 MiB");
    expect(tickLabel(5 * GIB, 18 * GIB, "B")).toBe("5 GiB");
  });
});
