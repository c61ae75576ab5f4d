import type { ReactiveController, ReactiveControllerHost } from "lit";

/** Tells a component when its own size changes, for as long as it is in the page. */
export class Resized implements ReactiveController {
  readonly #host: ReactiveControllerHost & Element;
  readonly #observer: ResizeObserver;

  constructor(host: ReactiveControllerHost & Element, tell: () => void) {
    this.#host = host;
    this.#observer = new ResizeObserver(tell);
    host.addController(this);
  }

  hostConnected(): void {
    this.#observer.observe(this.#host);
  }

  hostDisconnected(): void {
    this.#observer.disconnect();
  }
}
