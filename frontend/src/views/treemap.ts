import { hierarchy, treemap, treemapSquarify } from "d3-hierarchy";
import type { Category, MomentGroup } from "../model/types";
import type { Box } from "./labels";

/** A group's rectangle, with those of its items inside. */
export interface GroupBox {
  group: MomentGroup;
  box: Box;
  items: { index: number; category: Category; box: Box }[];
}

const HEADING = 17;

interface Node {
  bytes: number;
  children?: Node[];
}

/** Everything alive as nested rectangles whose areas are its bytes: squarified, the largest first. */
export function treemapOf(groups: readonly MomentGroup[], width: number, height: number): GroupBox[] {
  const root = hierarchy<Node>({
    bytes: 0,
    children: groups.map(({ items }) => ({
      bytes: 0,
      children: items.map(({ all_bytes }) => ({ bytes: all_bytes })),
    })),
  }).sum(({ bytes }) => bytes);
  const heading = groups.length > 1 ? HEADING : 0;
  // Between very many, gaps would leave nothing of the smallest.
  const gap = (widest: number, count: number): number => Math.min(widest, Math.sqrt((width * height) / count) / 8);
  const buffers = groups.reduce((all, { items }) => all + items.length, 0);
  const gaps = [gap(3, groups.length), gap(1, buffers)] as const;
  const laid = treemap<Node>()
    .tile(treemapSquarify)
    .size([width, height])
    .paddingOuter(0)
    .paddingInner(({ depth }) => gaps[depth === 0 ? 0 : 1])
    // Where a heading would take most of a group, its colour says more.
    .paddingTop((node) =>
      node.depth === 1 && node.y1 - node.y0 > 2.5 * HEADING && node.x1 - node.x0 > 40 ? heading : 0,
    )(root);
  return (laid.children ?? []).map((node, n) => {
    const group = groups[n]!;
    return {
      group,
      box: boxOf(node),
      items: (node.children ?? []).map((child, index) => ({
        index,
        category: group.items[index]!.category,
        box: boxOf(child),
      })),
    };
  });
}

function boxOf({ x0, y0, x1, y1 }: { x0: number; y0: number; x1: number; y1: number }): Box {
  return { left: x0, top: y0, width: x1 - x0, height: y1 - y0 };
}
