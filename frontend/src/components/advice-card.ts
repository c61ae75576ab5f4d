import { css, html, LitElement, nothing, type TemplateResult } from "lit";
import { customElement, property } from "lit/decorators.js";
import type { Unit } from "../format/bytes";
import type { Fields } from "../format/records";
import type { Advice, Lever } from "../model/types";
import { base, card, lists } from "../style/shared";
import { counted } from "../views/words";
import type { Change } from "./changes-table";
import "./changes-table";
import { bytes } from "./figure";
import "./export-menu";

/** Of the peak: what saves less is folded away at first, unless it decides whether the training fits. */
const LITTLE = 0.02;

/** What to change so that the training needs less: each change as it was estimated on this model, and what does not help. */
@customElement("memest-advice-card")
export class AdviceCard extends LitElement {
  @property({ attribute: false }) advice!: Advice;
  @property() run = "";
  @property() unit: Unit = "GiB";

  override render(): TemplateResult {
    const { needs_bytes, limit_bytes, fits, levers, useless, max_batch_size, notes } = this.advice;
    const [much, little] = this.#parted();
    return html`
      <header>
        <h2>What to change</h2>
        <span class="soft">
          needs ${bytes(needs_bytes, this.unit)} of
          ${bytes(limit_bytes, this.unit)}${fits ? ": it fits as it is" : ""}${
            max_batch_size === null
              ? nothing
              : html`;
                  <span data-testid="advice-batch"
                    >${max_batch_size ? `the largest batch that fits is ${max_batch_size}` : "no batch is small enough"}</span
                  >`
          }
        </span>
        <memest-export-menu
          class="controls"
          data-testid="advice-export"
          run=${this.run}
          name="changes"
          .records=${() => [...levers, ...useless].map(changeRecord)}
        ></memest-export-menu>
      </header>
      ${levers.length ? nothing : html`<p class="soft">No change that was tried saves any memory.</p>`}
      ${much.length ? this.#table(much) : nothing} ${this.#combination()}
      ${
        little.length
          ? html`<details data-testid="advice-little">
              <summary>
                ${counted(little.length, "change")} that ${little.length === 1 ? "saves" : "save"} little
              </summary>
              ${this.#table(little)}
            </details>`
          : nothing
      }
      ${
        useless.length
          ? html`<h3>Does not help</h3>
              <ul>
                ${useless.map((lever) => html`<li data-testid="advice-useless">${lever.title}: ${lever.reason}</li>`)}
              </ul>`
          : nothing
      }
      ${notes.map((note) => html`<p class="soft" data-testid="advice-note">${note}</p>`)}
    `;
  }

  /** What saves enough to be seen at first, and the rest. */
  #parted(): [Lever[], Lever[]] {
    const { fits, peak_bytes, levers } = this.advice;
    const isMuch = (lever: Lever): boolean =>
      lever.saving_bytes >= LITTLE * peak_bytes || (lever.host_saving_bytes ?? 0) > 0 || (!fits && lever.fits);
    return [levers.filter(isMuch), levers.filter((lever) => !isMuch(lever))];
  }

  #table(levers: readonly Lever[]): TemplateResult {
    return html`<memest-changes-table
      row="advice-lever"
      .changes=${levers.map((lever) => this.#change(lever))}
      .now=${this.advice.peak_bytes}
      .limit=${this.advice.limit_bytes}
      .unit=${this.unit}
    ></memest-changes-table>`;
  }

  #change({
    name,
    title,
    peak_bytes,
    saving_bytes,
    needs_bytes,
    host_saving_bytes = 0,
    fits,
    cost,
    code,
  }: Lever): Change {
    const saved =
      host_saving_bytes > 0 && saving_bytes === 0
        ? { saving_bytes: host_saving_bytes, saved_of: "the host" }
        : { saving_bytes };
    return { name, title, peak_bytes, needs_bytes, ...saved, fits, cost, code };
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
    lists,
    css`
      :host {
        overflow-x: auto;
      }
      p.soft {
        margin: 10px 0 0;
        max-width: 100ch;
      }
      details {
        margin-top: 10px;
      }
      summary {
        cursor: pointer;
        color: var(--soft);
      }
    `,
  ];
}

function changeRecord({ title, peak_bytes, needs_bytes, saving_bytes, fits, cost, code, reason }: Lever): Fields {
  return { change: title, peak_bytes, needs_bytes, saving_bytes, fits, cost, does_not_help: reason, code };
}
