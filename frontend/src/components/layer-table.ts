import { css, html, LitElement, nothing, type PropertyValues, type TemplateResult } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import { guard } from "lit/directives/guard.js";
import { ref } from "lit/directives/ref.js";
import { repeat } from "lit/directives/repeat.js";
import { styleMap } from "lit/directives/style-map.js";
import { exactBytes, formatShape, formatShare, grouped, type Unit } from "../format/bytes";
import { type Bytes, type BytesPerCategory, type Category, type Total } from "../model/types";
import { categoryFill } from "../style/palette";
import { base, fields, scrolled, tables } from "../style/shared";
import { COLUMN_LABELS, isCategory, sortKeyOf, type Column } from "../views/layer-columns";
import { nextSorting, type Sorting, type SortKey, type TreeRow } from "../views/layer-tree";
import { sortText } from "../views/layer-view";
import { segmentsOf } from "../views/phases";
import { meaning } from "../views/terms";
import { bars, stack, stackLabel } from "./bar";
import { choose } from "./choose";
import { plainBytes } from "./figure";
import { ROW_HEIGHT, RowWindow } from "./row-window";

/** Pixels of a column; those that are not named hold bytes, and the layers' names what is left. */
const WIDTHS: Partial<Record<Column, number>> = { output: 150, picture: 160, share: 70, difference: 150 };
const NAME_WIDTH = 280;

/** What a row of figures holds: a layer, a group or the total. */
type Figures = Pick<
  TreeRow,
  "parameters" | "bytes_per_category" | "bytes_at_peak" | "measured_bytes" | "difference_bytes"
>;

/**
 * Rows of layers as a tree with a total that is the peak.
 *
 * One row at a time can be reached with the tabulator; arrow keys go from row to row, fold and unfold. Fires `fold`
 * (detail: path of a group) and `sort` (detail: text for the address).
 */
@customElement("memest-layer-table")
export class LayerTable extends LitElement {
  @property({ attribute: false }) rows: readonly TreeRow[] = [];
  @property({ attribute: false }) total!: Total;
  @property({ attribute: false }) columns: readonly Column[] = [];
  @property({ attribute: false }) sorting: Sorting = { key: "total", descending: true };
  /** Path of the layer that was linked to. */
  @property() selected = "";
  @property() unit: Unit = "GiB";
  /** Key of the row that the keyboard is on. */
  @state() private current = "";

  readonly #window = new RowWindow(this);

  override willUpdate(changed: PropertyValues): void {
    if (changed.has("rows")) {
      this.#window.count = this.rows.length;
    }
  }

  /** Scrolls to a layer. */
  reveal(path: string): void {
    const index = this.rows.findIndex((row) => row.path === path);
    if (index >= 0) {
      this.#window.show(index);
    }
  }

  override render(): TemplateResult {
    const { rows, columns } = this;
    const { first, end } = this.#window.range;
    const width = columns.length + 1;
    const reachable = rows.some(({ key }) => key === this.current) ? this.current : rows[0]?.key;
    return html`
      <div class="scroller" ${ref(this.#window.scroller)}>
        <table
          class=${this.#window.partial ? "partial" : ""}
          role="treegrid"
          aria-label="Layers"
          aria-rowcount=${rows.length + 2}
          data-testid="layer-table"
          @keydown=${(event: KeyboardEvent) => this.#key(event)}
        >
          ${this.#window.partial ? this.#widths() : nothing}
          <thead>
            <tr>
              ${this.#head("model", "Layer")} ${columns.map((column) => this.#columnHead(column))}
            </tr>
          </thead>
          <tbody>
            ${this.#window.before(width)}
            ${repeat(
              rows.slice(first, end),
              ({ key }) => key,
              // While one scrolls, only rows that come into the page are made.
              (row, n) => {
                const [focusable, selected] = [row.key === reachable, row.path === this.selected];
                return guard([row, first + n, focusable, selected, columns, this.total, this.unit], () =>
                  this.#row(row, first + n, focusable),
                );
              },
            )}
            ${this.#window.after(width)}
          </tbody>
          <tfoot>
            <tr data-testid="layer-total" aria-rowindex=${rows.length + 2}>
              <th scope="row">Total</th>
              ${columns.map((column) => this.#cell(column, this.total))}
            </tr>
          </tfoot>
        </table>
      </div>
    `;
  }

  /** Widths that do not depend on the rows in the page: columns would move while one scrolls. */
  #widths(): TemplateResult {
    const widths = this.columns.map((column) => WIDTHS[column] ?? (this.unit === "B" ? 135 : 110));
    return html`<colgroup>
      <col style="width:max(${NAME_WIDTH}px, 100cqw - ${widths.reduce((sum, width) => sum + width, 0)}px)" />
      ${widths.map((width) => html`<col style="width:${width}px" />`)}
    </colgroup>`;
  }

  #columnHead(column: Column): TemplateResult {
    const key = sortKeyOf(column);
    const label = isCategory(column) ? categoryHead(column) : COLUMN_LABELS[column];
    return key === null
      ? html`<th scope="col" class=${column}>${label}</th>`
      : this.#head(key, label, column === "share" ? "" : "number");
  }

  #head(key: SortKey, label: TemplateResult | string, kind = ""): TemplateResult {
    const { key: now, descending } = this.sorting;
    const order = now === key && kind !== "" ? (descending ? "descending" : "ascending") : "none";
    const modelOrder = key === "model" && now === key;
    return html`<th scope="col" class=${kind || (key === "model" ? "" : "number")} aria-sort=${order}>
      <button
        type="button"
        class="bare"
        data-sort=${key}
        @click=${() => this.#fire("sort", sortText(nextSorting(this.sorting, key)))}
      >
        ${label}${
          order === "none" && !modelOrder
            ? nothing
            : html`<span class="arrow" aria-hidden="true">${descending === (key !== "model") ? "↓" : "↑"}</span>`
        }
      </button>
    </th>`;
  }

  #row(row: TreeRow, index: number, reachable: boolean): TemplateResult {
    const group = row.kind === "group";
    return html`<tr
      data-testid=${group ? "layer-group" : "layer-row"}
      data-path=${row.path}
      data-kind=${row.kind}
      data-index=${index}
      class=${row.path === this.selected ? "selected" : ""}
      aria-rowindex=${index + 2}
      aria-level=${row.depth + 1}
      aria-expanded=${group ? String(row.open) : nothing}
      aria-selected=${row.path === this.selected ? "true" : "false"}
      tabindex=${reachable ? 0 : -1}
      @focus=${() => (this.current = row.key)}
      @click=${() => (this.current = row.key)}
    >
      <th scope="row" title=${meaning(row.path) ?? row.path} style=${styleMap({ "--depth": row.depth })}>
        ${
          group
            ? html`<button
                type="button"
                class="fold bare"
                tabindex="-1"
                aria-label=${row.open ? `Fold ${row.name}` : `Unfold ${row.name}`}
                @click=${() => this.#fire("fold", row.path)}
              >
                <span class="chevron ${row.open ? "open" : ""}" aria-hidden="true">▸</span>
              </button>`
            : html`<span class="fold"></span>`
        }<span class=${row.class_name && row.kind !== "own" ? "name" : group ? "name" : "part"}>${row.name}</span>
        <span class="soft">${row.kind === "own" ? "" : row.class_name}</span>
        ${group && !row.open ? html`<span class="count">${row.layers}</span>` : nothing}
      </th>
      ${this.columns.map((column) =>
        column === "output"
          ? html`<td class="output">
              ${row.output_shape && row.kind !== "own" ? formatShape(row.output_shape) : nothing}
            </td>`
          : this.#cell(column, row),
      )}
    </tr>`;
  }

  #cell(column: Column, figures: Figures): TemplateResult {
    switch (column) {
      case "output":
        return html`<td></td>`;
      case "parameters":
        return html`<td class="number ${figures.parameters ? "" : "zero"}" data-column="parameters">
          ${figures.parameters ? grouped(figures.parameters) : "–"}
        </td>`;
      case "picture":
        return html`<td class="picture">${this.#picture(figures.bytes_per_category)}</td>`;
      case "share":
        return html`<td class="number">${formatShare(figures.bytes_at_peak, this.total.bytes_at_peak)}</td>`;
      case "total":
        return this.#bytes(column, figures.bytes_at_peak);
      case "measured":
        return this.#bytes(column, figures.measured_bytes);
      case "difference":
        return this.#bytes(column, figures.difference_bytes);
      default:
        return this.#bytes(column, figures.bytes_per_category[column] ?? 0);
    }
  }

  #picture(categories: BytesPerCategory): TemplateResult {
    const segments = segmentsOf(categories);
    return html`<div class="bar" role="img" aria-label=${stackLabel(segments, this.unit) || "nothing"}>
      ${stack(segments, this.total.bytes_at_peak || 1, this.unit)}
    </div>`;
  }

  #bytes(column: Column, value: Bytes | null | undefined): TemplateResult {
    if (value === null || value === undefined) {
      return html`<td class="number zero" data-column=${column} title="not measured">·</td>`;
    }
    return html`<td
      class="number ${value === 0 ? "zero" : ""} ${column === "difference" && value !== 0 ? "difference" : ""}"
      data-testid="layer-cell"
      data-column=${column}
      data-bytes=${value}
      title=${exactBytes(value)}
    >
      ${value === 0 ? "–" : html`${column === "difference" ? (value > 0 ? "+" : "−") : nothing}${plainBytes(Math.abs(value), this.unit)}`}
    </td>`;
  }

  #key(event: KeyboardEvent): void {
    const row = (event.target as Element).closest<HTMLElement>("tr[data-index]");
    if (!row) {
      return;
    }
    const index = Number(row.dataset["index"]);
    const { kind, open, path, depth } = this.rows[index]!;
    switch (event.key) {
      case "ArrowDown":
        this.#go(index + 1);
        break;
      case "ArrowUp":
        this.#go(index - 1);
        break;
      case "Home":
        this.#go(0);
        break;
      case "End":
        this.#go(this.rows.length - 1);
        break;
      case "ArrowRight":
        if (kind === "group" && !open) {
          this.#fire("fold", path);
        } else if (kind === "group") {
          this.#go(index + 1);
        }
        break;
      case "ArrowLeft":
        if (kind === "group" && open) {
          this.#fire("fold", path);
        } else {
          this.#go(this.rows.findLastIndex((one, n) => n < index && one.depth < depth));
        }
        break;
      case "Enter":
        choose(this, { layer: path === this.selected ? "" : path });
        break;
      default:
        return;
    }
    event.preventDefault();
  }

  /** Moves the keyboard to a row, which may have to come into the page first. */
  #go(index: number): void {
    const row = this.rows[index];
    if (!row) {
      return;
    }
    this.#window.show(index);
    this.current = row.key;
    const focus = (): boolean => {
      const element = this.renderRoot.querySelector<HTMLElement>(`tr[data-index="${index}"]`);
      element?.focus({ preventScroll: true });
      return element !== null;
    };
    if (!focus()) {
      requestAnimationFrame(() => requestAnimationFrame(focus));
    }
  }

  #fire(type: "fold" | "sort", detail: string): void {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }

  static override styles = [
    base,
    fields,
    tables,
    scrolled,
    bars,
    css`
      :host {
        display: flex;
        flex-direction: column;
      }
      .scroller {
        container-type: inline-size;
        overflow: auto;
        max-height: min(640px, 80vh);
        margin: 0 -6px;
        /* A shadow on the right as long as there is more behind it: what scrolls along covers it at the end. */
        background:
          linear-gradient(to left, var(--card) 12px, transparent) right / 36px 100% no-repeat local,
          linear-gradient(to left, var(--edge), transparent) right / 14px 100% no-repeat scroll;
      }
      table {
        border-collapse: separate;
        border-spacing: 0;
      }
      tbody tr {
        height: ${ROW_HEIGHT}px;
      }
      .partial {
        table-layout: fixed;
        width: max-content;
      }
      .partial :is(th[scope="row"], .output) {
        overflow: hidden;
        text-overflow: ellipsis;
      }
      thead th {
        border-bottom-color: var(--edge);
      }
      thead th.number {
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
      th[scope="row"] {
        padding-left: calc(4px + var(--depth, 0) * 16px);
      }
      span.fold,
      button.fold {
        display: inline-block;
        width: 16px;
        text-align: center;
        color: var(--soft);
      }
      .chevron {
        display: inline-block;
        transition: transform 0.1s;
      }
      .chevron.open {
        transform: rotate(90deg);
      }
      .count {
        color: var(--soft);
        background: var(--track);
        border-radius: 8px;
        padding: 0 7px;
        font-size: 11px;
      }
      .selected > * {
        background: var(--accent-wash) !important;
      }
      .difference {
        color: var(--warn);
      }
      tr:focus-visible {
        outline: 2px solid var(--accent);
        outline-offset: -2px;
      }
      .output {
        color: var(--soft);
        font-variant-numeric: tabular-nums;
      }
      .zero {
        color: var(--soft);
      }
      .picture {
        width: 20%;
        min-width: 130px;
      }
      td.picture {
        vertical-align: middle;
      }
      button:hover,
      [aria-sort="ascending"] button,
      [aria-sort="descending"] button {
        color: var(--ink);
      }
      .arrow {
        margin-left: 3px;
      }
      .together {
        white-space: nowrap;
      }
    `,
  ];
}

declare global {
  interface HTMLElementTagNameMap {
    "memest-layer-table": LayerTable;
  }
}

/** The colour stays beside the first word of its name. */
function categoryHead(category: Category): TemplateResult {
  const [first, ...rest] = COLUMN_LABELS[category].split(" ");
  return html`<span class="together"
      ><span class="swatch" style="background:${categoryFill(category)}"></span>${first}</span
    >
    ${rest.join(" ")}`;
}
