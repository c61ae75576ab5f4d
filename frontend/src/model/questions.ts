import { ApiError, type Api } from "./api";
import { valueOf, type Load } from "./load";
import { parted, type Place } from "./place";
import type { Curve, Gpu, Headline, HostAnswer, ItemsAnswer, Overview, PeaksAnswer, WhatIfAnswer } from "./types";

/** An overview, and why the server did not take the limit that was typed. */
export type Judged = Overview & { refusedLimit: string | null };

/** What is asked of the server; each is a slot of the state. */
export interface Answers {
  runs: Headline[];
  gpus: Gpu[];
  overview: Judged;
  /** Of the runs that the one on show is compared with. */
  compared: Judged[];
  peaks: PeaksAnswer;
  curve: Curve;
  profile: Curve;
  items: ItemsAnswer;
  host: HostAnswer;
  whatIf: WhatIfAnswer;
}

export type Slot = keyof Answers;

/** Everything the tab shows: what a person chose, and what is known of each answer. */
export type State = { readonly place: Place } & { readonly [S in Slot]: Load<Answers[S]> };

/** What is to be asked for in a state. */
export interface Wanted<T> {
  /** What the answer is about: while that stays the same, the last answer stays in view until the next is there. */
  about: readonly string[];
  /** What else it depends on. */
  by?: readonly string[];
  ask: (api: Api) => Promise<T>;
}

/**
 * For each slot what is wanted in it, null for nothing. `Store` asks whenever that changes.
 *
 * A new answer gets a slot in Answers and an entry here.
 */
export const QUESTIONS: { readonly [S in Slot]: (state: State) => Wanted<Answers[S]> | null } = {
  runs: () => ({ about: [], ask: (api) => api.runs() }),

  gpus: () => ({ about: [], ask: (api) => api.gpus() }),

  overview: (state) => {
    const run = runOf(state);
    const { limit } = state.place;
    return run === null || !isThere(state, run)
      ? null
      : { about: [run], by: [limit], ask: (api) => judged(api, run, limit) };
  },

  compared: (state) => {
    const others = othersOf(state);
    const { limit } = state.place;
    return others.length === 0
      ? null
      : {
          about: others,
          by: [limit],
          ask: (api) => Promise.all(others.map((run) => judged(api, run, limit))),
        };
  },

  peaks: (state) => {
    const overview = valueOf(state.overview);
    return overview?.measured.devices.length
      ? { about: [overview.name], ask: (api) => api.peaks(overview.name) }
      : null;
  },

  curve: (state) => {
    const overview = valueOf(state.overview);
    const phase = phaseOf(state);
    return overview?.estimate && phase !== null
      ? { about: [overview.name, phase], ask: (api) => api.timeline(overview.name, phase) }
      : null;
  },

  profile: (state) => {
    const overview = valueOf(state.overview);
    const profile = profileOf(state);
    return overview && profile !== null
      ? { about: [overview.name, profile], ask: (api) => api.profile(overview.name, profile) }
      : null;
  },

  items: (state) => {
    const overview = valueOf(state.overview);
    const { items } = state.place;
    return overview?.estimate?.phases.some(({ name }) => name === items)
      ? { about: [overview.name, items], ask: (api) => api.items(overview.name, items) }
      : null;
  },

  host: (state) => {
    const overview = valueOf(state.overview);
    return overview ? { about: [overview.name], ask: (api) => api.host(overview.name) } : null;
  },

  whatIf: (state) => {
    const overview = valueOf(state.overview);
    return overview?.estimate ? { about: [overview.name], ask: (api) => api.whatIf(overview.name) } : null;
  },
};

export const SLOTS = Object.keys(QUESTIONS) as Slot[];

/** The run on show: the one in the address, or the first; null before there is one. */
export function runOf(state: State): string | null {
  return state.place.run || valueOf(state.runs)?.[0]?.name || null;
}

/** The runs beside it that are there. */
export function othersOf(state: State): string[] {
  const run = runOf(state);
  return parted(state.place.compare).filter((other) => other !== run && isThere(state, other));
}

/** The phase whose predicted curve is on show: the chosen one, or the last; null without an estimate. */
export function phaseOf(state: State): string | null {
  const names = valueOf(state.overview)?.estimate?.phases.map(({ name }) => name) ?? [];
  return names.includes(state.place.phase) ? state.place.phase : (names.at(-1) ?? null);
}

/** The profile on show: the chosen one, or the last; null where the run has none. */
export function profileOf(state: State): string | null {
  const ids = valueOf(state.overview)?.measured.profiles.map(({ id }) => id) ?? [];
  return ids.includes(state.place.profile) ? state.place.profile : (ids.at(-1) ?? null);
}

function isThere(state: State, run: string): boolean {
  return valueOf(state.runs)?.some(({ name }) => name === run) ?? false;
}

/** The run by a limit; without one where the server refuses it, and with the reason. */
async function judged(api: Api, run: string, limit: string): Promise<Judged> {
  try {
    return { ...(await api.overview(run, limit)), refusedLimit: null };
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 400 || !limit) {
      throw error;
    }
    return { ...(await api.overview(run, "")), refusedLimit: error.message };
  }
}
