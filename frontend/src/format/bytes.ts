/**
 * Bytes for people. `formatBytes` and `formatShare` give exactly what `format_bytes` and `format_share` of
 * tensorboard_plugin_memest/memory/units.py give; tests/vectors/units.json holds both to it.
 */

const KIB = 2 ** 10;
const MIB = 2 ** 20;
const GIB = 2 ** 30;

/** The largest unit figures are shown in; smaller figures fall back to smaller units, so that none reads as zero. */
export type Unit = "GiB" | "MiB" | "B";
export const UNITS: readonly Unit[] = ["GiB", "MiB", "B"];

/** A figure in two parts, so that the unit can be set in a quieter type. */
export interface Figure {
  number: string;
  unit: string;
}

/** `17.22 GiB`, `185.0 MiB`, `3.1 KiB`, `12 B`; a sign is kept. */
export function formatBytes(bytes: number, unit: Unit = "GiB"): string {
  const figure = bytesFigure(bytes, unit);
  return `${figure.number} ${figure.unit}`;
}

export function bytesFigure(bytes: number, unit: Unit = "GiB"): Figure {
  const sign = bytes < 0 ? "-" : "";
  const magnitude = Math.abs(bytes);
  if (unit === "B") {
    return { number: grouped(bytes), unit: "B" };
  }
  if (unit === "GiB" && magnitude >= GIB) {
    return { number: sign + fixed(magnitude, GIB, 2), unit: "GiB" };
  }
  if (magnitude >= MIB) {
    return { number: sign + fixed(magnitude, MIB, 1), unit: "MiB" };
  }
  if (magnitude >= KIB) {
    return { number: sign + fixed(magnitude, KIB, 1), unit: "KiB" };
  }
  return { number: `${sign}${magnitude}`, unit: "B" };
}

/** `1.13 GiB to 1.15 GiB`; null where both read the same. */
export function formatRange([low, high]: readonly [number, number], unit: Unit): string | null {
  const [from, to] = [formatBytes(low, unit), formatBytes(high, unit)];
  return from === to ? null : `${from} to ${to}`;
}

/** `18,492,341,248 B`: what stands behind a rounded figure. */
export function exactBytes(bytes: number): string {
  return `${grouped(bytes)} B`;
}

/**
 * `part` of `whole` in percent with one decimal, `16.7 %`; `–` where `whole` is 0. What is not nothing does not read as
 * nothing, `<0.1 %`, and what is not all not as all, `>99.9 %`.
 */
export function formatShare(part: number, whole: number): string {
  return whole === 0 ? "–" : percent(fixed(part, whole, 1, 2), part > 0, part < whole);
}

/** A fraction such as 0.1667 in percent, as `formatShare` writes it. */
export function formatFraction(fraction: number): string {
  return percent((fraction * 100).toFixed(1), fraction > 0, fraction < 1);
}

function percent(rounded: string, some: boolean, notAll: boolean): string {
  if (rounded === "0.0" && some) {
    return "<0.1 %";
  }
  return rounded === "100.0" && notAll ? ">99.9 %" : `${rounded} %`;
}

/** A fraction with its sign, `+0.4 %`, `−3.1 %`, `0.0 %`. */
export function formatDifference(fraction: number): string {
  const digits = Math.abs(fraction * 100).toFixed(1);
  if (digits === "0.0") {
    return "0.0 %";
  }
  return `${fraction < 0 ? "−" : "+"}${digits} %`;
}

/** `770,482,865`: a whole number with its thousands apart, the same in every locale. */
export function grouped(whole: number): string {
  return String(whole).replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

/** `(1, 1487, 253, 16)` as Python writes it; `?` for a dimension that is not known, `–` for a shape that is not. */
export function formatShape(shape: readonly (number | null)[] | null): string {
  return shape === null ? "–" : `(${shape.map((size) => size ?? "?").join(", ")}${shape.length === 1 ? "," : ""})`;
}

/**
 * Division of whole numbers to a fixed number of decimals, halves away from zero; `shift` moves the point to the right.
 *
 * Long division, digit by digit, in which no number grows beyond the denominator: the product that the rounding would
 * need leaves the range in which a JavaScript number is exact long before the quotient does.
 */
function fixed(numerator: number, denominator: number, decimals: number, shift = 0): string {
  let remainder = numerator % denominator;
  let digits = String((numerator - remainder) / denominator);
  for (let n = 0; n < decimals + shift; n++) {
    const next = timesTen(remainder, denominator);
    digits += next.digit;
    remainder = next.remainder;
  }
  if (remainder >= denominator - remainder) {
    digits = incremented(digits);
  }
  const point = digits.length - decimals;
  const whole = digits.slice(0, point).replace(/^0+(?=\d)/, "");
  return `${whole}.${digits.slice(point)}`;
}

/** Ten times `remainder`, divided by `denominator`, by addition that never exceeds `denominator`. */
function timesTen(remainder: number, denominator: number): { digit: number; remainder: number } {
  let digit = 0;
  let sum = 0;
  for (let n = 0; n < 10; n++) {
    if (sum >= denominator - remainder) {
      sum -= denominator - remainder;
      digit++;
    } else {
      sum += remainder;
    }
  }
  return { digit, remainder: sum };
}

/** A text of decimal digits, plus one. */
function incremented(digits: string): string {
  const kept = digits.replace(/9+$/, "");
  const zeros = "0".repeat(digits.length - kept.length);
  return kept === "" ? `1${zeros}` : `${kept.slice(0, -1)}${Number(kept.at(-1)) + 1}${zeros}`;
}
