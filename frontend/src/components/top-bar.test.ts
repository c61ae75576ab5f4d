import { describe, expect, it } from "vitest";
import { type Place } from "../model/place";
import { byTestId, shown, text } from "../testing/dom";
import { headline } from "../testing/samples";
import { TopBar } from "./top-bar";
import { onChoose } from "./choose";

describe("the top bar", () => {
  it("tells what a person chose", async () => {
    const chosen: Partial<Place>[] = [];
    const bar = await shown(new TopBar(), { runs: [headline("a"), headline("b")], run: "a" });
    onChoose(document.body, (change) => chosen.push(change));
    bar.shadowRoot!.querySelector<HTMLInputElement>("input[value=b]")!.click();
    const limit = byTestId(bar.shadowRoot!, "limit-input")[0] as HTMLInputElement;
    limit.value = "24GB";
    limit.dispatchEvent(new Event("change"));
    bar.shadowRoot!.querySelectorAll<HTMLButtonElement>("[data-testid=unit-switch] button")[2]!.click();
    expect(chosen).toEqual([{ run: "b" }, { limit: "24GB" }, { unit: "B" }]);
  });

  it("shows why a limit was refused", async () => {
    const bar = await shown(new TopBar(), { runs: [headline("a")], limit: "3 parsecs", limitError: "no size" });
    expect(text(byTestId(bar.shadowRoot!, "limit-error")[0])).toBe("no size");
    expect(byTestId(bar.shadowRoot!, "limit-input")[0]!.getAttribute("aria-invalid")).toBe("true");
  });
});
