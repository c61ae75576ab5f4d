import { readFileSync } from "node:fs";
import { describe, expect, it, test } from "vitest";
import {
  bytesFigure,
  exactBytes,
  formatBytes,
  formatDifference,
  formatFraction,
  formatShape,
  formatShare,
  grouped,
} from "./bytes";

interface Vectors {
  format_bytes: { bytes: number; text: string }[];
  format_share: { part: number; whole: number; text: string }[];
}

// The same file holds Python to the same answers: tests/unit/memory/test_units.py.
const vectors = JSON.parse(readFileSync("../tests/vectors/units.json", "utf8")) as Vectors;

describe("the vectors shared with Python", () => {
  it("has vectors", () => {
    expect(vectors.format_bytes.length).toBeGreaterThan(20);
    expect(vectors.format_share.length).toBeGreaterThan(5);
  });
  test.each(vectors.format_bytes)("$bytes is $text", ({ bytes, text }) => expect(formatBytes(bytes)).toBe(text));
  test.each(vectors.format_share)("$part of $whole is $text", ({ part, whole, text }) =>
    expect(formatShare(part, whole)).toBe(text),
  );
});

describe("units", () => {
  it("never shows a larger unit than the chosen one, and smaller ones for what is smaller", () => {
    expect(formatBytes(3_081_920_512, "MiB")).toBe("2939.1 MiB");
    expect(formatBytes(2000, "MiB")).toBe("2.0 KiB");
    expect(formatBytes(18_492_341_248, "B")).toBe("18,492,341,248 B");
    expect(bytesFigure(-1_310_720, "MiB")).toEqual({ number: "-1.3", unit: "MiB" });
  });

  it("rounds halves away from zero and carries through nines", () => {
    expect(formatBytes(1024 * 10 - 1)).toBe("10.0 KiB");
    expect(formatShare(9995, 10_000)).toBe(">99.9 %");
    expect(formatShare(9994, 10_000)).toBe("99.9 %");
    expect(formatShare(1, 8)).toBe("12.5 %");
  });
});

describe("other figures", () => {
  it("groups whole numbers by thousands", () => {
    expect(grouped(770_482_865)).toBe("770,482,865");
    expect(grouped(-1234)).toBe("-1,234");
    expect(grouped(999)).toBe("999");
    expect(exactBytes(1024)).toBe("1,024 B");
  });

  it("writes fractions as percent", () => {
    expect(formatFraction(0.1664)).toBe("16.6 %");
    expect([0, 0.0004, 0.9996, 1].map(formatFraction)).toEqual(["0.0 %", "<0.1 %", ">99.9 %", "100.0 %"]);
    expect(formatDifference(0.0042)).toBe("+0.4 %");
    expect(formatDifference(-0.031)).toBe("−3.1 %");
    expect(formatDifference(-0.0001)).toBe("0.0 %");
  });

  it("writes shapes as Python does", () => {
    expect(formatShape([1, 1487, null, 16])).toBe("(1, 1487, ?, 16)");
    expect(formatShape([128])).toBe("(128,)");
    expect(formatShape([])).toBe("()");
    expect(formatShape(null)).toBe("–");
  });
});
