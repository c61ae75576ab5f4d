import { describe, expect, it } from "vitest";
import { START } from "../model/place";
import { Store } from "../model/store";
import { byTestId, shown, text } from "../testing/dom";
import { api, host } from "../testing/samples";
import { App } from "./app";
import { HostCard } from "./host-card";

describe("the data pipeline", () => {
  it("draws every stage from where the one before it ends, with bytes and the reason", async () => {
    const card = await shown(new HostCard(), { host: host(), unit: "B" });
    const stages = byTestId(card.shadowRoot!, "host-stage");
    expect(stages.map((row) => row.dataset["name"])).toEqual(["cache", "shuffle", "in use"]);
    expect(text(stages[0])).toBe("cache 1,000B 100 10B Every element stays in memory.");
    const drawn = stages.map((row) => row.querySelector<HTMLElement>(".segment")!.style);
    expect(drawn.map(({ left }) => Number.parseFloat(left).toFixed(1))).toEqual(["0.0", "76.9", "92.3"]);
    expect(drawn.map(({ width }) => Number.parseFloat(width).toFixed(1))).toEqual(["76.9", "15.4", "7.7"]);
    expect(text(byTestId(card.shadowRoot!, "host-peak")[0])).toBe("1,300B");
  });

  it("tells what each change saves, and which save nothing", async () => {
    const card = await shown(new HostCard(), { host: host({ slack_bytes: 40, startup_bytes: 2000 }), unit: "B" });
    const levers = byTestId(card.shadowRoot!, "host-lever");
    expect(levers.map(text)).toEqual(['cache in a file 300B 1,000B reads dataset.cache("file") Copy']);
    expect(byTestId(card.shadowRoot!, "host-useless").map(text)).toEqual(["no cache, 1,300B then: It is shared."]);
    expect(text(card.shadowRoot!.querySelector("header")!)).toContain("up to 40B");
    expect(text(card.shadowRoot!.querySelector("header")!)).toContain("at the start 2,000B");
    expect(text(byTestId(card.shadowRoot!, "host-assumptions")[0])).toBe("AUTOTUNE is taken to prefetch 2 elements.");
  });

  it("is shown for runs that have it, and left out for others", async () => {
    const answers = api({ host: (run) => Promise.resolve({ host: run === "a" ? host() : null }) });
    const store = new Store(answers);
    const app = await shown(new App(), { store });
    await store.goTo(START);
    await app.updateComplete;
    expect(byTestId(app.shadowRoot!, "host-stage")).toHaveLength(3);
    await store.choose({ run: "b" });
    await app.updateComplete;
    expect(byTestId(app.shadowRoot!, "host-stage")).toHaveLength(0);
  });
});
