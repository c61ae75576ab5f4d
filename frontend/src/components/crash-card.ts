import { css, html, LitElement, nothing, type TemplateResult } from "lit";
import { customElement, property } from "lit/decorators.js";
import { formatShape, type Unit } from "../format/bytes";
import type { Crash } from "../model/types";
import { base, card, tables } from "../style/shared";
import { counted } from "../views/words";
import { bars } from "./bar";
import { bytes } from "./figure";
import { itemTable } from "./item-rows";

/** Why a run ran out of memory: what was asked for, whose it was, what was there already, and what to change. */
@customElement("memest-crash-card")
export class CrashCard extends LitElement {
  @property({ attribute: false }) crash!: Crash;
  @property() unit: Unit = "GiB";

  override render(): TemplateResult {
    const { crash, unit } = this;
    const size = (value: number | null): TemplateResult | null => (value === null ? null : bytes(value, unit));
    const tensor = crash.shape && html`${formatShape(crash.shape)} <span class="soft">${crash.dtype ?? ""}</span>`;
    return html`<section data-testid="crash" role="alert">
      <h2>Out of memory</h2>
      <p data-testid="crash-headline">${crash.headline}</p>
      <dl>
        ${fact("Failed op", crash.op && html`<code>${crash.op}</code>`)} ${fact("Asked for", size(crash.bytes))}
        ${fact("Tensor", tensor)} ${fact("Layer", crash.layer && html`<code>${crash.layer}</code>`)}
        ${fact("Variable", crash.variable && html`<code>${crash.variable}</code>`)}
        ${fact("Step", crash.step === null ? null : html`${crash.step}`)}
        ${fact("In use before", size(crash.in_use_bytes))} ${fact("Limit", size(crash.limit_bytes))}
        ${fact("Allocator", [crash.device, crash.allocator].filter(Boolean).join(" "))}
      </dl>
      ${crash.expectation ? html`<p data-testid="crash-expectation">${crash.expectation}</p>` : nothing}
      ${
        crash.advice.length
          ? html`<h3>What to change</h3>
              <ul data-testid="crash-advice">
                ${crash.advice.map((line) => html`<li>${line}</li>`)}
              </ul>`
          : nothing
      }
      ${crash.live.length ? this.#live() : nothing}
    </section>`;
  }

  #live(): TemplateResult {
    const { live, live_count, live_bytes, live_is_predicted } = this.crash;
    const rest = live_count - live.length;
    return html`<details>
      <summary>
        ${live_is_predicted ? "Alive at the predicted peak of this phase" : "Alive when it failed"}:
        ${counted(live_count, "item")}, ${bytes(live_bytes, this.unit)}
      </summary>
      <div class="scroller">${itemTable(live, live_bytes, this.unit)}</div>
      ${rest > 0 ? html`<p class="soft">And ${counted(rest, "smaller item")}.</p>` : nothing}
    </details>`;
  }

  static override styles = [
    base,
    card,
    tables,
    bars,
    css`
      :host {
        border-color: var(--bad);
      }
      h2 {
        color: var(--bad);
      }
      h3 {
        font-size: 13px;
        font-weight: 600;
        margin: 10px 0 4px;
      }
      p {
        margin: 4px 0 8px;
        max-width: 110ch;
      }
      dl {
        display: grid;
        grid-template-columns: repeat(auto-fill, minmax(220px, 1fr));
        gap: 6px 18px;
        margin: 8px 0;
      }
      dl div {
        min-width: 0;
      }
      dt {
        color: var(--soft);
        font-size: 12px;
      }
      dd {
        margin: 0;
        overflow-wrap: anywhere;
      }
      ul {
        margin: 0 0 10px;
        padding-left: 18px;
        max-width: 110ch;
      }
      summary {
        cursor: pointer;
      }
      .scroller {
        overflow-x: auto;
        margin-top: 8px;
      }
    `,
  ];
}

function fact(name: string, value: TemplateResult | string | null): TemplateResult | typeof nothing {
  return value
    ? html`<div>
        <dt>${name}</dt>
        <dd>${value}</dd>
      </div>`
    : nothing;
}
