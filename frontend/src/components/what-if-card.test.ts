import { describe, expect, it } from "vitest";
import { START } from "../model/place";
import { Store } from "../model/store";
import { byTestId, shown, text } from "../testing/dom";
import { api, overview, whatIf } from "../testing/samples";
import { App } from "./app";
import { WhatIfCard } from "./what-if-card";

const GPUS = [{ name: "RTX small", vendor: "NVIDIA", memory_bytes: 800, usable_bytes: 600, carries: null }];

function sentence(root: ShadowRoot): string {
  return text(byTestId(root, "what-if-sentence")[0]);
}

describe("the what-if panel", () => {
  it("shows the training as it is beside what was chosen, against the limit", async () => {
    const card = await shown(new WhatIfCard(), {
      whatIf: whatIf(),
      chosen: { ...START, optimizer: "SGD" },
      limit: 700,
      unit: "B",
    });
    const root = card.shadowRoot!;
    expect(text(byTestId(root, "what-if-before")[0])).toBe("1,000B");
    expect(text(byTestId(root, "what-if-after")[0])).toBe("500B");
    expect(sentence(root)).toBe(
      "Peaks at 500B (a step can be 500 B to 800 B), 500B (50.0 %) less than as it is. " +
        "May not fit into 700B: 200B to spare.",
    );
    const widths = byTestId(root, "what-if-after-bar").flatMap((bar) =>
      [...bar.querySelectorAll<HTMLElement>(".segment")].map(({ style }) => style.width),
    );
    expect(widths).toEqual(["20%", "30%"]);
  });

  it("answers at once to the slider, a select and a device, all kept in the place", async () => {
    const answers = api({
      overview: (run) => Promise.resolve(overview(run)),
      gpus: () => Promise.resolve(GPUS),
      whatIf: () => Promise.resolve({ what_if: whatIf() }),
    });
    const store = new Store(answers);
    const app = await shown(new App(), { store });
    await store.goTo(START);
    await app.updateComplete;
    const root = app.shadowRoot!;
    const find = <E extends HTMLElement>(id: string): E => byTestId(root, id)[0] as E;
    const settled = async (): Promise<void> => {
      for (let round = 0; round < 5; round++) {
        await Promise.resolve();
        await app.updateComplete;
      }
    };

    const slider = find<HTMLInputElement>("what-if-batch");
    slider.value = "2";
    slider.dispatchEvent(new Event("input"));
    await settled();
    expect(store.state.place.batch).toBe("4");
    expect(find("what-if-after").querySelector("[data-bytes]")?.getAttribute("data-bytes")).toBe("1600");
    expect(text(find("what-if-batch-value"))).toBe("4");

    const gpu = find<HTMLSelectElement>("what-if-gpu");
    gpu.value = "RTX small";
    gpu.dispatchEvent(new Event("change"));
    await settled();
    expect(find("what-if-outcome").dataset["outcome"]).toBe("does not fit");
    expect(find("what-if-margin").querySelector("[data-bytes]")?.getAttribute("data-bytes")).toBe("1000");

    find("what-if-reset").click();
    await settled();
    expect(store.state.place).toEqual({ ...START, run: "a" });
    expect(find("what-if-after").querySelector("[data-bytes]")?.getAttribute("data-bytes")).toBe("1000");
  });

  it("says so where a combination was left out", async () => {
    const chosen = { ...START, optimizer: "SGD", mode: "xla" };
    const card = await shown(new WhatIfCard(), { whatIf: whatIf(), chosen, unit: "B" });
    const root = card.shadowRoot!;
    expect(text(byTestId(root, "what-if-after")[0])).toBe("not estimated");
    expect(sentence(root)).toContain("what_if(seconds=None)");
    expect(text(byTestId(root, "what-if-note")[0])).toBe("7 of 12 combinations were left out, after 1 seconds.");
  });

  it("is left out for runs that were not estimated under other choices", async () => {
    const store = new Store(api());
    const app = await shown(new App(), { store });
    await store.goTo(START);
    await app.updateComplete;
    expect(byTestId(app.shadowRoot!, "what-if-sentence")).toEqual([]);
  });
});
