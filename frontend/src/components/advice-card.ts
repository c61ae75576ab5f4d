import { css, html, LitElement, nothing, type TemplateResult } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import type { Unit } from "../format/bytes";
import type { Advice, Lever } from "../model/types";
import { base, card, tables } from "../style/shared";
import { bars } from "./bar";
import { copied } from "./copied";
import { bytes, titleOf } from "./figure";

/** What to change so that the training needs less: each change as it was estimated on this model, and what does not help. */
@customElement("memest-advice-card")
export class AdviceCard extends LitElement {
  @property({ attribute: false }) advice!: Advice;
  @property() unit: Unit = "GiB";
  /** The change whose code was copied last. */
  @state() private copied: string | null = null;

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
          <th scope="col" class="track">Before and after</th>
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
              <td class="track">${this.#bar(lever)}</td>
              <td class="number">${bytes(lever.peak_bytes, this.unit)}</td>
              <td class="number">${this.#saving(lever)}</td>
              <td>${lever.fits ? "yes" : "no"}</td>
              <td class="why">${lever.cost}</td>
              <td class="why">
                <code>${lever.code}</code>
                <button
                  type="button"
                  class="copy"
                  data-testid="copy-code"
                  aria-label="Copy the code of ${lever.title}"
                  @click=${() => void this.#copy(lever)}
                >
                  ${this.copied === lever.name ? "Copied" : "Copy"}
                </button>
              </td>
            </tr>`,
        )}
      </tbody>
    </table>`;
  }

  /** What the peak is now as the track, and what would be left of it as the bar. */
  #bar({ title, peak_bytes }: Lever): TemplateResult {
    const before = this.advice.peak_bytes;
    const max = Math.max(before, peak_bytes, 1);
    const label = `${titleOf("now", before, this.unit)}, ${titleOf("then", peak_bytes, this.unit)}`;
    return html`<div class="bar" role="img" aria-label="${title}: ${label}" title=${label}>
      <i class="before" style="width:${(before / max) * 100}%"></i>
      <i class="after" data-bytes=${peak_bytes} style="width:${(peak_bytes / max) * 100}%"></i>
    </div>`;
  }

  #saving({ saving_bytes, host_saving_bytes = 0 }: Lever): TemplateResult {
    return host_saving_bytes > 0 && saving_bytes === 0
      ? html`${bytes(host_saving_bytes, this.unit)} of the host`
      : bytes(saving_bytes, this.unit);
  }

  async #copy({ name, code }: Lever): Promise<void> {
    if (await copied(code)) {
      this.copied = name;
    }
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
    bars,
    css`
      :host {
        overflow-x: auto;
      }
      th.track,
      td.track {
        width: 16%;
        min-width: 100px;
      }
      td.track {
        vertical-align: middle;
      }
      .bar {
        background: none;
      }
      .before,
      .after {
        position: absolute;
        inset-block: 0;
        left: 0;
        border-radius: 2px;
      }
      .before {
        background: var(--track);
      }
      .after {
        background: var(--accent);
        min-width: 1px;
      }
      .copy {
        font: inherit;
        font-size: 11px;
        color: var(--accent);
        background: none;
        border: 1px solid var(--edge);
        border-radius: 4px;
        padding: 0 6px;
        margin-left: 6px;
        cursor: pointer;
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
