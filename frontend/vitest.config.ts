import { defineConfig } from "vitest/config";

// Apart from vite.config.ts: building the package installs nothing that only tests need.
export default defineConfig({
  test: { environment: "happy-dom", include: ["{src,dev}/**/*.test.ts"] },
});
