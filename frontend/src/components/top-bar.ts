import { css, html, LitElement, type TemplateResult } from "lit";
import { customElement, property } from "lit/decorators.js";
import { UNITS, type Unit } from "../format/bytes";
import type { Bytes, Gpu, Headline } from "../model/types";
import { base, segments } from "../style/shared";
import { choose } from "./choose";
import "./limit-field";
import "./run-picker";

/** What a person chooses for the whole page: runs, limit and unit. */
@customElement("memest-top-bar")
export class TopBar extends LitElement {
  @property({ attribute: false }) runs: readonly Headline[] = [];
  @property() run: string | null = null;
  @property({ attribute: false }) others: readonly string[] = [];
  @property({ attribute: false }) gpus: readonly Gpu[] = [];
  @property() limit = "";
  @property({ attribute: false }) recordedLimit: Bytes | null = null;
  @property() limitError: string | null = null;
  @property() unit: Unit = "GiB";

  override render(): TemplateResult {
    return html`
      <memest-run-picker
        .runs=${this.runs}
        .run=${this.run}
        .others=${this.others}
        .unit=${this.unit}
      ></memest-run-picker>
      <div class="judged">
        <memest-limit-field
          .gpus=${this.gpus}
          .limit=${this.limit}
          .recorded=${this.recordedLimit}
          .refused=${this.limitError}
        ></memest-limit-field>
        <div class="segments" role="group" aria-label="Unit" data-testid="unit-switch">
          ${UNITS.map(
            (unit) =>
              html`<button
                type="button"
                aria-pressed=${unit === this.unit ? "true" : "false"}
                title=${unit === "B" ? "Exact bytes" : `Binary units, ${unit} and smaller`}
                @click=${() => choose(this, { unit })}
              >
                ${unit}
              </button>`,
          )}
        </div>
      </div>
    `;
  }

  static override styles = [
    base,
    segments,
    css`
      :host {
        display: flex;
        flex-wrap: wrap;
        align-items: center;
        gap: 8px 18px;
        background: var(--card);
        border-bottom: 1px solid var(--edge);
        padding: 10px 24px;
      }
      .judged {
        display: flex;
        flex-wrap: wrap;
        align-items: center;
        gap: 8px 18px;
      }
      memest-run-picker {
        flex: 1 1 640px;
        min-width: 0;
      }
    `,
  ];
}
