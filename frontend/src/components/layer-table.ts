import { css, html, LitElement, nothing, type PropertyValues, type TemplateResult } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import { ref } from "lit/directives/ref.js";
import { exactBytes, formatShape, grouped, type Unit } from "../format/bytes";
import type { Bytes, Category, LayerRow, Total } from "../model/types";
import { categoryFill, LABELS } from "../style/palette";
import { base, card, tables } from "../style/shared";
import { columnsOf, layerName, nextSorting, sorted, type SortKey, type Sorting } from "../views/layers";
import { segmentsOf, type Segment } from "../views/phases";
import { counted, phaseLabel } from "../views/words";
import { bars, stack, stackLabel } from "./bar";
import { plainBytes } from "./figure";
import { ROW_HEIGHT, RowWindow } from "./row-window";

/** Name, output, parameters, total and picture. */
const FIXED_COLUMNS = 5;

/** Every layer with its bytes at the peak, a column for each category, and a total that is the peak. */
@customElement("memest-layer-table")
export class LayerTable extends LitElement {
  @property({ attribute: false }) layers: readonly LayerRow[] = [];
  @property({ attribute: false }) total!: Total;
  @property() model = "";
  @property() phase = "step";
  @property() unit: Unit = "GiB";
  @state() private sorting: Sorting = { key: "total", descending: true };

  #rows: LayerRow[] = [];
  readonly #window = new RowWindow(this);

  override willUpdate(changed: PropertyValues): void {
    if (changed.has("layers") || changed.has("sorting")) {
      this.#rows = sorted(this.layers, this.sorting);
      this.#window.count = this.#rows.length;
    }
  }

  override render(): TemplateResult {
    const columns = columnsOf(this.total);
    const rows = this.#rows;
    const { first, end } = this.#window.range;
    const width = columns.length + FIXED_COLUMNS;
    const layers = this.layers.filter((layer) => layer.class_name).length;
    return html`
      <header>
        <h2>Layers</h2>
        <span class="soft"
          >${counted(layers, "layer")}, bytes at the peak of the ${phaseLabel(this.phase).toLowerCase()}</span
        >
      </header>
      <div class="scroller" ${ref(this.#window.scroller)}>
        <table aria-rowcount=${rows.length + 2} data-testid="layer-table">
          <thead>
            <tr>
              ${this.#head("model", "Layer")}
              <th scope="col">Output</th>
              ${this.#head("parameters", "Parameters")} ${this.#head("total", "At the peak")}
              <th scope="col" class="picture"><span class="hidden">At the peak, as a picture</span></th>
              ${columns.map((category) => this.#categoryHead(category))}
            </tr>
          </thead>
          <tbody>
            ${this.#window.before(width)} ${rows.slice(first, end).map((row, n) => this.#row(row, first + n, columns))}
            ${this.#window.after(width)}
          </tbody>
          <tfoot>
            <tr data-testid="layer-total" aria-rowindex=${rows.length + 2}>
              <th scope="row">Total</th>
              <td></td>
              <td class="number">${grouped(this.total.parameters)}</td>
              ${this.#cell("total", this.total.bytes_at_peak)}
              <td class="picture">${this.#picture(segmentsOf(this.total.bytes_per_category))}</td>
              ${columns.map((category) => this.#cell(category, this.total.bytes_per_category[category] ?? 0))}
            </tr>
          </tfoot>
        </table>
      </div>
    `;
  }

  #categoryHead(category: Category): TemplateResult {
    const swatch = html`<span class="swatch" style="background:${categoryFill(category)}"></span>`;
    return this.#head(category, html`${swatch}${LABELS[category]}`);
  }

  #head(key: SortKey, label: TemplateResult | string): TemplateResult {
    const { key: now, descending } = this.sorting;
    const order = now === key ? (descending ? "descending" : "ascending") : "none";
    return html`<th scope="col" class=${key === "model" ? "" : "number"} aria-sort=${order}>
      <button type="button" data-sort=${key} @click=${() => (this.sorting = nextSorting(this.sorting, key))}>
        ${label}${
          order === "none" ? nothing : html`<span class="arrow" aria-hidden="true">${descending ? "↓" : "↑"}</span>`
        }
      </button>
    </th>`;
  }

  #row(row: LayerRow, index: number, columns: readonly Category[]): TemplateResult {
    return html`<tr data-testid="layer-row" data-path=${row.path} aria-rowindex=${index + 2}>
      <th scope="row" title=${row.path}>
        <span class=${row.class_name ? "name" : "part"}>${layerName(row.path, this.model)}</span>
        <span class="soft">${row.class_name}</span>
      </th>
      <td class="shape">${row.output_shape ? formatShape(row.output_shape) : nothing}</td>
      <td class="number">${row.class_name ? grouped(row.parameters) : nothing}</td>
      ${this.#cell("total", row.bytes_at_peak)}
      <td class="picture">${this.#picture(segmentsOf(row.bytes_per_category))}</td>
      ${columns.map((category) => this.#cell(category, row.bytes_per_category[category] ?? 0))}
    </tr>`;
  }

  #picture(segments: readonly Segment[]): TemplateResult {
    return html`<div class="bar" role="img" aria-label=${stackLabel(segments, this.unit) || "nothing"}>
      ${stack(segments, this.total.bytes_at_peak || 1, this.unit)}
    </div>`;
  }

  #cell(column: Category | "total", value: Bytes): TemplateResult {
    return html`<td
      class="number ${value === 0 ? "zero" : ""}"
      data-testid="layer-cell"
      data-column=${column}
      data-bytes=${value}
      title=${exactBytes(value)}
    >
      ${value === 0 ? "–" : plainBytes(value, this.unit)}
    </td>`;
  }

  static override styles = [
    base,
    card,
    tables,
    bars,
    css`
      :host {
        display: flex;
        flex-direction: column;
      }
      .scroller {
        overflow: auto;
        max-height: min(640px, 80vh);
        margin: 0 -6px;
      }
      table {
        border-collapse: separate;
        border-spacing: 0;
      }
      tbody tr {
        height: ${ROW_HEIGHT}px;
      }
      tbody th,
      tbody td {
        white-space: nowrap;
      }
      thead th {
        position: sticky;
        top: 0;
        z-index: 2;
        background: var(--card);
        border-bottom-color: var(--edge);
        white-space: normal;
      }
      /* The name stays in view while the categories scroll. */
      th:first-child {
        position: sticky;
        left: 0;
        z-index: 1;
        background: var(--card);
      }
      thead th:first-child,
      tfoot th:first-child {
        z-index: 3;
      }
      @media (max-width: 1150px) {
        .picture {
          display: none;
        }
      }
      tfoot th,
      tfoot td {
        position: sticky;
        bottom: 0;
        z-index: 2;
        background: var(--card);
      }
      .name {
        font-weight: 600;
      }
      .part {
        font-style: italic;
      }
      .shape {
        color: var(--soft);
        font-variant-numeric: tabular-nums;
      }
      .zero {
        color: var(--soft);
        opacity: 0.6;
      }
      .picture {
        width: 20%;
        min-width: 130px;
        vertical-align: middle;
      }
      .hidden {
        position: absolute;
        width: 1px;
        height: 1px;
        overflow: hidden;
        clip-path: inset(50%);
      }
      button {
        appearance: none;
        border: 0;
        background: none;
        padding: 0;
        margin: 0;
        font: inherit;
        text-align: inherit;
        color: inherit;
        cursor: pointer;
      }
      button:hover,
      [aria-sort="ascending"] button,
      [aria-sort="descending"] button {
        color: var(--ink);
      }
      .arrow {
        margin-left: 3px;
      }
    `,
  ];
}
