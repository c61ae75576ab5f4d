import type { BesidePeaks, DevicePeaks, Estimate, Leak, PeaksAnswer } from "../model/types";
import { deviceOf } from "./device";

/** One line of measured peaks that can be looked at. */
export interface Series {
  /** What it is called in the address. */
  key: string;
  label: string;
  what: "train" | BesidePeaks["what"];
  peaks: DevicePeaks;
  leak: Leak | null;
}

const LABELS: Record<Series["what"], (device: string) => string> = {
  train: (device) => device,
  evaluate: (device) => `Evaluate, ${device}`,
  predict: (device) => `Predict, ${device}`,
  // Of a run of several processes: `worker 1, HOST`.
  host: (device) => ["Host memory", ...device.split(", ").slice(0, -1)].join(", "),
};

/** Everything that was measured step by step: training on each device, then evaluation, prediction and the host. */
export function seriesOf({ devices, beside, leaks }: PeaksAnswer): Series[] {
  const kinds = Object.keys(LABELS);
  const all = [...devices.map((peaks) => ({ what: "train" as const, ...peaks })), ...beside];
  return all
    .sort((one, other) => kinds.indexOf(one.what) - kinds.indexOf(other.what))
    .filter(({ windows }) => windows.length > 0)
    .map(({ what, ...peaks }) => ({
      key: `${what}/${peaks.device}`,
      label: LABELS[what](peaks.device),
      what,
      peaks,
      leak: leaks.find((leak) => leak.what === what && leak.device === peaks.device) ?? null,
    }));
}

/** The one of that key; otherwise training on the device that the estimate is for, or the first. */
export function shownSeries(series: readonly Series[], key: string, estimate: Estimate | null): Series | undefined {
  const trained = series.filter(({ what }) => what === "train");
  const device = deviceOf(
    estimate,
    trained.map(({ peaks }) => peaks),
  );
  return (
    series.find((one) => one.key === key) ?? trained.find(({ peaks }) => peaks.device === device?.device) ?? series[0]
  );
}
