import { describe, expect, it } from "vitest";
import { estimate, leak, peaks } from "../testing/samples";
import { seriesOf, shownSeries } from "./series";

describe("the series of measured peaks", () => {
  const answer = {
    devices: [peaks({ device: "GPU:0" }), peaks(), peaks({ device: "GPU:1", windows: [] })],
    beside: [
      { ...peaks(), what: "evaluate" as const },
      { ...peaks({ device: "HOST" }), what: "host" as const },
      { ...peaks({ device: "worker 1, HOST" }), what: "host" as const },
      { ...peaks(), what: "predict" as const },
    ],
    leaks: [leak()],
  };
  const series = seriesOf(answer);

  it("are training on each device that was measured, and what stands beside", () => {
    expect(series.map(({ key, label }) => [key, label])).toEqual([
      ["train/GPU:0", "GPU:0"],
      ["train/CPU:0", "CPU:0"],
      ["evaluate/CPU:0", "Evaluate, CPU:0"],
      ["predict/CPU:0", "Predict, CPU:0"],
      ["host/HOST", "Host memory"],
      ["host/worker 1, HOST", "Host memory, worker 1"],
    ]);
  });

  it("know which of them grows", () => {
    expect(series.filter((one) => one.leak).map(({ key }) => key)).toEqual(["train/CPU:0"]);
  });

  it("begin with the device that the estimate is for, until another is chosen", () => {
    expect(shownSeries(series, "", estimate())?.key).toBe("train/CPU:0");
    expect(shownSeries(series, "", null)?.key).toBe("train/GPU:0");
    expect(shownSeries(series, "host/HOST", estimate())?.key).toBe("host/HOST");
    expect(shownSeries(series, "train/TPU:7", estimate())?.key).toBe("train/CPU:0");
    expect(shownSeries([], "", null)).toBeUndefined();
  });
});
