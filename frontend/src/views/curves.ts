import { formatBytes, type Unit } from "../format/bytes";
import type { Curve, DevicePeaks, Timeline } from "../model/types";
import type { ChartData, Pin, Told } from "./chart";
import { shortened } from "./words";

const MICROSECOND = 1e3;
const MILLISECOND = 1e6;
const SECOND = 1e9;

/** A timeline as one stepped line: what is in use after an event stays in use until the next. */
export function curveData({ timeline }: Curve, label: string, colour: string, area: string): ChartData {
  return {
    x: timeline.ticks,
    series: [{ label, values: timeline.live_bytes, colour, area }],
  };
}

/** The peak of a curve, wherever on it the stretch on show is. */
export function peakPin({ peak }: Curve, unit: Unit, colour: string): Pin | null {
  return (
    peak && {
      x: peak.tick,
      bytes: peak.live_bytes,
      text: `${formatBytes(peak.live_bytes, unit)} at ${shortened(peak.op)}`,
      colour,
    }
  );
}

/** The moment at `index` in words: the op, its layer where that is known, and when. */
export function describeMoment(timeline: Timeline, index: number, unit: Unit): Told {
  const op = timeline.op_index[index]!;
  const layer = timeline.layers[op];
  return {
    title: timeline.ops[op] ?? "",
    where: `${layer ? `${layer} · ` : ""}${formatTick(timeline.ticks[index]!, timeline.unit)}`,
    figures: [
      { label: "in use", bytes: timeline.live_bytes[index]!, text: formatBytes(timeline.live_bytes[index]!, unit) },
    ],
  };
}

/** A tick of a timeline in words. */
export function formatTick(tick: number, unit: Timeline["unit"]): string {
  return unit === "op" ? `event ${tick.toLocaleString("en-US")}` : formatTime(tick);
}

/** Nanoseconds for people: `3.2 ms`, `1.07 s`. */
export function formatTime(nanoseconds: number): string {
  const [factor, unit] =
    nanoseconds >= SECOND ? [SECOND, "s"] : nanoseconds >= MILLISECOND ? [MILLISECOND, "ms"] : [MICROSECOND, "µs"];
  return `${Number((nanoseconds / factor).toPrecision(4))} ${unit}`;
}

/** Windows of steps as two stepped lines; a step reaches from its number to the next. */
export function peaksData(
  { windows }: DevicePeaks,
  colours: { peak: string; current: string; area: string },
): ChartData {
  const x = windows.map((window) => window[0]);
  const peak = windows.map((window) => window[2]);
  const current = windows.map((window) => window[3]);
  const last = windows.at(-1);
  if (last) {
    // The line needs an end for the last window to be as wide as its steps.
    x.push(last[1] + 1);
    peak.push(last[2]);
    current.push(last[3]);
  }
  return {
    x,
    series: [
      { label: "peak", values: peak, colour: colours.peak, area: colours.area },
      { label: "in use after the step", values: current, colour: colours.current },
    ],
  };
}

/** The window at `index` in words. */
export function describeWindow({ windows }: DevicePeaks, index: number, unit: Unit): Told {
  const [first, last, peak, current, start] = windows[Math.min(index, windows.length - 1)]!;
  return {
    title: first === last ? `Step ${first}` : `Steps ${first} to ${last}`,
    where: "",
    figures: [
      { label: "peak", bytes: peak, text: formatBytes(peak, unit) },
      { label: "in use before", bytes: start, text: formatBytes(start, unit) },
      { label: "in use after", bytes: current, text: formatBytes(current, unit) },
    ],
  };
}
