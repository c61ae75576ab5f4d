import { css, html, LitElement, nothing, type TemplateResult } from "lit";
import { customElement, property } from "lit/decorators.js";
import type { Unit } from "../format/bytes";
import type { Advice, Lever } from "../model/types";
import { base, card, tables } from "../style/shared";
import { bytes } from "./figure";

/** What to change so that the training needs less: each change as it was estimated on this model, and what does not help. */
@customElement("memest-advice-card")
export class AdviceCard extends LitElement {
  @property({ attribute: false }) advice!: Advice;
  @property() unit: Unit = "GiB";

  override render(): TemplateResult {
    const { needs_bytes, limit_bytes, fits, levers, useless, max_batch_size, notes } = this.advice;
    return html`
      <header>
        <h2>What to change</h2>
        <span class="soft">
          needs ${bytes(needs_bytes, this.unit)} of
          ${bytes(limit_bytes, this.unit)}${fits ? ": it fits as it is" : ""}${
            max_batch_size === null
              ? nothing
              : html`; the largest batch that fits is
                  <span data-testid="advice-batch">${max_batch_size || "none"}</span>`
          }
        </span>
      </header>
      ${levers.length ? this.#levers(levers) : html`<p class="soft">No change that was tried saves any memory.</p>`}
      ${this.#combination()}
      ${
        useless.length || notes.length
          ? html`<h3>Does not help</h3>
              <ul>
                ${useless.map((lever) => html`<li data-testid="advice-useless">${lever.title}: ${lever.reason}</li>`)}
                ${notes.map((note) => html`<li>${note}</li>`)}
              </ul>`
          : nothing
      }
    `;
  }

  #levers(levers: readonly Lever[]): TemplateResult {
    return html`<table>
      <thead>
        <tr>
          <th scope="col">Change</th>
          <th scope="col" class="number">Peak then</th>
          <th scope="col" class="number">Saves</th>
          <th scope="col">Fits</th>
          <th scope="col">Cost</th>
          <th scope="col">How</th>
        </tr>
      </thead>
      <tbody>
        ${levers.map(
          (lever) =>
            html`<tr data-testid="advice-lever" data-name=${lever.name}>
              <th scope="row">${lever.title}</th>
              <td class="number">${bytes(lever.peak_bytes, this.unit)}</td>
              <td class="number">${bytes(lever.saving_bytes, this.unit)}</td>
              <td>${lever.fits ? "yes" : "no"}</td>
              <td class="why">${lever.cost}</td>
              <td class="why"><code>${lever.code}</code></td>
            </tr>`,
        )}
      </tbody>
    </table>`;
  }

  #combination(): TemplateResult | typeof nothing {
    const { combination, levers } = this.advice;
    if (!combination || combination.names.length < 2) {
      return nothing;
    }
    const titles = combination.names.map((name) => levers.find((lever) => lever.name === name)?.title ?? name);
    return html`<p data-testid="advice-combination">
      Smallest set that fits: ${titles.join(" and ")}; then it needs ${bytes(combination.needs_bytes, this.unit)}.
    </p>`;
  }

  static override styles = [
    base,
    card,
    tables,
    css`
      :host {
        overflow-x: auto;
      }
      h3 {
        font-size: 13px;
        font-weight: 600;
        margin: 18px 0 4px;
      }
      th[scope="row"] {
        min-width: 180px;
      }
      .why {
        color: var(--soft);
        min-width: 180px;
        text-wrap: pretty;
      }
      .why code {
        color: var(--ink);
        white-space: pre-wrap;
      }
      ul {
        margin: 0;
        padding-left: 18px;
        max-width: 100ch;
      }
      li {
        margin: 3px 0;
      }
    `,
  ];
}
