import { ApiError, type Api } from "../src/model/api";
import type {
  AliveItem,
  Curve,
  Gpu,
  Grouping,
  Headline,
  HostEstimate,
  Item,
  Moment,
  Overview,
  PeaksAnswer,
  Timeline,
  WhatIf,
} from "../src/model/types";
import type { Range } from "../src/views/stretch";

/** A whole curve as it was recorded: what the server adds to it is added here. */
export interface RecordedCurve {
  peak_bytes: number;
  events: number;
  timeline: Omit<Timeline, "layers" | "positions">;
}

/** All answers about one run, as the HTTP API gives them. */
export interface Recording {
  /** Where the numbers come from. */
  about: string;
  headline: Headline;
  overview: Overview;
  timelines: Record<string, RecordedCurve>;
  /** What is alive at the peak of each phase. */
  items: Record<string, { items: Item[] }>;
  peaks: Partial<PeaksAnswer>;
  /** Left out where the data pipeline was not estimated. */
  host?: HostEstimate;
  /** Left out where nothing else was estimated. */
  whatIf?: WhatIf;
  profiles: Record<string, RecordedCurve>;
}

/** An Api that answers from recordings. It judges no limit of its own: that is the server's. */
export function recordedApi(recordings: readonly Recording[]): Api {
  const find = (run: string): Promise<Recording> => {
    const found = recordings.find(({ headline }) => headline.name === run);
    return found ? Promise.resolve(found) : Promise.reject(new ApiError(`There is no recording of ${run}.`, 404));
  };
  const known = <T>(value: T | undefined, what: string): T => {
    if (value === undefined) {
      throw new ApiError(`The recording has no ${what}.`, 404);
    }
    return value;
  };
  return {
    compare: () => Promise.reject(new ApiError("The development page holds no comparison.", 500)),
    xprofSessions: () => Promise.resolve([]),
    gpus: () => Promise.resolve(GPUS),
    runs: () => Promise.resolve(recordings.map(({ headline }) => headline)),
    overview: async (run, limit) => {
      const { overview } = await find(run);
      if (limit && limit !== "9.29GiB") {
        throw new ApiError(`'${limit}' is not a memory size. The development page knows one: '9.29GiB'.`, 400);
      }
      return overview;
    },
    timeline: async (run, phase, stretch) =>
      curveOf(known((await find(run)).timelines[phase], `curve of ${phase}`), stretch),
    profile: async (run, id, stretch) => curveOf(known((await find(run)).profiles[id], `profile ${id}`), stretch),
    aligned: () => Promise.reject(new ApiError("The recordings have no aligned step.", 404)),
    moment: async (run, { phase, at }, by) => {
      const { timelines, items } = await find(run);
      const { peak } = curveOf(known(timelines[phase ?? ""], "moments of a profile"), null);
      if (at !== undefined && at !== peak?.position) {
        throw new ApiError("The development page knows what is alive at the peak only.", 404);
      }
      return momentOf(known(items[phase ?? ""], `items of ${phase}`).items, peak!, by);
    },
    peaks: async (run) => ({ devices: [], beside: [], leaks: [], ...(await find(run)).peaks }),
    host: async (run) => ({ host: (await find(run)).host ?? null }),
    whatIf: async (run) => ({ what_if: (await find(run)).whatIf ?? null }),
  };
}

function curveOf({ peak_bytes, events, timeline }: RecordedCurve, stretch: Range | null): Curve {
  const { ticks, live_bytes, op_index, ops } = timeline;
  const position = live_bytes.indexOf(Math.max(...live_bytes));
  const positions = ticks.flatMap((tick, n) => (!stretch || (tick >= stretch[0] && tick <= stretch[1]) ? [n] : []));
  const only = (values: number[]): number[] => positions.map((n) => values[n]!);
  return {
    peak_bytes,
    events,
    extent: ticks.length ? [ticks[0]!, ticks.at(-1)!] : null,
    peak:
      position < 0
        ? null
        : {
            position,
            tick: ticks[position]!,
            live_bytes: live_bytes[position]!,
            op: ops[op_index[position]!] ?? "",
          },
    timeline: {
      ...timeline,
      ticks: only(ticks),
      live_bytes: only(live_bytes),
      op_index: only(op_index),
      positions,
      layers: ops.map(() => null),
    },
  };
}

function momentOf(items: readonly Item[], peak: NonNullable<Curve["peak"]>, by: Grouping): Moment {
  const keys: Record<Grouping, (item: Item) => string> = {
    layer: ({ layer }) => layer,
    op: ({ role }) => role,
    category: ({ category }) => category,
    shape: ({ shape, dtype }) => (shape ? `[${shape.join(", ")}] ${dtype ?? ""}` : "(shape not known)"),
  };
  const groups = new Map<string, AliveItem[]>();
  for (const item of items) {
    const key = keys[by](item);
    groups.set(key, [...(groups.get(key) ?? []), { ...item, count: 1, all_bytes: item.bytes }]);
  }
  const sum = (held: readonly Item[]): number => held.reduce((all, { bytes }) => all + bytes, 0);
  return {
    ...peak,
    unit: "op",
    by,
    bytes: sum(items),
    count: items.length,
    groups: [...groups]
      .map(([key, held]) => ({
        key,
        bytes: sum(held),
        count: held.length,
        categories: Object.fromEntries(
          held.map(({ category }) => [category, sum(held.filter((item) => item.category === category))]),
        ),
        items: held,
      }))
      .sort((a, b) => b.bytes - a.bytes),
  };
}

const gib = (count: number): number => count * 2 ** 30;

const GPUS: Gpu[] = [
  { name: "RTX 3080 10GB", vendor: "NVIDIA", memory_bytes: gib(10), usable_bytes: gib(8.5), carries: null },
  { name: "g5.xlarge", vendor: "NVIDIA", memory_bytes: gib(22.5), usable_bytes: gib(21), carries: "A10G" },
];
