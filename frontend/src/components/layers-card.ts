import { css, html, LitElement, nothing, type PropertyValues, type TemplateResult } from "lit";
import { customElement, property } from "lit/decorators.js";
import { joined, parted, type Place } from "../model/place";
import { CATEGORIES, type Estimate } from "../model/types";
import { LABELS } from "../style/palette";
import { base, card, fields, segments } from "../style/shared";
import { COLUMN_LABELS, columnsOf, layerRecords, shownColumns, type Column } from "../views/layer-columns";
import { FOLDS, isOpen, LayerTree, toggled, type Filter, type Folds, type TreeRow } from "../views/layer-tree";
import { filterOf, SIZES, sortingOf } from "../views/layer-view";
import { counted, phaseLabel } from "../views/words";
import { choose } from "./choose";
import "./layer-table";
import "./menu";
import "./export-menu";
import "./term";

/** Every layer with its bytes at the peak, nested ones as a tree; what is on show of it is chosen here. */
@customElement("memest-layers-card")
export class LayersCard extends LitElement {
  @property({ attribute: false }) estimate!: Estimate;
  @property({ attribute: false }) place!: Place;
  @property() run = "";

  #tree = new LayerTree([], []);
  #available: Column[] = [];
  #rows: TreeRow[] = [];
  /** The layer to scroll to as soon as it is among the rows. */
  #wanted = "";

  override willUpdate(changed: PropertyValues): void {
    if (changed.has("estimate")) {
      this.#tree = new LayerTree(this.estimate.layers, this.estimate.groups);
      this.#available = columnsOf(this.estimate);
    }
    const { place } = this;
    const sorting = sortingOf(place);
    const filter = filterOf(place);
    const folds = this.#folds();
    this.#rows =
      place.tree === "list"
        ? this.#tree.list(sorting, filter)
        : this.#tree.rows((path) => isOpen(this.#tree, folds, path), sorting, filter);
  }

  override updated(changed: PropertyValues<this>): void {
    if (changed.has("place") && this.place.layer && this.place.layer !== changed.get("place")?.layer) {
      this.#wanted = this.place.layer;
      this.#uncover(this.#wanted);
    }
    if (this.#wanted && this.#rows.some(({ path }) => path === this.#wanted)) {
      const table = this.renderRoot.querySelector("memest-layer-table")!;
      const path = this.#wanted;
      this.#wanted = "";
      void table.updateComplete.then(() => table.reveal(path));
    }
  }

  override render(): TemplateResult {
    const { place, estimate } = this;
    const layers = estimate.layers.filter((layer) => layer.class_name).length;
    const shown = this.#rows.filter(({ kind }) => kind !== "group").length;
    const filtered = isFiltering(filterOf(place));
    return html`
      <header>
        <h2><memest-term word="layers">Layers</memest-term></h2>
        <span class="soft" role="status"
          >${counted(layers, "layer")}, bytes at the peak of the
          ${phaseLabel(estimate.peak_phase).toLowerCase()}${
            filtered
              ? html`; <b data-testid="layers-shown">${counted(shown, "row")}</b> of ${this.#tree.size} on show`
              : nothing
          }</span
        >
        <memest-export-menu
          class="controls"
          data-testid="layers-export"
          run=${this.run}
          name="layers"
          .records=${() => layerRecords(this.#tree.list(sortingOf(place), filterOf(place)), this.#available)}
          ><p class="soft">Every layer that the filter lets through, folded or not.</p></memest-export-menu
        >
      </header>
      ${this.#tools()}
      <memest-layer-table
        .rows=${this.#rows}
        .total=${estimate.total}
        .columns=${this.#columns()}
        .sorting=${sortingOf(place)}
        .selected=${place.layer}
        .unit=${place.unit}
        @fold=${(event: CustomEvent<string>) => choose(this, toggled(this.#folds(), event.detail))}
        @sort=${(event: CustomEvent<string>) => choose(this, { sort: event.detail })}
      ></memest-layer-table>
      ${
        this.#rows.length === 0
          ? html`<p class="soft" data-testid="layers-none">
              No layer is like that.
              <button type="button" class="link" @click=${() => choose(this, NO_FILTER)}>Show all again</button>
            </p>`
          : nothing
      }
    `;
  }

  #tools(): TemplateResult {
    const { place } = this;
    const flat = place.tree === "list";
    const categories = CATEGORIES.filter((category) => this.#available.includes(category));
    return html`<div class="tools">
      <input
        type="search"
        aria-label="Find layers by name or class"
        placeholder="Find a layer or class"
        data-testid="layers-find"
        .value=${place.find}
        @input=${(event: Event) => choose(this, { find: (event.target as HTMLInputElement).value })}
      />
      <select
        aria-label="Only layers with this category"
        data-testid="layers-category"
        @change=${(event: Event) => choose(this, { category: (event.target as HTMLSelectElement).value })}
      >
        <option value="" ?selected=${place.category === ""}>any category</option>
        ${categories.map(
          (category) =>
            html`<option value=${category} ?selected=${category === place.category}>with ${LABELS[category]}</option>`,
        )}
      </select>
      <select
        aria-label="Only layers of at least this size"
        data-testid="layers-least"
        @change=${(event: Event) => choose(this, { least: (event.target as HTMLSelectElement).value })}
      >
        <option value="" ?selected=${place.least === ""}>any size</option>
        ${SIZES.map(
          ({ text, label }) => html`<option value=${text} ?selected=${text === place.least}>${label} or more</option>`,
        )}
      </select>
      ${
        isFiltering(filterOf(place))
          ? html`<button type="button" class="link" @click=${() => choose(this, NO_FILTER)}>Show all</button>`
          : nothing
      }
      <span class="gap"></span>
      ${
        this.#tree.groups.length
          ? html`<div class="segments" role="group" aria-label="Layers as">
                <button
                  type="button"
                  aria-pressed=${flat ? "false" : "true"}
                  @click=${() => choose(this, { tree: "" })}
                >
                  Tree
                </button>
                <button
                  type="button"
                  aria-pressed=${flat ? "true" : "false"}
                  @click=${() => choose(this, { tree: "list" })}
                >
                  List
                </button>
              </div>
              <div class="segments">
                <button type="button" ?disabled=${flat} @click=${() => choose(this, { unfold: "all", folds: "" })}>
                  Unfold all
                </button>
                <button type="button" ?disabled=${flat} @click=${() => choose(this, { unfold: "none", folds: "" })}>
                  Fold all
                </button>
              </div>`
          : nothing
      }
      <memest-menu label="Columns, ${this.#columns().length} of ${this.#available.length}" data-testid="layers-columns"
        >${this.#columnChoice()}</memest-menu
      >
    </div>`;
  }

  #columnChoice(): TemplateResult {
    const shown = this.#columns();
    return html`<fieldset class="choice">
      <legend>Columns</legend>
      ${this.#available.map(
        (column) =>
          html`<label>
            <input
              type="checkbox"
              name=${column}
              .checked=${shown.includes(column)}
              @change=${(event: Event) => this.#chooseColumn(column, (event.target as HTMLInputElement).checked)}
            />
            ${COLUMN_LABELS[column]}
          </label>`,
      )}
      <button type="button" class="link" @click=${() => choose(this, { columns: "" })}>The usual ones</button>
      <button type="button" class="link" @click=${() => choose(this, { columns: joined(this.#available) })}>All</button>
    </fieldset>`;
  }

  #columns(): Column[] {
    const { place } = this;
    return shownColumns(this.estimate, this.#available, parted(place.columns), [place.category, sortingOf(place).key]);
  }

  #chooseColumn(column: Column, on: boolean): void {
    const now = this.#columns();
    const next = on
      ? this.#available.filter((one) => one === column || now.includes(one))
      : now.filter((one) => one !== column);
    choose(this, { columns: joined(next) });
  }

  #folds(): Folds {
    return { unfold: FOLDS.find((one) => one === this.place.unfold) ?? "", folds: this.place.folds };
  }

  /** Makes a layer that was linked to visible: unfolds what it lies in, and takes away a filter that hides it. */
  #uncover(path: string): void {
    let folds = this.#folds();
    for (const group of this.#tree.around(path)) {
      if (!isOpen(this.#tree, folds, group) && group !== path) {
        folds = toggled(folds, group);
      }
    }
    const passes = this.#tree.list(sortingOf(this.place), filterOf(this.place)).some((row) => row.path === path);
    choose(this, passes ? folds : { ...folds, ...NO_FILTER });
  }

  static override styles = [
    base,
    card,
    fields,
    segments,
    css`
      :host {
        display: flex;
        flex-direction: column;
      }
      .tools {
        display: flex;
        flex-wrap: wrap;
        align-items: center;
        gap: 8px;
        margin-bottom: 10px;
      }
      .tools input[type="search"] {
        width: 220px;
      }
      .gap {
        flex: 1;
      }
      .choice {
        display: grid;
        gap: 4px;
        border: 0;
        margin: 0;
        padding: 0;
        justify-items: start;
      }
      .choice legend {
        font-weight: 600;
        padding: 0 0 4px;
      }
      memest-export-menu p {
        margin: 4px 0 0;
        font-size: 12px;
        max-width: 26ch;
      }
    `,
  ];
}

const NO_FILTER = { find: "", category: "", least: "" };

const isFiltering = ({ find, category, least }: Filter): boolean => find !== "" || category !== "" || least > 0;
