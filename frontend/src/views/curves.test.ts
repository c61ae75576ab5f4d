import { describe, expect, it } from "vitest";
import type { Timeline } from "../model/types";
import { aligned, curve, peaks } from "../testing/samples";
import {
  describeBoth,
  describeMoment,
  describeWindow,
  epochBands,
  formatTime,
  overlaid,
  peakPin,
  peaksData,
} from "./curves";

const timeline: Timeline = {
  unit: "ns",
  ticks: [0, 1_500_000],
  live_bytes: [10, 2048],
  op_index: [1, 0],
  ops: ["adam/Mul", "x"],
  layers: ["net/a", null],
  positions: [4, 9],
  spans: [],
};

describe("a moment", () => {
  it("is told with its op, its bytes and its time", () => {
    expect(describeMoment(timeline, 1, "GiB")).toEqual({
      title: "adam/Mul",
      where: "net/a · 1.5 ms",
      figures: [{ label: "in use", bytes: 2048, text: "2.0 KiB" }],
    });
    expect(describeMoment({ ...timeline, unit: "op", ticks: [3, 7] }, 0, "B").where).toBe("event 3");
  });

  it("has a time for people", () => {
    expect([999, 53_240_000, 1_070_000_000].map(formatTime)).toEqual(["0.999 µs", "53.24 ms", "1.07 s"]);
  });
});

it("pins the peak of the whole curve, whatever stretch of it there is", () => {
  const whole = { peak_bytes: 4096, events: 99, extent: [0, 70] as [number, number], timeline };
  const peak = { position: 50, tick: 60, live_bytes: 4096, op: "gradient_tape/a_long_name_of_a_model/dense/MatMul" };
  expect(peakPin({ ...whole, peak }, "GiB", "--c")).toEqual({
    x: 60,
    bytes: 4096,
    text: "4.0 KiB at …long_name_of_a_model/dense/MatMul",
    colour: "--c",
  });
  expect(peakPin({ ...whole, peak: null }, "GiB", "--c")).toBeNull();
});

describe("a measured step over the predicted one", () => {
  const predicted = curve().timeline;
  const { data, moments } = overlaid(predicted, aligned());

  it("has both levels at every x, without what was in use beside", () => {
    expect(data.x).toEqual([0, 0.5, 1, 2, 3, 3.5, 4]);
    expect(data.series.map(({ values }) => values)).toEqual([
      [400, 400, 600, 900, 600, 600, 400],
      [null, 400, 600, 930, 930, 400, 400],
    ]);
  });

  it("is told with both figures, and with both ops where they differ", () => {
    const told = describeBoth(predicted, aligned(), moments[3]!, "B");
    expect(told.title).toBe("net/b/MatMul");
    expect(told.figures.map(({ label, bytes }) => [label, bytes])).toEqual([
      ["predicted", 900],
      ["measured", 930],
    ]);
    expect(describeBoth(predicted, aligned(), moments[4]!, "B").figures[1]!.label).toBe("measured, after net/b/MatMul");
    expect(describeBoth(predicted, aligned(), moments[0]!, "B").figures).toHaveLength(1);
  });
});

describe("windows of steps", () => {
  it("reach to the step after their last one, and keep every peak", () => {
    const data = peaksData(peaks(), { peak: "p", current: "c", area: "a" });
    expect(data.x).toEqual([0, 1, 5, 10]);
    expect(data.series.map((series) => series.values)).toEqual([
      [3100, 2950, 3050, 3050],
      [2000, 2010, 1990, 1990],
    ]);
  });

  it("lie in epochs, where there are any", () => {
    expect(epochBands(peaks())).toEqual([]);
    expect(
      epochBands(
        peaks({
          epochs: [
            [0, 0],
            [1, 4],
          ],
        }),
      ),
    ).toEqual([
      { name: "epoch 1", start: 0, end: 4 },
      { name: "epoch 2", start: 4, end: 10 },
    ]);
  });

  it("are told with their steps", () => {
    const told = [0, 1, 3].map((index) => describeWindow(peaks(), index, "B"));
    expect(told.map(({ title }) => title)).toEqual(["Step 0", "Steps 1 to 4", "Steps 5 to 9"]);
    expect(told[1]!.figures.map(({ bytes }) => bytes)).toEqual([2950, 1980, 2010]);
  });
});
