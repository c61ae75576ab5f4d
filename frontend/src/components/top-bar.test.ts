import { describe, expect, it } from "vitest";
import { parted, type Place } from "../model/place";
import { byTestId, shown, text } from "../testing/dom";
import { headline } from "../testing/samples";
import { onChoose } from "./choose";
import { RunPicker } from "./run-picker";
import { TopBar } from "./top-bar";

describe("the top bar", () => {
  it("tells what a person chose", async () => {
    const chosen: Partial<Place>[] = [];
    const bar = await shown(new TopBar(), { runs: [headline("a"), headline("b")], run: "a" });
    onChoose(document.body, (change) => chosen.push(change));
    byTestId(bar.shadowRoot!, "run-option")[1]!.querySelector("input")!.click();
    const limit = byTestId(bar.shadowRoot!, "limit-input")[0] as HTMLInputElement;
    limit.value = "24GB";
    limit.dispatchEvent(new Event("change"));
    bar.shadowRoot!.querySelectorAll<HTMLButtonElement>("[data-testid=unit-switch] button")[2]!.click();
    expect(chosen).toEqual([{ run: "b", compare: "" }, { limit: "24GB" }, { unit: "B" }]);
  });

  it("shows why a limit was refused", async () => {
    const bar = await shown(new TopBar(), { runs: [headline("a")], limit: "3 parsecs", limitError: "no size" });
    expect(text(byTestId(bar.shadowRoot!, "limit-error")[0])).toBe("no size");
    expect(byTestId(bar.shadowRoot!, "limit-input")[0]!.getAttribute("aria-invalid")).toBe("true");
  });
});

describe("the run picker", () => {
  const chosenIn = (): Partial<Place>[] => {
    const chosen: Partial<Place>[] = [];
    onChoose(document.body, (change) => chosen.push(change));
    return chosen;
  };

  it("puts runs beside the one on show and takes them away", async () => {
    const chosen = chosenIn();
    const runs = [headline("a"), headline("b"), headline("c,d")];
    const picker = await shown(new RunPicker(), { runs, run: "a", others: ["b"] });
    const buttons = byTestId(picker.shadowRoot!, "run-compare");
    expect(buttons.map((button) => button.getAttribute("aria-pressed"))).toEqual(["true", "false"]);
    buttons[1]!.click();
    buttons[0]!.click();
    expect(chosen.map(({ compare }) => parted(compare ?? ""))).toEqual([["b", "c,d"], []]);
  });

  it("swaps a compared run with the one on show", async () => {
    const chosen = chosenIn();
    const picker = await shown(new RunPicker(), { runs: [headline("a"), headline("b")], run: "a", others: ["b"] });
    byTestId(picker.shadowRoot!, "run-option")[1]!.querySelector("input")!.click();
    expect(chosen).toEqual([{ run: "b", compare: "a" }]);
  });

  it("finds one of many by its name", async () => {
    const runs = Array.from({ length: 30 }, (_, n) => headline(`sweep/lr-${n}`));
    const picker = await shown(new RunPicker(), { runs, run: "sweep/lr-0" });
    const [find] = byTestId(picker.shadowRoot!, "run-find") as HTMLInputElement[];
    find!.value = "LR-2";
    find!.dispatchEvent(new Event("input"));
    await picker.updateComplete;
    expect(byTestId(picker.shadowRoot!, "run-option")).toHaveLength(11);
  });

  it("finds those that ran out of memory, and those of an optimizer", async () => {
    const changes = [{ crashed: true }, { optimizer: "SGD" }];
    const runs = Array.from({ length: 30 }, (_, n) => headline(`lr-${n}`, changes[n]));
    const picker = await shown(new RunPicker(), { runs, run: "lr-0" });
    const [find] = byTestId(picker.shadowRoot!, "run-find") as HTMLInputElement[];
    const found = async (words: string): Promise<(string | undefined)[]> => {
      find!.value = words;
      find!.dispatchEvent(new Event("input"));
      await picker.updateComplete;
      return byTestId(picker.shadowRoot!, "run-option").map((option) => option.dataset["run"]);
    };
    const list = picker.shadowRoot!.querySelector(".options")!;
    list.scrollTop = 100;
    expect(await found("out of memory")).toEqual(["lr-0"]);
    expect(list.scrollTop).toBe(0);
    expect(await found("sgd")).toEqual(["lr-1"]);
  });
});
