import { describe, expect, it } from "vitest";
import { byTestId, shown } from "../testing/dom";
import { estimate, layer } from "../testing/samples";
import { LayerTable } from "./layer-table";

describe("the layer table", () => {
  const rows = (table: LayerTable): string[] =>
    byTestId(table.shadowRoot!, "layer-row").map((row) => row.dataset["path"]!);

  it("has a column for each category there is, exact bytes in every cell, and a total that is the peak", async () => {
    const { layers, total } = estimate();
    const table = await shown(new LayerTable(), { layers, total });
    const cells = (row: Element): Record<string, number> =>
      Object.fromEntries(
        [...row.querySelectorAll<HTMLElement>("[data-testid=layer-cell]")].map((cell) => [
          cell.dataset["column"] ?? "",
          Number(cell.dataset["bytes"]),
        ]),
      );
    expect(rows(table)).toEqual(["net/c", "net/b", "net/a"]);
    expect(byTestId(table.shadowRoot!, "layer-row").map(cells)).toEqual([
      { total: 1600, weights: 1600, activations: 0 },
      { total: 900, weights: 0, activations: 900 },
      { total: 500, weights: 400, activations: 100 },
    ]);
    const [sum] = byTestId(table.shadowRoot!, "layer-total");
    expect(cells(sum!)).toEqual({ total: 3000, weights: 2000, activations: 1000 });
    expect(sum!.querySelector<HTMLElement>("[data-column=total]")!.title).toBe("3,000 B");
  });

  it("is sorted by a click on a head, and says so", async () => {
    const { layers, total } = estimate();
    const table = await shown(new LayerTable(), { layers, total });
    const button = table.shadowRoot!.querySelector<HTMLButtonElement>("[data-sort=activations]")!;
    button.click();
    await table.updateComplete;
    expect(rows(table)).toEqual(["net/b", "net/a", "net/c"]);
    expect(button.closest("th")!.getAttribute("aria-sort")).toBe("descending");
    button.click();
    await table.updateComplete;
    expect(rows(table)).toEqual(["net/c", "net/a", "net/b"]);
  });

  it("follows a new estimate", async () => {
    const { layers, total } = estimate();
    const table = await shown(new LayerTable(), { layers, total });
    table.layers = [layer("net/only", 40, 0)];
    await table.updateComplete;
    expect(rows(table)).toEqual(["net/only"]);
  });
});
