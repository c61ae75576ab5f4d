export type Theme = "light" | "dark";

/** TensorBoard says which theme is on only through this class of its own page's body. */
const DARK_CLASS = "dark-mode";

/** Keeps `root`'s `data-theme` the same as the host's theme and tells `changed`. */
export function followTheme(host: Window, root: HTMLElement, changed: (theme: Theme) => void): void {
  const { body } = host.document;
  const apply = (): void => {
    const theme: Theme = body.classList.contains(DARK_CLASS) ? "dark" : "light";
    if (root.dataset["theme"] !== theme) {
      root.dataset["theme"] = theme;
      changed(theme);
    }
  };
  new MutationObserver(apply).observe(body, { attributes: true, attributeFilter: ["class"] });
  apply();
}
