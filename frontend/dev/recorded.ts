import { ApiError, type Api } from "../src/model/api";
import type {
  Curve,
  Gpu,
  Headline,
  HostEstimate,
  ItemsAnswer,
  Overview,
  PeaksAnswer,
  WhatIf,
} from "../src/model/types";

/** All answers about one run, as the HTTP API gives them. */
export interface Recording {
  /** Where the numbers come from. */
  about: string;
  headline: Headline;
  overview: Overview;
  timelines: Record<string, Curve>;
  items: Record<string, ItemsAnswer>;
  peaks: PeaksAnswer;
  /** Left out where the data pipeline was not estimated. */
  host?: HostEstimate;
  /** Left out where nothing else was estimated. */
  whatIf?: WhatIf;
  profiles: Record<string, Curve>;
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
    items: async (run, phase) => known((await find(run)).items[phase], `items of ${phase}`),
    timeline: async (run, phase) => known((await find(run)).timelines[phase], `curve of ${phase}`),
    profile: async (run, id) => known((await find(run)).profiles[id], `profile ${id}`),
    peaks: async (run) => (await find(run)).peaks,
    host: async (run) => ({ host: (await find(run)).host ?? null }),
    whatIf: async (run) => ({ what_if: (await find(run)).whatIf ?? null }),
  };
}

const gib = (count: number): number => count * 2 ** 30;

const GPUS: Gpu[] = [
  { name: "RTX 3080 10GB", vendor: "NVIDIA", memory_bytes: gib(10), usable_bytes: gib(8.5), carries: null },
  { name: "g5.xlarge", vendor: "NVIDIA", memory_bytes: gib(22.5), usable_bytes: gib(21), carries: "A10G" },
];
