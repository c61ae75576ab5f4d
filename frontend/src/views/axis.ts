import { bytesFigure, type Unit } from "../format/bytes";
import type { Bytes } from "../model/types";
import type { Range } from "./stretch";

/** From `min` to `max` bytes, with marks at round numbers of the unit that people see. */
export interface ByteAxis {
  min: Bytes;
  max: Bytes;
  ticks: Bytes[];
  /** The limit lies so far above everything else that the axis would show nothing but it; it is told in words then. */
  limitBeyond: boolean;
}

const HEADROOM = 1.12;
/** How many times the largest figure a limit may be before it leaves the axis. */
const LIMIT_REACH = 3;

/** One axis for all of `figures` and the limit. */
export function byteAxis(figures: readonly Bytes[], limit: Bytes | null, unit: Unit, marks = 5): ByteAxis {
  const highest = Math.max(1, ...figures);
  const limitBeyond = limit !== null && limit > highest * LIMIT_REACH;
  const max = Math.max(highest, limitBeyond ? 0 : (limit ?? 0)) * HEADROOM;
  return { min: 0, max, ticks: byteTicks(max, unit, marks), limitBeyond };
}

/** The same axis with only a stretch of it on show; null for all. */
export function zoomedAxis(axis: ByteAxis, stretch: Range | null, unit: Unit): ByteAxis {
  const [min, max] = stretch ?? [axis.min, axis.max];
  return stretch ? { min, max, ticks: byteTicks(max, unit, 5, min), limitBeyond: axis.limitBeyond } : axis;
}

/** Exact bytes are for figures; a scale in them would be all digits. */
const scaleUnit = (unit: Unit): Unit => (unit === "B" ? "GiB" : unit);

/** Round numbers of the unit in which `max` is shown, about `marks` of them, from `min` to `max`. */
export function byteTicks(max: Bytes, unit: Unit, marks = 5, min: Bytes = 0): Bytes[] {
  const factor = FACTORS[bytesFigure(Math.floor(max), scaleUnit(unit)).unit] ?? 1;
  const rough = (max - min) / factor / marks;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5, 10].find((multiple) => multiple * power >= rough) ?? 10) * power * factor;
  const ticks = [];
  for (let n = Math.ceil(min / step); n * step <= max; n++) {
    ticks.push(n * step);
  }
  return ticks;
}

/** A mark of an axis in the unit of the axis, without decimals it does not need: `4 GiB`, `0.5 GiB`, `0`. */
export function tickLabel(tick: Bytes, max: Bytes, unit: Unit): string {
  if (tick === 0) {
    return "0";
  }
  const shown = bytesFigure(Math.floor(max), scaleUnit(unit)).unit;
  const number = tick / (FACTORS[shown] ?? 1);
  return `${number.toLocaleString("en-US", { maximumSignificantDigits: 7 })} ${shown}`;
}

const FACTORS: Record<string, number> = { B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 };
