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
    expect([...byTestId(root, "crash-advice")[0]!.children].map(text)).toEqual(crash().advice);
    expect(byTestId(root, "item-row").map((row) => row.dataset["name"])).toEqual(["net/a/kernel"]);
    expect(text(root.querySelector("details")!)).toContain("And 2 smaller items.");
    expect(text(root.querySelector("summary")!)).toContain("Alive at the predicted peak");
  });

  it("leaves out what is not known", async () => {
    const unknown = { op: null, shape: null, dtype: null, bytes: null, layer: null, variable: null, step: null };
    const nowhere = { in_use_bytes: null, limit_bytes: null, device: null, allocator: null };
    const rest = { live: [], live_count: 0, live_bytes: 0, expectation: null, advice: [] };
    const element = await shown(new CrashCard(), { crash: crash({ ...unknown, ...nowhere, ...rest }) });
    expect(text(element.shadowRoot!.querySelector("section")!)).toBe(`Out of memory ${crash().headline}`);
  });

  it("says whether what was alive was seen", async () => {
    const element = await shown(new CrashCard(), { crash: crash({ live_is_predicted: false }) });
    expect(text(element.shadowRoot!.querySelector("summary")!)).toContain("Alive when it failed");
  });
});
