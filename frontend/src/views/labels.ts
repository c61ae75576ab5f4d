/** A rectangle in pixels. */
export interface Box {
  left: number;
  top: number;
  width: number;
  height: number;
}

export const overlap = (a: Box, b: Box): boolean =>
  a.left < b.left + b.width && b.left < a.left + a.width && a.top < b.top + b.height && b.top < a.top + a.height;

/**
 * Where words of a size go beside a point: over it, else under it or beside it, inside `bounds` and clear of what is
 * `taken`; over it all the same where there is no room.
 */
export function placed(
  point: { x: number; y: number },
  size: { width: number; height: number },
  bounds: Box,
  taken: readonly Box[],
  gap: number,
): Box {
  const centred = point.x - size.width / 2;
  const above = point.y - gap - size.height;
  const below = point.y + gap;
  const middle = point.y - size.height / 2;
  const [left, right] = [point.x - gap - size.width, point.x + gap];
  const candidates: [number, number][] = [
    [centred, above],
    [right, above],
    [left, above],
    [right, middle],
    [left, middle],
    [centred, below],
    [right, below],
    [left, below],
  ];
  const boxes = candidates.map(([x, y]) => inside({ left: x, top: y, ...size }, bounds));
  const free = boxes.find((box) => box.top === clamp(box, bounds) && !taken.some((other) => overlap(box, other)));
  return free ?? boxes[0]!;
}

/** Words may stand over the plot's edge at its sides only after they were moved inside. */
function inside(box: Box, bounds: Box): Box {
  const left = Math.max(bounds.left, Math.min(box.left, bounds.left + bounds.width - box.width));
  return { ...box, left };
}

function clamp(box: Box, bounds: Box): number {
  return Math.max(bounds.top, Math.min(box.top, bounds.top + bounds.height - box.height));
}
