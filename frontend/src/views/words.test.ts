import { expect, it } from "vitest";
import { allocatorLabel, sessionLabel } from "./words";

it("names allocators by their devices", () => {
  const ids = ["GPU_0_bfc", "GPU_12_bfc", "bfc_cpu_allocator_for_gpu", "cpu_bfc", "a plugin's own"];
  expect(ids.map(allocatorLabel)).toEqual(["GPU:0", "GPU:12", "CPU", "CPU", "a plugin's own"]);
});

it("writes a session's name as a time, and leaves one that is none", () => {
  expect(sessionLabel("2026_01_31_15_45_31")).toBe("2026-01-31 15:45:31");
  expect(sessionLabel("my session")).toBe("my session");
});
