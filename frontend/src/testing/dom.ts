import type { LitElement } from "lit";
import { afterEach } from "vitest";

/** The element on the page, drawn. It is gone after the test. */
export async function shown<E extends LitElement>(element: E, properties: Partial<E>): Promise<E> {
  Object.assign(element, properties);
  document.body.append(element);
  await element.updateComplete;
  return element;
}

/** All elements with a test id, in open shadow roots too. */
export function byTestId(root: Element | ShadowRoot, id: string): HTMLElement[] {
  const found = [...root.querySelectorAll<HTMLElement>(`[data-testid="${id}"]`)];
  const inside = [...root.querySelectorAll("*")].flatMap((element) =>
    element.shadowRoot ? byTestId(element.shadowRoot, id) : [],
  );
  return [...found, ...inside];
}

/** The text of an element, white space squeezed. */
export const text = (element: Element | undefined): string => (element?.textContent ?? "").replace(/\s+/g, " ").trim();

afterEach(() => document.body.replaceChildren());
