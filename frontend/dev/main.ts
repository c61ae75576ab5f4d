/**
 * The Memory tab without anything running: `npm run dev`, then choose a state below the tab.
 *
 * What is recorded is what the plugin answered about two real trainings; `make recordings` makes them anew.
 */
import { mount } from "../src";
import { ApiError, type Api } from "../src/model/api";
import type { Headline } from "../src/model/types";
import { hugeAnswers } from "./huge";
import { recordedApi, type Answers } from "./recorded";
import recordings from "./recordings.json";

const RECORDED: Answers = recordings;
const RUNS = recordings.runs.runs as Headline[];

const never = new Promise<never>(() => undefined);
const broken = (): Promise<never> =>
  Promise.reject(new ApiError("The event file of this run ends in the middle of a record.", 500));

/** The first recorded run under many names. */
function manyRuns(): Api {
  const api = recordedApi(RECORDED);
  const { name } = RUNS[0]!;
  const asked = Object.entries(api).map(([route, ask]) => [
    route,
    (_run: string, ...rest: unknown[]) => (ask as (...all: unknown[]) => unknown)(name, ...rest),
  ]);
  const same = Object.fromEntries(asked) as Api;
  return {
    ...same,
    gpus: api.gpus,
    xprofSessions: api.xprofSessions,
    runs: () => Promise.resolve(Array.from({ length: 60 }, (_, n) => ({ ...RUNS[0]!, name: `sweep/lr-${n}` }))),
    overview: async (run, limit) => ({ ...(await same.overview(run, limit)), name: run }),
  };
}

const STATES: Record<string, () => Api> = {
  recorded: () => recordedApi(RECORDED),
  huge: () => recordedApi({ ...RECORDED, ...hugeAnswers(10_000, RUNS) }),
  "many-runs": manyRuns,
  empty: () => recordedApi({ ...RECORDED, runs: { runs: [] } }),
  loading: () => ({ ...recordedApi(RECORDED), runs: () => never }),
  "loading-run": () => ({ ...recordedApi(RECORDED), overview: () => never }),
  error: () => ({ ...recordedApi(RECORDED), overview: broken }),
  "error-runs": () => ({ ...recordedApi(RECORDED), runs: broken }),
  "error-curves": () => ({ ...recordedApi(RECORDED), timeline: broken, profile: broken, moment: broken }),
};

const parameters = new URLSearchParams(location.search);
const state = parameters.get("state") ?? "recorded";
document.body.classList.toggle("dark-mode", parameters.has("dark"));
mount((STATES[state] ?? STATES["recorded"]!)());

if (!parameters.has("bare")) {
  const bar = document.createElement("nav");
  bar.style.cssText = "padding:8px 24px;font:12px sans-serif;display:flex;gap:12px;background:#888;";
  for (const name of Object.keys(STATES)) {
    const link = document.createElement("a");
    link.href = `?state=${name}${location.hash}`;
    link.textContent = name;
    bar.append(link);
  }
  const dark = document.createElement("button");
  dark.textContent = "light / dark";
  dark.onclick = () => document.body.classList.toggle("dark-mode");
  bar.append(dark);
  document.body.append(bar);
}
