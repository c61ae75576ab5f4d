import type { Range } from "../views/stretch";
import type {
  Aligned,
  Compared,
  Curve,
  Gpu,
  Grouping,
  Headline,
  HostAnswer,
  Moment,
  Overview,
  PeaksAnswer,
  WhatIfAnswer,
} from "./types";

/** The server answered with an error in words, or did not answer as the contract says. */
export class ApiError extends Error {
  constructor(
    message: string,
    /** HTTP status; 0 when there was no answer. */
    readonly status: number,
  ) {
    super(message);
  }
}

/** A moment of a predicted (`phase`) or measured (`id`) timeline; without `at` its peak. */
export interface MomentOf {
  phase?: string;
  id?: string;
  at?: number;
}

/** What the tab asks; one method per route of docs/http_api.md. */
export interface Api {
  runs: () => Promise<Headline[]>;
  gpus: () => Promise<Gpu[]>;
  overview: (run: string, limit: string) => Promise<Overview>;
  compare: (run: string, others: readonly string[], limit: string) => Promise<Compared>;
  /** `stretch`: from which tick to which; null for all. */
  timeline: (run: string, phase: string, stretch: Range | null) => Promise<Curve>;
  profile: (run: string, id: string, stretch: Range | null) => Promise<Curve>;
  aligned: (run: string, id: string, stretch: Range | null) => Promise<Aligned>;
  moment: (run: string, of: MomentOf, by: Grouping) => Promise<Moment>;
  peaks: (run: string) => Promise<PeaksAnswer>;
  host: (run: string) => Promise<HostAnswer>;
  whatIf: (run: string) => Promise<WhatIfAnswer>;
  /** The sessions that XProf's tab offers, `run/2026_01_01_00_00_00`; none where it is not installed. */
  xprofSessions: () => Promise<string[]>;
}

/**
 * The API over HTTP.
 *
 * @param base - address of the folder that holds the routes; `index.js` lies in the same one.
 */
export function httpApi(base: string, fetcher: typeof fetch = (...args) => fetch(...args)): Api {
  async function get<T>(route: string, parameters: Record<string, string | readonly string[]>): Promise<T> {
    const url = new URL(route, base);
    for (const [name, values] of Object.entries(parameters)) {
      for (const value of [values].flat()) {
        if (value) {
          url.searchParams.append(name, value);
        }
      }
    }
    let response: Response;
    try {
      response = await fetcher(url);
    } catch {
      throw new ApiError("TensorBoard does not answer. Is it still running?", 0);
    }
    const answer = (await response.json().catch(() => null)) as (T & { error?: unknown }) | null;
    if (response.ok && answer !== null) {
      return answer;
    }
    const said = typeof answer?.error === "string" ? answer.error : null;
    throw new ApiError(said ?? `The request "${route}" failed with status ${response.status}.`, response.status);
  }
  return {
    runs: async () => (await get<{ runs: Headline[] }>("runs", {})).runs,
    gpus: async () => (await get<{ gpus: Gpu[] }>("gpus", {})).gpus,
    overview: (run, limit) => get("overview", { run, limit }),
    compare: (run, others, limit) => get("compare", { run, with: others, limit }),
    timeline: (run, phase, stretch) => get("timeline", { run, phase, ...ticks(stretch) }),
    profile: (run, id, stretch) => get("profile", { run, id, ...ticks(stretch) }),
    aligned: (run, id, stretch) => get("aligned", { run, id, ...ticks(stretch) }),
    moment: (run, { phase = "", id = "", at }, by) =>
      get("moment", { run, phase, id, at: at === undefined ? "" : String(at), by }),
    peaks: (run) => get("peaks", { run }),
    host: (run) => get("host", { run }),
    whatIf: (run) => get("what_if", { run }),
    xprofSessions: async () => {
      // Asked first: a route that is not there would be an error in the browser's console.
      const plugins = await get<Record<string, unknown>>("../../plugins_listing", {});
      return "profile" in plugins ? get<string[]>("../profile/runs", {}) : [];
    },
  };
}

function ticks(stretch: Range | null): Record<string, string> {
  return stretch ? { from: String(stretch[0]), to: String(stretch[1]) } : {};
}
