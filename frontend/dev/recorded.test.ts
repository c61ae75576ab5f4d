import { describe, expect, it } from "vitest";
import { START, type Place } from "../src/model/place";
import { SLOTS, type Slot } from "../src/model/questions";
import { Store } from "../src/model/store";
import { GROUPINGS, type Headline } from "../src/model/types";
import { hugeAnswers } from "./huge";
import { recordedApi, type Answers } from "./recorded";
import recordings from "./recordings.json";

const RECORDED: Answers = recordings;
const RUNS = recordings.runs.runs as Headline[];

async function shown(answers: Answers, place: Partial<Place>): Promise<Store> {
  const store = new Store(recordedApi(answers));
  await store.goTo({ ...START, ...place });
  return store;
}

/** What could not be had, in words. */
const failures = ({ state }: Store): string[] =>
  SLOTS.flatMap((slot) => {
    const load = state[slot];
    return load.state === "failed" ? [load.message] : [];
  });

describe("the recordings", () => {
  it.each(RUNS.map(({ name }) => name))("answer all that the tab asks about %s, comparison included", async (run) => {
    const other = RUNS.find(({ name }) => name !== run)!.name;
    const phases = recordings["overview run=adam"].estimate.phases.map(({ name }) => name);
    for (const place of [{ compare: other }, ...phases.map((phase) => ({ phase }))]) {
      const store = await shown(RECORDED, { run, ...place });
      expect(failures(store)).toEqual([]);
      expect(
        ["curve", "profile", "aligned", "moment", "peaks", "host"].filter((slot) => !hasValue(store, slot)),
      ).toEqual([]);
    }
    expect(hasValue(await shown(RECORDED, { run, compare: other }), "compared")).toBe(true);
  });

  it.each(GROUPINGS)("tell what is alive at the peak by %s", async (by) => {
    expect(failures(await shown(RECORDED, { run: "adam", by }))).toEqual([]);
  });

  it("answer a stretch of a curve with what lies in it", async () => {
    const { timeline: all } = await recordedApi(RECORDED).timeline("adam", "step", null);
    const [from, to] = [all.ticks[10]!, all.ticks[20]!];
    const { timeline } = await recordedApi(RECORDED).timeline("adam", "step", [from, to]);
    expect(timeline.ticks).toEqual(all.ticks.filter((tick) => tick >= from && tick <= to));
    expect(timeline.positions[0]).toBe(all.positions[all.ticks.indexOf(from)]);
  });

  it("refuse what they do not know in words", async () => {
    const api = recordedApi(RECORDED);
    await expect(api.overview("adam", "5GiB")).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining("'5GiB'") as string,
    });
    await expect(api.peaks("nowhere")).rejects.toMatchObject({
      status: 404,
      message: expect.stringContaining('"peaks run=nowhere"') as string,
    });
  });
});

it("a huge model is answered as a recorded one", async () => {
  const store = await shown(hugeAnswers(100, RUNS), {});
  expect(failures(store).filter((words) => !words.includes('"gpus"'))).toEqual([]);
  expect(hasValue(store, "moment")).toBe(true);
});

function hasValue({ state }: Store, slot: string): boolean {
  return state[slot as Slot].state === "ready";
}
