import { parseStretch, WHOLE } from "../views/stretch";
import { ApiError, type Api, type MomentOf } from "./api";
import { valueOf, type Load } from "./load";
import { parted, type Place } from "./place";
import {
  GROUPINGS,
  type Aligned,
  type Compared,
  type Curve,
  type Gpu,
  type Grouping,
  type Headline,
  type HostAnswer,
  type Moment,
  type Overview,
  type PeaksAnswer,
  type WhatIfAnswer,
} from "./types";

/** An overview, and why the server did not take the limit that was typed. */
export type Judged = Overview & { refusedLimit: string | null };

/** What is asked of the server; each is a slot of the state. */
export interface Answers {
  runs: Headline[];
  gpus: Gpu[];
  overview: Judged;
  /** The run on show and those it is compared with, side by side. */
  compared: Compared;
  peaks: PeaksAnswer;
  curve: Curve;
  profile: Curve;
  aligned: Aligned;
  moment: Moment;
  host: HostAnswer;
  whatIf: WhatIfAnswer;
  xprofSessions: string[];
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
      : {
          about: [run],
          by: [limit],
          ask: async (api) => {
            const { answer, refused } = await withLimit(limit, (accepted) => api.overview(run, accepted));
            return { ...answer, refusedLimit: refused };
          },
        };
  },

  compared: (state) => {
    const run = runOf(state);
    const others = othersOf(state);
    const { limit } = state.place;
    return run === null || !isThere(state, run) || others.length === 0
      ? null
      : {
          about: [run, ...others],
          by: [limit],
          ask: async (api) => (await withLimit(limit, (accepted) => api.compare(run, others, accepted))).answer,
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
    const { x } = parseStretch(state.place.step);
    return overview?.estimate && phase !== null
      ? { about: [overview.name, phase], by: [String(x)], ask: (api) => api.timeline(overview.name, phase, x) }
      : null;
  },

  profile: (state) => {
    const overview = valueOf(state.overview);
    const profile = profileOf(state);
    const { x } = parseStretch(state.place.time);
    return overview && profile !== null
      ? { about: [overview.name, profile], by: [String(x)], ask: (api) => api.profile(overview.name, profile, x) }
      : null;
  },

  aligned: (state) => {
    const overview = valueOf(state.overview);
    const profile = profileOf(state);
    // Until the phase that the profile shows is known, all of it is wanted.
    const { x } = valueOf(state.aligned)?.phase === phaseOf(state) ? parseStretch(state.place.step) : WHOLE;
    return overview?.estimate && profile !== null
      ? { about: [overview.name, profile], by: [String(x)], ask: (api) => api.aligned(overview.name, profile, x) }
      : null;
  },

  moment: (state) => {
    const overview = valueOf(state.overview);
    const of = momentOf(state);
    const { by, server } = groupingOf(state);
    return overview && of
      ? {
          about: [overview.name, of.phase ?? "", of.id ?? ""],
          by: [String(of.at), by],
          ask: (api) => api.moment(overview.name, of, server),
        }
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

  xprofSessions: (state) =>
    valueOf(state.overview)?.measured.profiles.length ? { about: [], ask: (api) => api.xprofSessions() } : null,
};

export const SLOTS = Object.keys(QUESTIONS) as Slot[];

/** The run on show: the one in the address, or the one that began last; null before there is one. */
export function runOf(state: State): string | null {
  const began = (run: Headline): number => run.began ?? 0;
  const newest = (runs: Headline[]): Headline => runs.reduce((last, run) => (began(run) > began(last) ? run : last));
  const runs = valueOf(state.runs);
  return state.place.run || (runs?.length ? newest(runs).name : null);
}

/** The runs beside it that are there. */
export function othersOf(state: State): string[] {
  const run = runOf(state);
  return parted(state.place.compare).filter((other) => other !== run && isThere(state, other));
}

/** What no figure on show tells apart, as a share. */
const ALIKE = 0.001;

/**
 * The phase whose predicted curve is on show: the chosen one, or that with the peak; null without an estimate.
 *
 * A later step goes before the first where both peak alike: it is the one that repeats, and that profiles are laid over.
 */
export function phaseOf(state: State): string | null {
  const estimate = valueOf(state.overview)?.estimate;
  const phases = estimate?.phases ?? [];
  const later = phases.find(({ name }) => name === "step");
  const likely = later && later.peak_bytes >= (1 - ALIKE) * estimate!.peak_bytes ? later.name : estimate?.peak_phase;
  const wanted = [state.place.phase, likely].find((wish) => phases.some(({ name }) => name === wish));
  return wanted ?? phases.at(-1)?.name ?? null;
}

/** The profile on show: the chosen one, or the last; null where the run has none. */
export function profileOf(state: State): string | null {
  const ids = valueOf(state.overview)?.measured.profiles.map(({ id }) => id) ?? [];
  return ids.includes(state.place.profile) ? state.place.profile : (ids.at(-1) ?? null);
}

/** XProf's own page of the profile on show; null where XProf is not installed or does not have it. */
export function xprofSessionOf(state: State): string | null {
  const overview = valueOf(state.overview);
  const profile = overview?.measured.profiles.find(({ id }) => id === profileOf(state));
  const ours = (session: string): boolean =>
    session === profile?.started_at || session.endsWith(`/${profile?.started_at}`);
  const sessions = (valueOf(state.xprofSessions) ?? []).filter(ours);
  // Several runs may have been profiled within one second.
  return sessions.find((session) => session.startsWith(`${overview?.name}/`)) ?? sessions[0] ?? null;
}

/** The moment that is looked into: the chosen one, or the peak, predicted rather than measured; null without any. */
export function momentOf(state: State): MomentOf | null {
  const { moment } = state.place;
  const [phase, id] = [phaseOf(state), profileOf(state)];
  const at = /^[pm]\d+$/.test(moment) ? Number(moment.slice(1)) : undefined;
  if (moment.startsWith("m") && id !== null) {
    return { id, ...(at === undefined ? {} : { at }) };
  }
  if (phase !== null) {
    return { phase, ...(at === undefined || moment.startsWith("m") ? {} : { at }) };
  }
  return id === null ? null : { id };
}

/** Where the chosen moment stands: on which curve, at which tick; null for none, and until it is known. */
export function markOf(state: State): { on: "predicted" | "measured"; tick: number } | null {
  const of = momentOf(state);
  const moment = valueOf(state.moment);
  return of?.at === undefined || !moment ? null : { on: of.id ? "measured" : "predicted", tick: moment.tick };
}

/** How what is alive is shown: `each` buffer alone, which the server is asked for by layer, or added up. */
export function groupingOf(state: State): { by: Grouping | "each"; server: Grouping } {
  const { by } = state.place;
  const server = GROUPINGS.find((grouping) => grouping === by) ?? "layer";
  return { by: by === "each" ? "each" : server, server };
}

function isThere(state: State, run: string): boolean {
  return valueOf(state.runs)?.some(({ name }) => name === run) ?? false;
}

/** An answer by a limit; without one where the server refuses it, and with the reason. */
async function withLimit<T>(
  limit: string,
  ask: (limit: string) => Promise<T>,
): Promise<{ answer: T; refused: string | null }> {
  try {
    return { answer: await ask(limit), refused: null };
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 400 || !limit) {
      throw error;
    }
    return { answer: await ask(""), refused: error.message };
  }
}
