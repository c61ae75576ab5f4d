import { expect, it } from "vitest";
import { byTestId, shown, text } from "../testing/dom";
import { DominantItems } from "./dominant-items";

it("dominant items give words, exact bytes and shares", async () => {
  const part = { category: "weights" as const, count: 1, bytes: 600, requested_bytes: 600, share: 0.2 };
  const entry = {
    name: "net/a/kernel",
    layer: "net/a",
    shape: [2, 3],
    bytes: 1800,
    share: 0.6,
    sentence: "It is most of it.",
    parts: [
      { ...part, role: "weight" },
      { ...part, role: "update temporary", count: 2, bytes: 1200, requested_bytes: 1000, share: 0.4 },
    ],
  };
  const card = await shown(new DominantItems(), { dominant: [entry] });
  expect(byTestId(card.shadowRoot!, "dominant-part").map(text)).toEqual([
    "weight 600B 20.0 %",
    "update temporary × 2 1000 B asked for 1.2KiB 40.0 %",
  ]);
  expect(text(byTestId(card.shadowRoot!, "dominant-total")[0])).toBe("together 1.8KiB 60.0 %");
  const flag = (of: DominantItems): string => text(of.shadowRoot!.querySelector(".flag")!);
  expect([flag(card), byTestId(card.shadowRoot!, "dominant-none").length]).toEqual(["⚑", 0]);
  const little = await shown(new DominantItems(), { dominant: [{ ...entry, share: 0.049 }] });
  expect([flag(little), byTestId(little.shadowRoot!, "dominant-none").length]).toEqual(["", 1]);
});
