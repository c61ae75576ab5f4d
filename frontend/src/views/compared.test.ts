import { expect, it } from "vitest";
import { compared } from "../testing/samples";
import { comparedRecords, inBytes, isChanged, rowLabel } from "./compared";

it("tells rows that differ, also from a run that does not have them", () => {
  expect(isChanged({ name: "x", values: [5, 5], differences: [0, 0] })).toBe(false);
  expect(isChanged({ name: "x", values: [5, 6], differences: [0, 1] })).toBe(true);
  expect(isChanged({ name: "x", values: [null, 6], differences: [null, null] })).toBe(true);
  expect(inBytes(-2048)).toBe("−2,048 B");
  expect(rowLabel("phases", "first_step")).toBe("First step");
});

it("exports a record for each row with every run's bytes", () => {
  const records = comparedRecords(compared(["a", "b"]));
  expect(records[0]).toEqual({ section: "peaks", name: "predicted", a: 3000, b: 3100, "b difference": 100 });
  expect(records.at(-1)).toEqual({ section: "layers", name: "net/a", a: 500, b: 500, "b difference": 0 });
});
