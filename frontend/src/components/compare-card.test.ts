import { expect, it } from "vitest";
import type { Place } from "../model/place";
import { byTestId, shown, text } from "../testing/dom";
import { compared } from "../testing/samples";
import { onChoose } from "./choose";
import { CompareCard } from "./compare-card";

const load = { state: "ready" as const, value: compared(["a", "b"]) };
const rows = (card: CompareCard): string[] =>
  byTestId(card.shadowRoot!, "compare-row").map((row) => `${row.dataset["section"]}/${row.dataset["name"]}`);

it("shows every figure of every run with its difference from the first", async () => {
  const card = await shown(new CompareCard(), { compared: load, unit: "B" });
  expect(rows(card)).toEqual([
    "peaks/predicted",
    "peaks/measured",
    "phases/build",
    "phases/step",
    "categories/weights",
    "categories/activations",
    "layers/net/b",
    "layers/net/a",
  ]);
  const [predicted, measured, build] = byTestId(card.shadowRoot!, "compare-row");
  expect([...predicted!.querySelectorAll("td")].map((cell) => text(cell))).toEqual(["3,000B", "3,100B+100B"]);
  expect(predicted!.className).toBe("changed");
  expect([...measured!.querySelectorAll("td")].map((cell) => text(cell))).toEqual(["–", "–"]);
  expect(build!.className).toBe("");
  expect(byTestId(card.shadowRoot!, "compare-fact").map((row) => [...row.children].map((cell) => text(cell)))).toEqual([
    ["Optimizer", "Adam", "Adam"],
    ["Batch size", "1", "2"],
  ]);
});

it("leaves out what is the same, when asked", async () => {
  const card = await shown(new CompareCard(), { compared: load, changed: "only" });
  expect(rows(card)).toEqual(["peaks/predicted", "phases/step", "categories/activations", "layers/net/b"]);
  expect(byTestId(card.shadowRoot!, "compare-fact").map((row) => row.dataset["name"])).toEqual(["batch_size"]);
});

it("does not say that a run fits which ran out of memory", async () => {
  const value = compared(["a", "b"]);
  const verdict = {
    limit_bytes: 4000,
    limit_name: null,
    risks: [],
    outcome: "fits" as const,
    margin_bytes: 900,
    sentence: "It fits.",
    phases: {},
  };
  value.runs = value.runs.map((run, n) => ({ ...run, verdict, crash: n ? "The run ran out of memory." : null }));
  const card = await shown(new CompareCard(), { compared: { state: "ready" as const, value }, unit: "B" });
  const cells = [...card.renderRoot.querySelectorAll<HTMLElement>("td[data-outcome]")];
  expect(cells.map(text)).toEqual(["fits, 900B to spare", "ran out of memory"]);
  expect(cells.map((cell) => cell.title)).toEqual(["It fits.", "The run ran out of memory."]);
});

it("leads to a run, and ends", async () => {
  const chosen: Partial<Place>[] = [];
  onChoose(document.body, (change) => chosen.push(change));
  const card = await shown(new CompareCard(), { compared: load });
  card.renderRoot.querySelector<HTMLButtonElement>("thead th:nth-child(3) button")!.click();
  card.renderRoot.querySelector<HTMLButtonElement>("header .controls > .link")!.click();
  expect(chosen).toEqual([{ run: "b" }, { compare: "" }]);
});

it("says why there is nothing to compare", async () => {
  const card = await shown(new CompareCard(), { compared: { state: "failed", message: "no run 'b'", status: 404 } });
  expect(text(card.shadowRoot!.querySelector("[role=alert]")!)).toBe("no run 'b'");
});
