import { formatBytes, grouped, type Unit } from "../format/bytes";
import type { Aligned, Bytes, Curve, DevicePeaks, Leak, Timeline } from "../model/types";
import type { Band, ChartData, Pin, Told, Trend } from "./chart";
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

/** Two stepped lines over one axis, and for each x the moment of each that it stands for; -1 before its first. */
export interface Overlaid {
  data: ChartData;
  moments: { predicted: number; measured: number }[];
}

/** A measured step over the predicted one, without what was in use beside it. */
export function overlaid(predicted: Timeline, { timeline: measured, beside_bytes }: Aligned): Overlaid {
  const x = [...new Set([...predicted.ticks, ...measured.ticks])].sort((a, b) => a - b);
  const moments: Overlaid["moments"] = [];
  let [p, m] = [-1, -1];
  for (const at of x) {
    while (p + 1 < predicted.ticks.length && predicted.ticks[p + 1]! <= at) {
      p++;
    }
    while (m + 1 < measured.ticks.length && measured.ticks[m + 1]! <= at) {
      m++;
    }
    moments.push({ predicted: p, measured: m });
  }
  const level = (live: readonly Bytes[], index: number, less: Bytes): Bytes | null =>
    index < 0 ? null : live[index]! - less;
  const series = [
    {
      label: "predicted",
      values: moments.map((moment) => level(predicted.live_bytes, moment.predicted, 0)),
      colour: "--accent",
      area: "--area",
    },
    {
      label: "measured",
      values: moments.map((moment) => level(measured.live_bytes, moment.measured, beside_bytes)),
      colour: "--measured",
    },
  ];
  return { data: { x, series }, moments };
}

/** A moment of both lines in words. */
export function describeBoth(
  predicted: Timeline,
  aligned: Aligned,
  moment: Overlaid["moments"][number],
  unit: Unit,
): Told {
  const told: Told =
    moment.predicted < 0 ? { title: "", where: "", figures: [] } : describeMoment(predicted, moment.predicted, unit);
  const figures = told.figures.map((figure) => ({ ...figure, label: "predicted" }));
  const { timeline, beside_bytes } = aligned;
  if (moment.measured >= 0) {
    const bytes = timeline.live_bytes[moment.measured]! - beside_bytes;
    const op = timeline.ops[timeline.op_index[moment.measured]!] ?? "";
    const label = op === told.title ? "measured" : `measured, after ${shortened(op)}`;
    figures.push({ label, bytes, text: formatBytes(bytes, unit) });
  }
  return { ...told, figures };
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

/** Epochs as stretches of steps, called as Keras calls them: from 1 on. */
export function epochBands({ epochs = [], windows }: DevicePeaks): Band[] {
  const end = (windows.at(-1)?.[1] ?? -1) + 1;
  return epochs.map(([number, start], n) => ({ name: `epoch ${number + 1}`, start, end: epochs[n + 1]?.[1] ?? end }));
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

/** A leak as a line from the step since when it grows to the last. */
export function trendOf(leak: Leak, unit: Unit): Trend {
  return {
    from: { x: leak.since_step, bytes: leak.since_bytes },
    to: { x: leak.until_step + 1, bytes: leak.until_bytes },
    text: `grows by ${formatBytes(Math.round(leak.bytes_per_step), unit)} a step since step ${grouped(leak.since_step)}`,
    colour: "--warn",
  };
}
