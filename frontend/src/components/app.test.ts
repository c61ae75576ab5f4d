import { describe, expect, it, vi } from "vitest";
import { ApiError, type Api } from "../model/api";
import { START } from "../model/place";
import { Store } from "../model/store";
import { byTestId, shown, text } from "../testing/dom";
import type { Overview } from "../model/types";
import { api, estimate, headline, host, measuredSteps, overview } from "../testing/samples";
import { App } from "./app";

describe("the tab", () => {
  async function tab(change: Partial<Api>, place = START): Promise<App> {
    const app = new App();
    app.store = new Store(api(change));
    await shown(app, {});
    await app.store.goTo(place);
    await app.updateComplete;
    return app;
  }
  const has = (app: App, id: string): boolean => byTestId(app.shadowRoot!, id).length > 0;

  it("explains itself where there is no run", async () => {
    const app = await tab({ runs: () => Promise.resolve([]) });
    expect(text(byTestId(app.shadowRoot!, "empty")[0])).toContain('memest.log_model(model, logdir="runs/my-run")');
  });

  it("shows an error of the server in its words", async () => {
    const app = await tab({ overview: () => Promise.reject(new ApiError("torn file", 500)) });
    expect(text(byTestId(app.shadowRoot!, "error")[0])).toContain("torn file");
    expect(has(app, "run-picker")).toBe(true);
  });

  it("says that a run is not there, and keeps the picker", async () => {
    const app = await tab({}, { ...START, run: "gone" });
    expect(text(byTestId(app.shadowRoot!, "unknown-run")[0])).toContain("gone");
    expect(byTestId(app.shadowRoot!, "run-option").map((option) => option.dataset["run"])).toEqual(["a", "b"]);
  });

  it("waits visibly", async () => {
    const app = new App();
    app.store = new Store(api({ runs: () => new Promise(() => undefined) }));
    await shown(app, {});
    void app.store.goTo(START);
    await app.updateComplete;
    expect(has(app, "loading")).toBe(true);
  });

  it("never hides problems, notes and assumptions", async () => {
    const value = overview("a", {
      estimate: estimate({ assumptions: ["float32 targets"] }),
      problems: ["a newer record"],
    });
    value.measured.notes = ["no GPU here"];
    const app = await tab({ overview: () => Promise.resolve(value) });
    await vi.waitFor(() => expect(has(app, "assumptions")).toBe(true));
    expect(["problems", "notes", "assumptions"].map((id) => text(byTestId(app.shadowRoot!, id)[0]))).toEqual([
      "a newer record",
      "no GPU here",
      "float32 targets",
    ]);
  });

  it("has a card only for what there is, and says last what was not measured", async () => {
    const contents = async (change: Partial<Overview>): Promise<string[]> => {
      const value = overview("a", change);
      const app = await tab({ overview: () => Promise.resolve(value), host: () => Promise.resolve({ host: host() }) });
      const page = app.shadowRoot!.querySelector("memest-run-page")!;
      await vi.waitFor(() => expect(page.shadowRoot!.querySelector("[data-card=host]")).not.toBeNull());
      return [...page.shadowRoot!.querySelectorAll("nav button")].map(text);
    };
    expect(await contents({ estimate: null })).toEqual(["Data pipeline", "Not measured yet"]);
    expect(await contents({ estimate: null, measured: measuredSteps() })).toEqual([
      ...["Phases", "Measured peaks", "Data pipeline", "Not measured yet"],
    ]);
    const predicted = await contents({});
    expect(predicted).not.toContain("Measured peaks");
    expect(predicted.slice(-3)).toEqual(["Data pipeline", "Not measured yet", "Assumptions and notes"]);
    // What could not be read may have been measured.
    expect(await contents({ problems: ["a newer record"] })).not.toContain("Not measured yet");
  });

  it("looks into the peak, and into the moment that was chosen", async () => {
    const asked = vi.fn(api().moment);
    const app = await tab({ moment: asked });
    expect(asked.mock.calls).toEqual([["a", { phase: "step" }, "layer"]]);
    await app.store.choose({ moment: "p3", by: "shape" });
    expect(asked.mock.lastCall).toEqual(["a", { phase: "step", at: 3 }, "shape"]);
    await app.store.choose({ phase: "build" });
    expect(asked.mock.lastCall).toEqual(["a", { phase: "build" }, "shape"]);
  });

  it("keeps what is known in view when TensorBoard is gone, and says so", async () => {
    let gone = false;
    const app = await tab({
      runs: () =>
        gone ? Promise.reject(new ApiError("TensorBoard does not answer.", 0)) : Promise.resolve([headline("a")]),
    });
    expect(has(app, "stale")).toBe(false);
    gone = true;
    await app.store.reload();
    await app.updateComplete;
    expect(text(byTestId(app.shadowRoot!, "stale")[0])).toContain("TensorBoard does not answer.");
    expect(has(app, "verdict-sentence")).toBe(true);
    gone = false;
    byTestId(app.shadowRoot!, "stale")[0]!.querySelector("button")!.click();
    await vi.waitFor(() => expect(has(app, "stale")).toBe(false));
  });
});
