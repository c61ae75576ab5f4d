import { expect, it, vi } from "vitest";
import { byTestId, shown, text } from "../testing/dom";
import { ChangesTable } from "./changes-table";

const change = {
  name: "sgd",
  title: "Optimizer SGD",
  peak_bytes: 500,
  saving_bytes: 500,
  cost: "Needs a tuned learning rate.",
  code: "keras.optimizers.SGD()",
};
const none = { ...change, name: "none", title: "No change", peak_bytes: 900, saving_bytes: 0 };

it("draws what is left of the peak, and copies the code", async () => {
  const written: string[] = [];
  vi.stubGlobal("navigator", { clipboard: { writeText: (text: string) => Promise.resolve(written.push(text)) } });
  const table = await shown(new ChangesTable(), { changes: [change, none], now: 1000, unit: "B" });
  const root = table.shadowRoot!;
  const widths = [...root.querySelectorAll<HTMLElement>(".after")].map(({ style }) => style.width);
  expect(widths).toEqual(["50%", "90%"]);
  byTestId(root, "copy-code")[0]!.click();
  await vi.waitFor(() => expect(byTestId(root, "copy-code").map(text)).toEqual(["Copied", "Copy"]));
  expect(written).toEqual(["keras.optimizers.SGD()"]);
  vi.unstubAllGlobals();
});

it("says what fits only where there is a limit, and what saves nothing", async () => {
  const table = await shown(new ChangesTable(), { changes: [change, none], now: 1000, unit: "B" });
  const cells = (): string[][] =>
    byTestId(table.shadowRoot!, "change").map((row) => [...row.children].slice(2, 5).map((cell) => text(cell)));
  expect(cells()).toEqual([
    ["500B", "500B", change.cost],
    ["900B", "nothing", change.cost],
  ]);
  table.changes = [
    { ...change, fits: true, needs_bytes: 600 },
    { ...none, fits: false, needs_bytes: 900 },
  ];
  table.limit = 800;
  await table.updateComplete;
  expect(cells()).toEqual([
    ["500B up to 600B", "500B", "yes"],
    ["900B", "nothing", "no"],
  ]);
  const marks = [...table.shadowRoot!.querySelectorAll<HTMLElement>(".limit")].map(({ style }) => style.left);
  expect(marks).toEqual(["80%", "80%"]);
});

it("folds code of many lines, and copies all of it", async () => {
  const long = { ...change, code: "a = 1\nb = 2\nc = 3\nd = 4" };
  const table = await shown(new ChangesTable(), { changes: [change, long], now: 1000, unit: "B" });
  const [folded] = table.shadowRoot!.querySelectorAll("details");
  expect(table.shadowRoot!.querySelectorAll("details")).toHaveLength(1);
  expect(folded!.open).toBe(false);
  expect(text(folded!.querySelector("summary")!)).toBe("4 lines of code");
  expect(folded!.querySelector("code")!.textContent).toBe(long.code);
});

it("offers no code to copy where a line is only left out", async () => {
  const left = { ...change, name: "no_cache", code: "" };
  const table = await shown(new ChangesTable(), { changes: [change, left], now: 1000, unit: "B" });
  expect(byTestId(table.shadowRoot!, "copy-code")).toHaveLength(1);
});
