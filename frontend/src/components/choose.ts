import type { Place } from "../model/place";

const CHOSEN = "memest-choose";

/** Tells the tab what a person chose in `element`: a change of the place. It reaches the store from any depth. */
export function choose(element: Element, change: Partial<Place>): void {
  element.dispatchEvent(new CustomEvent(CHOSEN, { detail: change, bubbles: true, composed: true }));
}

/** Hands every choice made inside `element` to `take`. */
export function onChoose(element: Element, take: (change: Partial<Place>) => void): void {
  element.addEventListener(CHOSEN, (event) => take((event as CustomEvent<Partial<Place>>).detail));
}

/** Leads a person to a card of the page, by its id in run-page.ts. */
export function showCard(element: Element, card: string): void {
  choose(element, { card });
}
