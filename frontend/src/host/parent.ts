/**
 * The window around the plugin's frame: TensorBoard's.
 *
 * The tab's own window where there is none around it (the development page) or where it may not be touched.
 */
export function hostWindow(): Window {
  try {
    // Reading any property of a foreign origin's document throws.
    void window.parent.document.body;
    return window.parent;
  } catch {
    return window;
  }
}
