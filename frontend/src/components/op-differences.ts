import { css, html, LitElement, type TemplateResult } from "lit";
import { customElement, property } from "lit/decorators.js";
import { exactBytes, formatBytes, type Unit } from "../format/bytes";
import type { Aligned, Bytes } from "../model/types";
import { base, tables } from "../style/shared";
import { counted } from "../views/words";

/** The ops of which prediction and measurement do not say the same, the largest difference first. */
@customElement("memest-op-differences")
export class OpDifferences extends LitElement {
  @property({ attribute: false }) aligned!: Aligned;
  @property() unit: Unit = "GiB";

  override render(): TemplateResult {
    const { differences, ops } = this.aligned;
    return html`<details data-testid="op-differences">
      <summary>
        Where prediction and measurement differ
        <span class="soft"
          >${ops.matched.toLocaleString("en-US")} of ${counted(ops.measured, "measured op")} had been predicted,
          ${ops.in_order.toLocaleString("en-US")} of them in the order in which they ran</span
        >
      </summary>
      ${
        differences.length
          ? html`<div class="scroller">${this.#table()}</div>`
          : html`<p class="soft">They say the same of every op that both know.</p>`
      }
    </details>`;
  }

  #table(): TemplateResult {
    return html`<table>
      <thead>
        <tr>
          <th scope="col">Op</th>
          <th scope="col" class="number">Predicted to take</th>
          <th scope="col" class="number">Took</th>
          <th scope="col" class="number">In use then, predicted</th>
          <th scope="col" class="number">Measured</th>
        </tr>
      </thead>
      <tbody>
        ${this.aligned.differences.map(
          (row) =>
            html`<tr data-testid="op-difference" data-op=${row.op}>
              <th scope="row"><code>${row.op}</code></th>
              ${[row.predicted_bytes, row.measured_bytes, row.predicted_live_bytes, row.measured_live_bytes].map(
                (value) => this.#cell(value),
              )}
            </tr>`,
        )}
      </tbody>
    </table>`;
  }

  #cell(value: Bytes | null): TemplateResult {
    return value === null
      ? html`<td class="number soft">–</td>`
      : html`<td class="number" data-bytes=${value} title=${exactBytes(value)}>${formatBytes(value, this.unit)}</td>`;
  }

  static override styles = [
    base,
    tables,
    css`
      details {
        margin-top: 12px;
        border-top: 1px solid var(--line);
        padding-top: 10px;
      }
      summary {
        cursor: pointer;
      }
      .scroller {
        overflow: auto;
        max-height: 360px;
        margin-top: 8px;
      }
      p {
        margin: 8px 0 0;
      }
    `,
  ];
}
