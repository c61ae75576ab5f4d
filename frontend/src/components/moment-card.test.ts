import { describe, expect, it } from "vitest";
import type { Place } from "../model/place";
import type { Moment } from "../model/types";
import { byTestId, shown, text } from "../testing/dom";
import { moment } from "../testing/samples";
import { onChoose } from "./choose";
import { MomentCard } from "./moment-card";

const ready = (value: Moment): { state: "ready"; value: Moment } => ({ state: "ready", value });

describe("what is alive at a moment", () => {
  it("is added up by group, with exact bytes, shares and counts", async () => {
    const card = await shown(new MomentCard(), { moment: ready(moment()), phase: "step", unit: "B" });
    const root = card.shadowRoot!;
    expect(text(byTestId(root, "moment-words")[0])).toBe(
      "900B in 4 buffers, after event 2 of the predicted step, net/b/MatMul",
    );
    const cells = byTestId(root, "group-row").map((row) => [...row.children].slice(0, 4).map(text));
    expect(cells).toEqual([
      ["net/a", "600B", "66.7 %", "3"],
      ["net/b", "300B", "33.3 %", "1"],
    ]);
    const bars = [...byTestId(root, "group-row")[0]!.querySelectorAll<HTMLElement>(".segment")];
    expect(bars.map(({ dataset }) => [dataset["category"], dataset["bytes"]])).toEqual([
      ["weights", "400"],
      ["activations", "200"],
    ]);
  });

  it("lists each buffer alone, alike ones together", async () => {
    const card = await shown(new MomentCard(), { moment: ready(moment()), by: "each" });
    const rows = byTestId(card.shadowRoot!, "item-row");
    expect(rows.map((row) => text(row.querySelector("th")!))).toEqual(["net/a/kernel", "net/b/Grad", "net/a/Relu × 2"]);
    const held = rows.map((row) => row.querySelector<HTMLElement>("[data-column=held]")!.dataset["bytes"]);
    expect(held).toEqual(["400", "300", "200"]);
  });

  it("opens a group and leads back", async () => {
    const chosen: Partial<Place>[] = [];
    onChoose(document.body, (change) => chosen.push(change));
    const card = await shown(new MomentCard(), { moment: ready(moment()), group: "net/a", chosen: true });
    const root = card.shadowRoot!;
    expect(byTestId(root, "item-row").map((row) => row.dataset["name"])).toEqual(["net/a/kernel", "net/a/Relu"]);
    expect(text(root.querySelector(".path")!)).toContain("66.7 % of everything alive");
    const press = (words: string): void =>
      [...root.querySelectorAll("button")].find((button) => text(button) === words)!.click();
    press("← All");
    press("To the peak");
    press("Shape");
    card.group = "";
    await card.updateComplete;
    byTestId(root, "group-row")[1]!.querySelector("button")!.click();
    expect(chosen).toEqual([{ group: "" }, { moment: "" }, { by: "shape" }, { group: "net/b" }]);
  });

  it("says why there is nothing to see", async () => {
    const failed = { state: "failed" as const, message: "Log the run again.", status: 404 };
    const card = await shown(new MomentCard(), { moment: failed });
    expect(text(card.shadowRoot!.querySelector("[role=alert]")!)).toBe("Log the run again.");
    const none = await shown(new MomentCard(), { moment: ready(moment({ groups: [], bytes: 0, count: 0 })) });
    expect(text(none.shadowRoot!.querySelector("p")!)).toBe("Nothing is alive here.");
  });
});
