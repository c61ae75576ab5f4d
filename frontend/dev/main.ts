/**
 * The Memory tab without anything running: `npm run dev`, then choose a state below the tab.
 *
 * The recordings are samples in the form of docs/http_api.md; each says so in its `about`.
 */
import { mount } from "../src";
import { ApiError, type Api } from "../src/model/api";
import { hugeRecording } from "./huge";
import { recordedApi, type Recording } from "./recorded";
import asAsked from "./recordings/as-asked.json";
import sgdMeasured from "./recordings/sgd-measured.json";
import small from "./recordings/small.json";

const RECORDED = [asAsked, sgdMeasured, small] as unknown as Recording[];

const never = new Promise<never>(() => undefined);
const broken = (): Promise<never> =>
  Promise.reject(new ApiError("The event file of this run ends in the middle of a record.", 500));

const STATES: Record<string, () => Api> = {
  recorded: () => recordedApi(RECORDED),
  huge: () => recordedApi([hugeRecording(10_000), ...RECORDED]),
  "many-runs": () =>
    recordedApi(
      Array.from({ length: 60 }, (_, n) => {
        const name = `sweep/lr-${n}`;
        return { ...RECORDED[2]!, headline: { ...RECORDED[2]!.headline, name } };
      }),
    ),
  empty: () => recordedApi([]),
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
