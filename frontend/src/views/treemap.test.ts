import { describe, expect, it } from "vitest";
import { moment } from "../testing/samples";
import { overlap, type Box } from "./labels";
import { treemapOf } from "./treemap";

const area = ({ width, height }: Box): number => width * height;

describe("the treemap", () => {
  const { groups } = moment();
  const boxes = treemapOf(groups, 600, 300);

  it("gives each group and each of its buffers an area for its bytes", () => {
    expect(boxes.map(({ group }) => group.key)).toEqual(["net/a", "net/b"]);
    const [a, b] = boxes.map(({ box }) => area(box)) as [number, number];
    expect(a / b).toBeCloseTo(2, 1);
    const [weight, activations] = boxes[0]!.items.map(({ box }) => area(box)) as [number, number];
    expect(weight / activations).toBeCloseTo(2, 1);
    expect(boxes[0]!.items.map(({ category }) => category)).toEqual(["weights", "activations"]);
  });

  it("lets nothing overlap, and all inside", () => {
    const inner = boxes.flatMap(({ items }) => items.map(({ box }) => box));
    for (const [n, box] of inner.entries()) {
      expect(box.left >= 0 && box.top >= 0 && box.left + box.width <= 600 && box.top + box.height <= 300).toBe(true);
      expect(inner.slice(n + 1).some((other) => overlap(box, other))).toBe(false);
    }
  });

  it("leaves something of each of very many", () => {
    const [group] = groups;
    const many = Array.from({ length: 5000 }, (_, n) => ({ ...group!, key: `net/${n}` }));
    expect(
      Math.min(...treemapOf(many, 600, 300).flatMap(({ items }) => items.map(({ box }) => area(box)))),
    ).toBeGreaterThan(0.5 * ((600 * 300) / 5000 / 3));
  });

  it("has room for a heading only where a group is large", () => {
    expect(boxes[0]!.items[0]!.box.top - boxes[0]!.box.top).toBeGreaterThan(10);
    const small = treemapOf(groups, 60, 30);
    expect(small[0]!.items[0]!.box.top).toBe(small[0]!.box.top);
  });
});
