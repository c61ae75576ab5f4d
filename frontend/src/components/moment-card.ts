import { css, html, LitElement, nothing, type PropertyValues, type TemplateResult } from "lit";
import { customElement, property } from "lit/decorators.js";
import { ref } from "lit/directives/ref.js";
import { exactBytes, formatShape, formatShare, type Unit } from "../format/bytes";
import type { Fields } from "../format/records";
import type { Theme } from "../host/theme";
import { valueOf, type Load } from "../model/load";
import { CATEGORIES, GROUPINGS, type AliveItem, type Grouping, type Moment, type MomentGroup } from "../model/types";
import { categoryFill, LABELS } from "../style/palette";
import { base, card, fields, keys, scrolled, segments, tables } from "../style/shared";
import { formatTick } from "../views/curves";
import { counted, phaseLabel, shortened } from "../views/words";
import { bars, stack, stackLabel } from "./bar";
import { choose } from "./choose";
import { bytes, plainBytes } from "./figure";
import { ITEM_COLUMNS, itemTable } from "./item-rows";
import "./export-menu";
import { ROW_HEIGHT, RowWindow } from "./row-window";
import "./treemap";

const NAMES: Record<Grouping | "each", string> = {
  layer: "Layer",
  op: "Op",
  category: "Category",
  shape: "Shape",
  each: "Each buffer",
};
const GROUP_COLUMNS = 5;

/**
 * Everything alive at one moment of a step, as a treemap and as a table: added up by layer, op, category or shape, or each
 * buffer alone. Nothing is left out.
 */
@customElement("memest-moment-card")
export class MomentCard extends LitElement {
  @property({ attribute: false }) moment: Load<Moment> = { state: "idle" };
  @property() run = "";
  /** Phase of the predicted timeline that the moment is of; null for a profile. */
  @property() phase: string | null = null;
  /** Whether a moment was chosen, and not the peak that is shown without. */
  @property({ type: Boolean }) chosen = false;
  @property() by: Grouping | "each" = "layer";
  /** Key of the group that is looked into; empty for none. */
  @property() group = "";
  @property() unit: Unit = "GiB";
  @property() theme: Theme = "light";

  readonly #window = new RowWindow(this);
  #groups: readonly MomentGroup[] = [];
  #items: readonly AliveItem[] = [];
  #opened: MomentGroup | undefined;

  override willUpdate(changed: PropertyValues): void {
    if (!["moment", "by", "group"].some((name) => changed.has(name))) {
      return;
    }
    const moment = valueOf(this.moment);
    this.#groups = moment?.groups ?? [];
    this.#opened = this.#groups.find(({ key }) => key === this.group);
    const shown = this.#opened ? [this.#opened] : this.by === "each" ? this.#groups : [];
    this.#items = shown.flatMap(({ items }) => items).sort((a, b) => b.all_bytes - a.all_bytes);
    this.#window.count = this.#lists ? this.#items.length : this.#groups.length;
  }

  /** Whether single buffers are listed. */
  get #lists(): boolean {
    return this.by === "each" || this.#opened !== undefined;
  }

  override render(): TemplateResult {
    const moment = valueOf(this.moment);
    return html`
      <header>
        <h2>${this.chosen ? "Alive at the chosen moment" : "Alive at the peak"}</h2>
        <span class="soft" aria-live="polite" data-testid="moment-words"
          >${moment ? this.#words(moment) : nothing}</span
        >
        ${
          this.chosen
            ? html`<button type="button" class="link" @click=${() => choose(this, { moment: "" })}>To the peak</button>`
            : nothing
        }
        <div class="controls">
          <div class="segments" role="group" aria-label="What is alive, added up by">
            ${[...GROUPINGS, "each" as const].map(
              (by) =>
                html`<button
                  type="button"
                  aria-pressed=${by === this.by ? "true" : "false"}
                  @click=${() => choose(this, { by: by === "layer" ? "" : by })}
                >
                  ${NAMES[by]}
                </button>`,
            )}
          </div>
          ${
            moment
              ? html`<memest-export-menu
                  data-testid="alive-export"
                  run=${this.run}
                  name="alive"
                  .records=${() => aliveRecords(moment)}
                  .picture=${() => this.renderRoot.querySelector("memest-treemap")?.picture() ?? null}
                ></memest-export-menu>`
              : nothing
          }
        </div>
      </header>
      ${this.#body(moment)}
    `;
  }

  #words(moment: Moment): TemplateResult {
    const where = this.phase === null ? "of the profile" : `of the predicted ${phaseLabel(this.phase).toLowerCase()}`;
    return html`${bytes(moment.bytes, this.unit)} in ${counted(moment.count, "buffer")}, after
      ${formatTick(moment.tick, moment.unit)} ${where}, <code title=${moment.op}>${shortened(moment.op, 80)}</code>`;
  }

  #body(moment: Moment | undefined): TemplateResult {
    if (this.moment.state === "failed") {
      return html`<p class="failed" role="alert">${this.moment.message}</p>`;
    }
    if (!moment) {
      return html`<p class="soft waiting">Loading …</p>`;
    }
    if (moment.groups.length === 0) {
      return html`<p class="soft">Nothing is alive here.</p>`;
    }
    const opened = this.#opened;
    const groups = this.#lists ? this.#items.map((item) => alone(item)) : this.#groups;
    const whole = opened?.bytes ?? moment.bytes;
    return html`
      ${
        opened
          ? html`<p class="path">
              <button type="button" class="link" @click=${() => choose(this, { group: "" })}>← All</button>
              <b>${this.#name(opened.key)}</b> ${bytes(opened.bytes, this.unit)},
              ${formatShare(opened.bytes, moment.bytes)} of everything alive
            </p>`
          : nothing
      }
      <div class="both">
        <div>
          <memest-treemap
            data-testid="treemap"
            .groups=${groups}
            .whole=${whole}
            ?opens=${!this.#lists}
            label="Treemap of what is alive by ${NAMES[this.by].toLowerCase()}; arrow keys go from one to the next"
            .unit=${this.unit}
            .theme=${this.theme}
            @open-group=${(event: CustomEvent<string>) => choose(this, { group: event.detail })}
          ></memest-treemap>
          ${this.#key(moment)}
        </div>
        <div class="scroller" ${ref(this.#window.scroller)}>
          ${this.#lists ? this.#itemRows(whole) : this.#groupRows(moment)}
        </div>
      </div>
    `;
  }

  #key(moment: Moment): TemplateResult {
    const there = new Set(moment.groups.flatMap(({ categories }) => Object.keys(categories)));
    return html`<ul class="key">
      ${CATEGORIES.filter((category) => there.has(category)).map(
        (category) =>
          html`<li><span class="swatch" style="background:${categoryFill(category)}"></span>${LABELS[category]}</li>`,
      )}
    </ul>`;
  }

  #itemRows(whole: number): TemplateResult {
    const { first, end } = this.#window.range;
    return itemTable(this.#items.slice(first, end), whole, this.unit, {
      first,
      before: this.#window.before(ITEM_COLUMNS),
      after: this.#window.after(ITEM_COLUMNS),
    });
  }

  #groupRows(moment: Moment): TemplateResult {
    const { first, end } = this.#window.range;
    const largest = this.#groups[0]?.bytes ?? 1;
    return html`<table data-testid="group-table" aria-label="What is alive, by ${NAMES[moment.by].toLowerCase()}">
      <thead>
        <tr>
          <th scope="col">${NAMES[moment.by]}</th>
          <th scope="col" class="number">Held</th>
          <th scope="col" class="number">Share</th>
          <th scope="col" class="number">Buffers</th>
          <th scope="col" class="wide">Categories</th>
        </tr>
      </thead>
      <tbody>
        ${this.#window.before(GROUP_COLUMNS)}
        ${this.#groups.slice(first, end).map((group) => this.#groupRow(group, moment.bytes, largest))}
        ${this.#window.after(GROUP_COLUMNS)}
      </tbody>
    </table>`;
  }

  #groupRow(group: MomentGroup, whole: number, largest: number): TemplateResult {
    const parts = CATEGORIES.flatMap((category) => {
      const held = group.categories[category];
      return held ? [{ category, bytes: held }] : [];
    });
    return html`<tr data-testid="group-row" data-key=${group.key}>
      <th scope="row">
        <button type="button" class="link" @click=${() => choose(this, { group: group.key })}>
          ${this.#name(group.key)}
        </button>
      </th>
      <td class="number" data-column="held" data-bytes=${group.bytes} title=${exactBytes(group.bytes)}>
        ${plainBytes(group.bytes, this.unit)}
      </td>
      <td class="number">${formatShare(group.bytes, whole)}</td>
      <td class="number">${group.count.toLocaleString("en-US")}</td>
      <td class="wide">
        <div class="bar" role="img" aria-label=${stackLabel(parts, this.unit)}>${stack(parts, largest, this.unit)}</div>
      </td>
    </tr>`;
  }

  #name(key: string): string {
    // What is on show may still be added up as before.
    return valueOf(this.moment)?.by === "category" ? LABELS[key as keyof typeof LABELS] : key;
  }

  static override styles = [
    base,
    card,
    fields,
    keys,
    segments,
    tables,
    scrolled,
    bars,
    css`
      .controls {
        display: flex;
        flex-wrap: wrap;
        align-items: center;
        gap: 8px;
      }
      .both {
        display: grid;
        gap: 12px 20px;
      }
      @media (min-width: 1200px) {
        .both {
          grid-template-columns: minmax(0, 1fr) minmax(0, 1fr);
        }
      }
      .scroller {
        overflow: auto;
        max-height: 350px;
        min-width: 0;
      }
      tbody tr {
        height: ${ROW_HEIGHT}px;
      }
      .wide {
        width: 34%;
        min-width: 110px;
      }
      td.wide {
        vertical-align: middle;
      }
      .path {
        margin: 0 0 10px;
      }
      .path .link {
        margin-right: 8px;
      }
      .failed {
        color: var(--bad);
      }
      .waiting {
        min-height: 350px;
      }
    `,
  ];
}

/** Every buffer that is alive, largest first; alike ones are one record. */
function aliveRecords({ groups }: Moment): Fields[] {
  return groups
    .flatMap(({ items }) => items)
    .sort((one, other) => other.all_bytes - one.all_bytes)
    .map(({ layer, name, category, role, variable, shape, dtype, requested_bytes, bytes, count, all_bytes }) => ({
      layer,
      name,
      category,
      role,
      variable,
      shape: shape ? formatShape(shape) : "",
      dtype,
      requested_bytes,
      bytes,
      count,
      all_bytes,
    }));
}

/** A buffer as a group of its own. */
function alone(item: AliveItem): MomentGroup {
  return {
    key: item.name,
    bytes: item.all_bytes,
    count: item.count,
    categories: { [item.category]: item.all_bytes },
    items: [item],
  };
}
