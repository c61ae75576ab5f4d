import { expect, it, vi } from "vitest";
import { followTheme } from "./theme";

it("follows the class of the host's body", async () => {
  const root = document.createElement("div");
  const changed = vi.fn();
  followTheme(window, root, changed);
  expect(root.dataset["theme"]).toBe("light");
  document.body.classList.add("dark-mode");
  await vi.waitFor(() => expect(root.dataset["theme"]).toBe("dark"));
  document.body.classList.add("unrelated");
  document.body.classList.remove("dark-mode");
  await vi.waitFor(() => expect(root.dataset["theme"]).toBe("light"));
  expect(changed.mock.calls).toEqual([["light"], ["dark"], ["light"]]);
});
