import { describe, expect, it, test } from "vitest";
import { CATEGORIES, type Category } from "../model/types";
import { CARD, PALETTE, categoryFill, readable } from "./palette";

type Rgb = [number, number, number];

function linear(hex: string): Rgb {
  return [1, 3, 5].map((at) => {
    const value = parseInt(hex.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  }) as Rgb;
}

const luminance = ([r, g, b]: Rgb): number => 0.2126 * r + 0.7152 * g + 0.0722 * b;

/** WCAG's contrast ratio. */
function contrast(one: string, other: string): number {
  const [dark, light] = [luminance(linear(one)), luminance(linear(other))].sort((a, b) => a - b) as [number, number];
  return (light + 0.05) / (dark + 0.05);
}

/** Viénot, Brettel and Mollon (1999): what a linear colour is to someone without red or without green cones. */
const BLINDNESS: Record<string, (rgb: Rgb) => Rgb> = {
  none: (rgb) => rgb,
  protanopia: ([r, g, b]) => [0.11238 * r + 0.88762 * g, 0.11238 * r + 0.88762 * g, 0.00401 * r - 0.00401 * g + b],
  deuteranopia: ([r, g, b]) => [0.29275 * r + 0.70725 * g, 0.29275 * r + 0.70725 * g, -0.02234 * r + 0.02234 * g + b],
};

function lab([r, g, b]: Rgb): Rgb {
  const xyz = [
    (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505,
    luminance([r, g, b]),
    (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089,
  ].map((value) => (value > 0.008856 ? Math.cbrt(value) : 7.787 * value + 16 / 116)) as Rgb;
  return [116 * xyz[1] - 16, 500 * (xyz[0] - xyz[1]), 200 * (xyz[1] - xyz[2])];
}

function distance(one: Rgb, other: Rgb): number {
  const [a, b] = [lab(one), lab(other)];
  return Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

describe.each(["light", "dark"] as const)("the %s palette", (theme) => {
  test.each(CATEGORIES)("%s stands out from its card", (category) => {
    expect(contrast(PALETTE[theme][category], CARD[theme])).toBeGreaterThanOrEqual(3);
  });

  // The greys stand for what is small or not known; unattributed is told apart by its stripes.
  const coloured: Category[] = ["weights", "gradients", "optimizer_slots", "activations", "temporaries", "workspace"];
  test.each(Object.keys(BLINDNESS))("neighbours in a bar differ under %s", (kind) => {
    const seen = coloured.map((category) => BLINDNESS[kind]!(linear(PALETTE[theme][category])));
    for (let n = 1; n < seen.length; n++) {
      expect(distance(seen[n - 1]!, seen[n]!), `${coloured[n - 1]} and ${coloured[n]}`).toBeGreaterThan(15);
    }
  });
});

describe.each([
  ["light", "#1b2430"],
  ["dark", "#e6eaef"],
] as const)("words on a category, %s", (theme, ink) => {
  test.each(CATEGORIES)("are readable on %s", (category) => {
    const fill = PALETTE[theme][category];
    expect(contrast(fill, readable(fill, [ink, CARD[theme]]))).toBeGreaterThanOrEqual(4.5);
  });
});

it("stripes what is unattributed", () => {
  expect(categoryFill("unattributed")).toContain("repeating-linear-gradient");
  expect(categoryFill("weights")).toBe("var(--category-weights)");
});
