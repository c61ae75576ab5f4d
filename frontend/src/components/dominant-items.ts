import { css, html, LitElement, type TemplateResult } from "lit";
import { customElement, property } from "lit/decorators.js";
import { formatFraction, formatShape, type Unit } from "../format/bytes";
import type { Dominant, DominantPart } from "../model/types";
import { categoryFill, LABELS } from "../style/palette";
import { base, card, tables } from "../style/shared";
import { bars } from "./bar";
import { bytes, titleOf } from "./figure";

/** The few things that hold most of the peak, each with everything that exists because of it. */
@customElement("memest-dominant-items")
export class DominantItems extends LitElement {
  @property({ attribute: false }) dominant: readonly Dominant[] = [];
  @property() unit: Unit = "GiB";

  override render(): TemplateResult {
    return html`
      <header>
        <h2>Dominant items</h2>
        <span class="soft">what holds most of the peak</span>
      </header>
      <ol>
        ${this.dominant.map((entry) => this.#entry(entry))}
      </ol>
    `;
  }

  #entry(entry: Dominant): TemplateResult {
    return html`<li data-testid="dominant" data-name=${entry.name}>
      <p data-testid="dominant-sentence">${entry.sentence}</p>
      <div class="bar" role="presentation">${this.#shares(entry.parts)}</div>
      <table>
        <caption>
          <code>${entry.name}</code>
          <span class="soft">${entry.shape ? formatShape(entry.shape) : "tensors of this layer"}</span>
        </caption>
        <tbody>
          ${entry.parts.map((part) => this.#part(part))}
        </tbody>
        <tfoot>
          <tr data-testid="dominant-total">
            <th scope="row">together</th>
            <td class="number">${bytes(entry.bytes, this.unit)}</td>
            <td class="number">${formatFraction(entry.share)}</td>
          </tr>
        </tfoot>
      </table>
    </li>`;
  }

  /** Shares of the whole peak, so that what is missing to the full width is everything else. */
  #shares(parts: readonly DominantPart[]): TemplateResult[] {
    let start = 0;
    return parts.map(({ role, category, bytes: held, share }) => {
      const left = start;
      start += share * 100;
      return html`<i
        class="segment parted"
        title=${titleOf(role, held, this.unit)}
        style="left:${left}%;width:${share * 100}%;background:${categoryFill(category)}"
      ></i>`;
    });
  }

  #part(part: DominantPart): TemplateResult {
    return html`<tr data-testid="dominant-part" data-role=${part.role} data-category=${part.category}>
      <th scope="row" title=${LABELS[part.category]}>
        <span class="swatch" style="background:${categoryFill(part.category)}"></span>${part.role}${
          part.count > 1 ? html` <span class="soft">× ${part.count}</span>` : ""
        }
      </th>
      <td class="number">${bytes(part.bytes, this.unit)}</td>
      <td class="number">${formatFraction(part.share)}</td>
    </tr>`;
  }

  static override styles = [
    base,
    card,
    tables,
    bars,
    css`
      ol {
        list-style: none;
        margin: 0;
        padding: 0;
        display: grid;
        gap: 20px;
      }
      p {
        margin: 0 0 8px;
        font-size: 13.5px;
        overflow-wrap: anywhere;
        text-wrap: pretty;
      }
      table {
        margin-top: 6px;
      }
      caption {
        position: absolute;
        width: 1px;
        height: 1px;
        overflow: hidden;
        clip-path: inset(50%);
      }
      td.number:nth-child(3) {
        width: 72px;
      }
    `,
  ];
}
