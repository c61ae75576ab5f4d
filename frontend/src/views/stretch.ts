/** A stretch of an axis, from where to where. */
export type Range = readonly [number, number];

/** What of a chart is on show; null for all of an axis. */
export interface Stretch {
  x: Range | null;
  y: Range | null;
}

export const WHOLE: Stretch = { x: null, y: null };

/** As it stands in the address: `120..400`, `120..400;0..3000`, `;0..3000`; empty for all. */
export function stretchText({ x, y }: Stretch): string {
  const text = (range: Range | null): string => (range ? `${range[0]}..${range[1]}` : "");
  return `${text(x)};${text(y)}`.replace(/;$/, "");
}

/** What `stretchText` wrote; all of the axis for anything else. */
export function parseStretch(text: string): Stretch {
  const [x = "", y = ""] = text.split(";");
  return { x: parseRange(x), y: parseRange(y) };
}

function parseRange(text: string): Range | null {
  const found = /^(-?\d+)\.\.(-?\d+)$/.exec(text);
  const [from, to] = [Number(found?.[1]), Number(found?.[2])];
  return found && from < to ? [from, to] : null;
}

/** `range` in whole numbers inside `whole`; null where that is all of it. */
export function within(range: Range, whole: Range): Range | null {
  const from = Math.max(whole[0], Math.floor(range[0]));
  const to = Math.min(whole[1], Math.ceil(range[1]));
  if (from >= to || (from <= whole[0] && to >= whole[1])) {
    return null;
  }
  return [from, to];
}

/** `range` made `factor` times as long around `centre`; null where that is all of `whole`. */
export function zoomed(range: Range, whole: Range, factor: number, centre: number): Range | null {
  const at = Math.min(range[1], Math.max(range[0], centre));
  const from = at - (at - range[0]) * factor;
  const to = at + (range[1] - at) * factor;
  // Nothing lies between two whole numbers.
  return to - from < 1 ? within(range, whole) : within([from, to], whole);
}

/** `range` moved by a share of its length, as far as `whole` goes. */
export function panned(range: Range, whole: Range, share: number): Range | null {
  const length = range[1] - range[0];
  const from = Math.min(Math.max(range[0] + share * length, whole[0]), whole[1] - length);
  return within([from, from + length], whole);
}
