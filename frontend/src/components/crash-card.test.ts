import { describe, expect, it } from "vitest";
import { byTestId, shown, text } from "../testing/dom";
import { crash } from "../testing/samples";
import { CrashCard } from "./crash-card";

describe("the crash card", () => {
  it("tells what was asked for, whose it was, what was alive and what to change", async () => {
    const element = await shown(new CrashCard(), { crash: crash() });
    const root = element.shadowRoot!;
    expect(text(byTestId(root, "crash-headline")[0])).toBe(crash().headline);
    const facts = Object.fromEntries(
      [...root.querySelectorAll("dl > div")].map((fact) => [
        text(fact.querySelector("dt")!),
        text(fact.querySelector("dd")!),
      ]),
    );
    expect(facts).toMatchObject({ "Failed op": "adam/Mul_7", Layer: "net/a", Variable: "net/a/kernel", Step: "2" });
    expect(facts["Tensor"]).toMatch(/10.*10.*float32/);
    const exact = [...root.querySelectorAll<HTMLElement>("dl [data-bytes]")].map((one) => one.dataset["bytes"]);
    expect(exact).toEqual(["400", "2900", "3000"]);
    const picture = byTestId(root, "crash-picture")[0]!;
    expect(text(picture)).toBe(
      "In use 2.8KiB 100B were free: 300B short Predicted 2.9KiB The estimate had said 2.9 KiB for a step. limit 2.9 KiBasked for, beside what was in use",
    );
    const drawn = [...picture.querySelectorAll<HTMLElement>(".bar i")].map(({ className, style }) => [
      className.split(" ")[0],
      Math.round(Number.parseFloat(style.left || "0")),
    ]);
    expect(drawn).toEqual([
      ["used", 0],
      ["asked", 84],
      ["limit", 87],
      ["segment", 0],
      ["segment", 12],
      ["limit", 87],
    ]);
    expect([...byTestId(root, "crash-advice")[0]!.children].map(text)).toEqual(crash().advice);
    expect(byTestId(root, "item-row").map((row) => row.dataset["name"])).toEqual(["net/a/kernel"]);
    expect(text(root.querySelector("details")!)).toContain("And 2 smaller items.");
    expect(text(root.querySelector("summary")!)).toContain("Alive at the predicted peak");
  });

  it("leaves out what is not known", async () => {
    const unknown = { op: null, shape: null, dtype: null, bytes: null, layer: null, variable: null, step: null };
    const nowhere = {
      in_use_bytes: null,
      limit_bytes: null,
      predicted_peak_bytes: null,
      role: null,
      phase: null,
      device: null,
      allocator: null,
    };
    const rest = { live: [], live_count: 0, live_bytes: 0, expectation: null, advice: [] };
    const element = await shown(new CrashCard(), { crash: crash({ ...unknown, ...nowhere, ...rest }) });
    expect(text(element.shadowRoot!.querySelector("section")!)).toBe(`Out of memory ${crash().headline}`);
  });

  it("says that there was room, but not in one piece", async () => {
    const element = await shown(new CrashCard(), { crash: crash({ free_bytes: 500, short_bytes: 0 }), unit: "B" });
    expect(text(byTestId(element.shadowRoot!, "crash-picture")[0])).toContain("500B were free, but not in one piece");
  });

  it("says whether what was alive was seen", async () => {
    const element = await shown(new CrashCard(), { crash: crash({ live_is_predicted: false }) });
    expect(text(element.shadowRoot!.querySelector("summary")!)).toContain("Alive when it failed");
  });
});
