import type { Category } from "../model/types";

/**
 * The one palette of the categories, for bars, tables and charts alike.
 *
 * Every colour stands out from its card by 3:1 or more (palette.test.ts), neighbours differ in lightness as well as in
 * hue, and segments are parted by a gap, so that the picture survives every kind of colour blindness. What is
 * unattributed is striped: it must never be taken for a category of its own.
 */
export const PALETTE: Record<"light" | "dark", Record<Category, string>> = {
  light: {
    weights: "#2f5fa8",
    gradients: "#5695da",
    optimizer_slots: "#c3850f",
    activations: "#1f7a5c",
    inputs: "#5a6673",
    temporaries: "#a878bd",
    workspace: "#c2502f",
    constants: "#85909c",
    unattributed: "#85909c",
  },
  dark: {
    weights: "#5a8bd8",
    gradients: "#a3cbf3",
    optimizer_slots: "#e6ad42",
    activations: "#3fae86",
    inputs: "#aab4c0",
    temporaries: "#cfa5de",
    workspace: "#e37a58",
    constants: "#7d8997",
    unattributed: "#7d8997",
  },
};

/** Background of the cards the colours lie on. */
export const CARD = { light: "#ffffff", dark: "#1c2128" } as const;

/** The categories in words; the order is that of CATEGORIES. */
export const LABELS: Record<Category, string> = {
  weights: "weights",
  gradients: "gradients",
  optimizer_slots: "optimizer slots",
  activations: "activations",
  inputs: "inputs",
  temporaries: "temporaries",
  workspace: "workspace",
  constants: "constants",
  unattributed: "unattributed",
};

/** Which of `colours` is easiest to read on `ground`; all of the form `#rrggbb`. */
export function readable(ground: string, colours: readonly string[]): string {
  const contrast = (colour: string): number => {
    const [dark, light] = [luminance(ground), luminance(colour)].sort((a, b) => a - b) as [number, number];
    return (light + 0.05) / (dark + 0.05);
  };
  return [...colours].sort((a, b) => contrast(b) - contrast(a))[0]!;
}

/** WCAG's relative luminance. */
function luminance(colour: string): number {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const value = parseInt(colour.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** A CSS background for a category, from the custom properties that tokens.ts defines. */
export function categoryFill(category: Category): string {
  const colour = `var(--category-${category})`;
  return category === "unattributed"
    ? `repeating-linear-gradient(135deg, ${colour} 0 2px, var(--track) 2px 5px)`
    : colour;
}
