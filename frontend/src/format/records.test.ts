import { expect, it } from "vitest";
import { csv, json } from "./records";

const records = [
  { layer: "a,b", shape: [1, 2], bytes: 2 ** 40 + 1, note: null },
  { layer: 'say "hi"', shape: "", bytes: 0, note: "x\ny" },
];

it("writes what spreadsheets read, exact numbers and quoted text", () => {
  expect(csv(records)).toBe('layer,shape,bytes,note\r\n"a,b","[1,2]",1099511627777,\r\n"say ""hi""",,0,"x\ny"\r\n');
  expect(csv([])).toBe("\r\n");
});

it("writes JSON that is read back equal", () => {
  expect(JSON.parse(json(records))).toEqual(records);
  expect(JSON.parse(json([]))).toEqual([]);
});
