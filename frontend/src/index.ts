import { App } from "./components/app";
import { Address } from "./host/address";
import { hostWindow } from "./host/parent";
import { onReload } from "./host/reload";
import { followTheme } from "./host/theme";
import { httpApi, type Api } from "./model/api";
import { Store } from "./model/store";
import { TOKENS } from "./style/tokens";

/**
 * Draws the Memory tab into the page. TensorBoard calls it once, in the plugin's own frame.
 *
 * An error that nobody catches would leave the tab blank, so any that comes before there is something to see is shown.
 */
export function render(): void {
  window.addEventListener("error", (event) => showFailure(event.error ?? event.message));
  window.addEventListener("unhandledrejection", (event) => showFailure(event.reason));
  try {
    // The routes lie beside this module, whatever prefix TensorBoard is served under.
    mount(httpApi(import.meta.url));
  } catch (error) {
    showFailure(error);
  }
}

/** Wires the tab to what answers its questions and to the TensorBoard around it. */
export function mount(api: Api): Store {
  const host = hostWindow();
  const style = document.createElement("style");
  style.textContent = TOKENS;
  document.head.append(style);
  document.title = "Memory";
  document.documentElement.lang = "en";

  const address = new Address(host);
  const store = new Store(api, (place) => address.write(place));
  const app = new App();
  app.store = store;
  followTheme(host, document.documentElement, (theme) => (app.theme = theme));
  address.watch((place) => void store.goTo(place));
  onReload(host, () => void store.reload());
  document.body.append(app);
  void store.goTo(address.read());
  return store;
}

function showFailure(error: unknown): void {
  const words = error instanceof Error ? error.message : String(error);
  if (words.startsWith("ResizeObserver loop")) {
    // Chromium's word for "the rest of the sizes in the next frame"; nothing is wrong.
    return;
  }
  console.error(error);
  if (document.querySelector("#memest-failure")) {
    return;
  }
  const box = document.createElement("p");
  box.id = "memest-failure";
  box.setAttribute("role", "alert");
  box.style.cssText =
    "margin:16px 24px;padding:12px 16px;border:1px solid #b3261e;border-radius:6px;background:#fff;color:#1b2430;font:14px sans-serif";
  box.textContent = `The Memory tab ran into an error of its own: ${words}. Reload the page; if it comes back, please report it.`;
  document.body.prepend(box);
}
