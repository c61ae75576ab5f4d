import { css, html, LitElement, nothing, type PropertyValues, type TemplateResult } from "lit";
import { customElement, property } from "lit/decorators.js";
import { ref } from "lit/directives/ref.js";
import type { Unit } from "../format/bytes";
import { valueOf, type Load } from "../model/load";
import type { ItemsAnswer } from "../model/types";
import { base, card, segments, tables } from "../style/shared";
import { counted, phaseLabel } from "../views/words";
import { bars } from "./bar";
import { choose } from "./choose";
import { bytes } from "./figure";
import { ITEM_COLUMNS, itemTable } from "./item-rows";
import { ROW_HEIGHT, RowWindow } from "./row-window";

/** Everything alive at the peak of a phase, asked for only when opened. */
@customElement("memest-items-card")
export class ItemsCard extends LitElement {
  @property({ attribute: false }) phases: readonly string[] = [];
  /** What opens first. */
  @property() peakPhase = "step";
  @property() phase: string | null = null;
  @property({ attribute: false }) items: Load<ItemsAnswer> = { state: "idle" };
  @property() unit: Unit = "GiB";

  readonly #window = new RowWindow(this);

  override willUpdate(changed: PropertyValues): void {
    if (changed.has("items")) {
      this.#window.count = valueOf(this.items)?.items.length ?? 0;
    }
  }

  override render(): TemplateResult {
    const answer = valueOf(this.items);
    return html`<details
      ?open=${this.phase !== null}
      @toggle=${(event: Event) => this.#toggle(event)}
      data-testid="items"
    >
      <summary>
        <h2>Alive at the peak</h2>
        <span class="soft"
          >${
            answer
              ? html`${counted(answer.items.length, "item")}, ${bytes(answer.peak_bytes, this.unit)} together`
              : "every tensor and variable, largest first"
          }</span
        >
      </summary>
      ${this.phase === null ? nothing : this.#content(answer)}
    </details>`;
  }

  #content(answer: ItemsAnswer | undefined): TemplateResult {
    return html`
      <div class="segments" role="group" aria-label="Phase">
        ${this.phases.map(
          (name) =>
            html`<button
              type="button"
              aria-pressed=${name === this.phase ? "true" : "false"}
              @click=${() => choose(this, { items: name })}
            >
              ${phaseLabel(name)}
            </button>`,
        )}
      </div>
      ${
        this.items.state === "failed"
          ? html`<p class="failed" role="alert">${this.items.message}</p>`
          : html`<div class="scroller" ${ref(this.#window.scroller)}>
              ${answer ? this.#table(answer) : html`<p class="soft">Loading …</p>`}
            </div>`
      }
    `;
  }

  #table({ items, peak_bytes }: ItemsAnswer): TemplateResult {
    const { first, end } = this.#window.range;
    return itemTable(items.slice(first, end), peak_bytes, this.unit, {
      first,
      before: this.#window.before(ITEM_COLUMNS),
      after: this.#window.after(ITEM_COLUMNS),
    });
  }

  #toggle(event: Event): void {
    const { open } = event.target as HTMLDetailsElement;
    if (open !== (this.phase !== null)) {
      choose(this, { items: open ? this.peakPhase : "" });
    }
  }

  static override styles = [
    base,
    card,
    segments,
    tables,
    bars,
    css`
      summary {
        cursor: pointer;
      }
      summary h2 {
        display: inline;
        margin-right: 8px;
      }
      summary .soft {
        font-size: 12px;
      }
      .segments {
        margin-top: 12px;
      }
      .scroller {
        overflow: auto;
        max-height: min(560px, 70vh);
        margin-top: 10px;
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
        background: var(--card);
        z-index: 1;
      }
      .failed {
        color: var(--bad);
      }
    `,
  ];
}
