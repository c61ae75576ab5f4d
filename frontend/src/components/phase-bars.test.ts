import { expect, it } from "vitest";
import { byTestId, shown, text } from "../testing/dom";
import { estimate, measuredSteps, overview } from "../testing/samples";
import { PhaseBars } from "./phase-bars";

it("phases are bars whose segments carry their bytes and whose label says them", async () => {
  const bars = await shown(new PhaseBars(), { overview: overview("a") });
  const drawn = byTestId(bars.shadowRoot!, "phase-bar").map((bar) => [
    bar.dataset["phase"],
    [...bar.querySelectorAll<HTMLElement>(".segment")].map((segment) => [
      segment.dataset["category"],
      segment.dataset["bytes"],
    ]),
  ]);
  expect(drawn).toEqual([
    ["build", [["weights", "2500"]]],
    [
      "step",
      [
        ["weights", "2000"],
        ["activations", "1000"],
      ],
    ],
  ]);
  expect(byTestId(bars.shadowRoot!, "phase-bar")[1]!.getAttribute("aria-label")).toContain("Step, predicted: 2.9 KiB");
});

it("phases name what peaks, and the op where that is not known", async () => {
  const [build, step] = estimate().phases;
  const phases = [build!, { ...step!, peak_of: "update temporary of net/a/kernel" }];
  const bars = await shown(new PhaseBars(), { overview: overview("a", { estimate: estimate({ phases }) }) });
  const notes = [...bars.shadowRoot!.querySelectorAll<HTMLElement>(".note")];
  expect(text(notes[0])).toBe("peak at adam/Mul_1");
  expect(text(notes[1])).toMatch(/ · peak at update temporary of net\/a\/kernel$/);
  expect(notes[1]!.querySelector<HTMLElement>(".of")!.title).toBe("adam/Mul_1");
});

it("phases are marked with the steps' own peaks", async () => {
  const bars = await shown(new PhaseBars(), { overview: overview("a", { measured: measuredSteps() }) });
  const marks = byTestId(bars.shadowRoot!, "phase-measured").map((mark) => mark.dataset["bytes"]);
  expect(marks).toEqual(["2600", "3000", "3050"]);
  // The first step was not predicted here: what was measured stands for it.
  const figures = byTestId(bars.shadowRoot!, "phase").map(text);
  expect(figures).toEqual(["Build 2.4KiB", "Step 2.9KiB", "First step 3.0KiB"]);
  expect(text(bars.shadowRoot!.querySelector(".key")!)).toContain("measured, the steps without the data pipeline");
});

it("what a phase takes of the host's memory is told apart from the device's", async () => {
  const [build, step] = estimate().phases;
  const phases = [build!, { ...step!, name: "checkpoint", host_peak_bytes: 1024 }];
  const bars = await shown(new PhaseBars(), { overview: overview("a", { estimate: estimate({ phases }) }) });
  const told = byTestId(bars.shadowRoot!, "phase-host");
  expect(told.map((one) => [one.dataset["bytes"], text(one)])).toEqual([["1024", "1.0 KiB of the host's memory"]]);
});
