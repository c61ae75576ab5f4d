import { css, html, type TemplateResult } from "lit";
import type { Unit } from "../format/bytes";
import type { Bytes } from "../model/types";
import { categoryFill, LABELS } from "../style/palette";
import type { Segment } from "../views/phases";
import { titleOf } from "./figure";

/** Percent of the axis from which on a segment can give a pixel to the gap after it and still be seen. */
const WIDE_ENOUGH = 1;

/** Stacked categories on a byte axis that ends at `max`; the caller gives the height and what lies over it. */
export function stack(segments: readonly Segment[], max: Bytes, unit: Unit): TemplateResult[] {
  let start = 0;
  return segments.map(({ category, bytes }) => {
    const left = (start / max) * 100;
    const width = (bytes / max) * 100;
    start += bytes;
    return html`<i
      class="segment ${width > WIDE_ENOUGH ? "parted" : ""}"
      data-category=${category}
      data-bytes=${bytes}
      title=${titleOf(LABELS[category], bytes, unit)}
      style="left:${left}%;width:${width}%;background:${categoryFill(category)}"
    ></i>`;
  });
}

/** What a bar says to those who do not see it. */
export function stackLabel(segments: readonly Segment[], unit: Unit): string {
  return segments.map(({ category, bytes }) => titleOf(LABELS[category], bytes, unit)).join(", ");
}

export const bars = css`
  .bar {
    position: relative;
    background: var(--track);
    border-radius: 2px;
    height: 12px;
  }
  .segment {
    position: absolute;
    inset-block: 0;
    min-width: 1px;
  }
  /* The gap parts neighbours also for those who see no difference in their colours. */
  .parted {
    box-shadow: inset -1px 0 var(--card);
  }
  /* Where the limit is, across a bar. */
  .limit {
    position: absolute;
    inset-block: -4px;
    margin-left: -1px;
    border-left: 2px dashed var(--limit);
  }
  .segment:first-child {
    border-radius: 2px 0 0 2px;
  }
  .swatch {
    display: inline-block;
    width: 10px;
    height: 10px;
    border-radius: 2px;
    margin-right: 6px;
    vertical-align: -0.5px;
  }
`;
