import { describe, expect, it } from "vitest";
import { overlap, placed, type Box } from "./labels";

const bounds: Box = { left: 0, top: 0, width: 200, height: 100 };
const size = { width: 60, height: 10 };

describe("words beside a point", () => {
  it("stand over it", () => {
    expect(placed({ x: 100, y: 50 }, size, bounds, [], 5)).toEqual({ left: 70, top: 35, ...size });
  });

  it("stay inside at the sides", () => {
    expect(placed({ x: 3, y: 50 }, size, bounds, [], 5).left).toBe(0);
    expect(placed({ x: 199, y: 50 }, size, bounds, [], 5).left).toBe(140);
  });

  it("go elsewhere where others stand already", () => {
    const limit = { left: 0, top: 33, width: 90, height: 12 };
    const found = placed({ x: 60, y: 50 }, size, bounds, [limit], 5);
    expect(overlap(found, limit)).toBe(false);
    expect(found.left).toBeGreaterThan(60);
  });

  it("go under it at the upper edge", () => {
    const found = placed({ x: 100, y: 4 }, size, bounds, [{ left: 0, top: 0, width: 200, height: 6 }], 5);
    expect(found.top).toBe(9);
  });

  it("stand over it where there is no room at all", () => {
    expect(placed({ x: 100, y: 50 }, size, bounds, [bounds], 5)).toEqual({ left: 70, top: 35, ...size });
  });
});
