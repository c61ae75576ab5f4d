import { html, nothing, type TemplateResult } from "lit";
import { exactBytes, formatShape, formatShare, type Unit } from "../format/bytes";
import type { AliveItem, Bytes, Item } from "../model/types";
import { categoryFill, LABELS } from "../style/palette";
import { plainBytes } from "./figure";

export const ITEM_COLUMNS = 7;

/** Items as a table; `whole` is what their shares are of. Wants the styles `tables` around it. */
export function itemTable(
  items: readonly (Item | AliveItem)[],
  whole: Bytes,
  unit: Unit,
  window: { first: number; before: TemplateResult | typeof nothing; after: TemplateResult | typeof nothing } = {
    first: 0,
    before: nothing,
    after: nothing,
  },
): TemplateResult {
  return html`<table data-testid="item-table">
    <thead>
      <tr>
        <th scope="col">Item</th>
        <th scope="col">What</th>
        <th scope="col" class="number">Held</th>
        <th scope="col" class="number">Share</th>
        <th scope="col" class="number">Requested</th>
        <th scope="col">Layer</th>
        <th scope="col">Shape</th>
      </tr>
    </thead>
    <tbody>
      ${window.before}${items.map((item, n) => itemRow(item, window.first + n, whole, unit))}${window.after}
    </tbody>
  </table>`;
}

function itemRow(item: Item | AliveItem, index: number, whole: Bytes, unit: Unit): TemplateResult {
  const { count, all_bytes: held } = "count" in item ? item : { count: 1, all_bytes: item.bytes };
  return html`<tr data-testid="item-row" data-name=${item.name} data-index=${index}>
    <th scope="row"><code>${item.name}</code>${count > 1 ? html` <span class="soft">× ${count}</span>` : nothing}</th>
    <td title=${LABELS[item.category]}>
      <span class="swatch" style="background:${categoryFill(item.category)}"></span>${item.role}
    </td>
    <td class="number" data-column="held" data-bytes=${held} title=${exactBytes(held)}>${plainBytes(held, unit)}</td>
    <td class="number">${formatShare(held, whole)}</td>
    <td
      class="number"
      data-column="requested"
      data-bytes=${item.requested_bytes}
      title=${exactBytes(item.requested_bytes)}
    >
      ${plainBytes(item.requested_bytes, unit)}
    </td>
    <td>${item.layer}</td>
    <td class="soft">${item.shape ? formatShape(item.shape) : nothing} ${item.dtype ?? nothing}</td>
  </tr>`;
}
