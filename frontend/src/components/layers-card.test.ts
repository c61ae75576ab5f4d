import { describe, expect, it } from "vitest";
import { START, type Place } from "../model/place";
import type { Estimate, LayerGroup } from "../model/types";
import { byTestId, shown, text } from "../testing/dom";
import { estimate, layer } from "../testing/samples";
import { onChoose } from "./choose";
import { LayersCard } from "./layers-card";

const net: LayerGroup = {
  path: "net",
  layers: 3,
  parameters: 500,
  bytes_per_category: { weights: 2000, activations: 1000 },
  bytes_at_peak: 3000,
  measured_bytes: null,
  difference_bytes: null,
};

/** The card, following what is chosen in it as the tab would. */
async function card(change: Partial<Estimate> = {}, start: Partial<Place> = {}): Promise<LayersCard> {
  const element = new LayersCard();
  onChoose(element, (chosen) => (element.place = { ...element.place, ...chosen }));
  return shown(element, { estimate: estimate({ groups: [net], ...change }), place: { ...START, ...start }, run: "r" });
}

async function settled(element: LayersCard): Promise<void> {
  await element.updateComplete;
  await element.renderRoot.querySelector("memest-layer-table")!.updateComplete;
}

const rows = (element: LayersCard): string[] =>
  byTestId(element.shadowRoot!, "layer-row").map((row) => row.dataset["path"]!);
const cells = (row: Element): Record<string, number> =>
  Object.fromEntries(
    [...row.querySelectorAll<HTMLElement>("[data-testid=layer-cell]")].map((cell) => [
      cell.dataset["column"] ?? "",
      Number(cell.dataset["bytes"]),
    ]),
  );

describe("the layers", () => {
  it("have exact bytes in every cell, the group its sums, and a total that is the peak", async () => {
    const element = await card();
    expect(rows(element)).toEqual(["net/c", "net/b", "net/a"]);
    expect(byTestId(element.shadowRoot!, "layer-row").map(cells)).toEqual([
      { total: 1600, weights: 1600, activations: 0 },
      { total: 900, weights: 0, activations: 900 },
      { total: 500, weights: 400, activations: 100 },
    ]);
    const [group] = byTestId(element.shadowRoot!, "layer-group");
    expect(cells(group!)).toEqual({ total: 3000, weights: 2000, activations: 1000 });
    const [sum] = byTestId(element.shadowRoot!, "layer-total");
    expect(cells(sum!)).toEqual({ total: 3000, weights: 2000, activations: 1000 });
    expect(sum!.querySelector<HTMLElement>("[data-column=total]")!.title).toBe("3,000 B");
  });

  it("have measured bytes and their difference where there is a profile", async () => {
    const { total } = estimate();
    const layers = [layer("a", 400, 0, { measured_bytes: 450, difference_bytes: 50 }), layer("b", 0, 9)];
    const element = await card({ layers, groups: [], total: { ...total, measured_bytes: 450, difference_bytes: 50 } });
    expect(cells(byTestId(element.shadowRoot!, "layer-row")[0]!)).toMatchObject({ measured: 450, difference: 50 });
    const [missing] = byTestId(element.shadowRoot!, "layer-row").map((row) =>
      text(row.nextElementSibling?.querySelector("[data-column=measured]") ?? undefined),
    );
    expect(missing).toBe("·");
  });

  it("are sorted by a click on a head, which says so", async () => {
    const element = await card();
    const button = (): HTMLButtonElement =>
      element.renderRoot.querySelector("memest-layer-table")!.shadowRoot!.querySelector("[data-sort=activations]")!;
    button().click();
    await settled(element);
    expect(rows(element)).toEqual(["net/b", "net/a", "net/c"]);
    expect(button().closest("th")!.getAttribute("aria-sort")).toBe("descending");
    button().click();
    await settled(element);
    expect(rows(element)).toEqual(["net/c", "net/a", "net/b"]);
    expect(element.place.sort).toBe("activations.up");
  });

  it("fold with their group, by click and by key", async () => {
    const element = await card();
    const group = (): HTMLElement => byTestId(element.shadowRoot!, "layer-group")[0]!;
    group().querySelector<HTMLButtonElement>(".fold")!.click();
    await settled(element);
    expect(rows(element)).toEqual([]);
    expect(group().getAttribute("aria-expanded")).toBe("false");
    group().dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true, composed: true }));
    await settled(element);
    expect(rows(element)).toHaveLength(3);
  });

  it("are filtered, and come back", async () => {
    const element = await card({}, { find: "net/b" });
    expect(rows(element)).toEqual(["net/b"]);
    expect(text(byTestId(element.shadowRoot!, "layers-shown")[0])).toBe("1 row");
    element.place = { ...element.place, find: "no such layer" };
    await settled(element);
    const [none] = byTestId(element.shadowRoot!, "layers-none");
    none!.querySelector("button")!.click();
    await settled(element);
    expect(rows(element)).toHaveLength(3);
  });

  it("show a layer that was linked to, whatever hid it", async () => {
    const element = await card({}, { unfold: "none", find: "net/b" });
    element.place = { ...element.place, layer: "net/a" };
    await settled(element);
    await settled(element);
    expect(rows(element)).toContain("net/a");
    expect(
      element.shadowRoot!.querySelector("memest-layer-table")!.shadowRoot!.querySelector(".selected"),
    ).toMatchObject({ dataset: { path: "net/a" } });
  });

  it("have the columns that a person chose", async () => {
    const element = await card({}, { columns: "total,share" });
    const heads = [
      ...element.renderRoot.querySelector("memest-layer-table")!.shadowRoot!.querySelectorAll("thead th"),
    ].map((head) => text(head));
    expect(heads).toEqual(["Layer", "At the peak↓", "Share"]);
    element.renderRoot.querySelector<HTMLInputElement>("input[name=weights]")!.click();
    expect(element.place.columns).toBe("total,share,weights");
  });

  it("follow a new estimate", async () => {
    const element = await card();
    element.estimate = estimate({ layers: [layer("net/only", 40, 0)], groups: [] });
    await settled(element);
    expect(rows(element)).toEqual(["net/only"]);
  });
});
