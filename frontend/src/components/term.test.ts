import { expect, it } from "vitest";
import { shown, text } from "../testing/dom";
import { TermElement } from "./term";

it("explains a word when it is pointed at or focused, and is described by it all the time", async () => {
  const term = await shown(new TermElement(), { word: "xla" });
  const button = term.shadowRoot!.querySelector("button")!;
  const tip = term.shadowRoot!.querySelector<HTMLElement>("[role=tooltip]")!;
  expect(button.getAttribute("aria-describedby")).toBe(tip.id);
  expect(text(tip)).toContain("jit_compile=True");
  expect(tip.hidden).toBe(true);
  button.dispatchEvent(new Event("focus"));
  await term.updateComplete;
  expect(tip.hidden).toBe(false);
  button.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }));
  await term.updateComplete;
  expect(tip.hidden).toBe(true);
});

it("leaves a word alone that has no explanation", async () => {
  const term = await shown(new TermElement(), { word: "no such word" });
  expect(term.shadowRoot!.querySelector("button")).toBeNull();
});
