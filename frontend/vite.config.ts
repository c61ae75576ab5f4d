import { defineConfig } from "vite";

// TensorBoard imports one module and calls its `render()`: everything is in that file, styles included, because the
// plugin serves no other and the page's Content-Security-Policy allows no other origin.
export default defineConfig({
  build: {
    outDir: "../tensorboard_plugin_memest/static",
    emptyOutDir: true,
    target: "es2022",
    rolldownOptions: {
      input: "src/index.ts",
      preserveEntrySignatures: "strict",
      output: { format: "es", entryFileNames: "index.js", codeSplitting: false },
    },
  },
});
