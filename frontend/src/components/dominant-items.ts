import { css, html, LitElement, nothing, type TemplateResult } from "lit";
import { customElement, property } from "lit/decorators.js";
import { formatBytes, formatFraction, formatShape, type Unit } from "../format/bytes";
import type { Fields } from "../format/records";
import type { Bytes, Dominant, DominantPart } from "../model/types";
import { categoryFill, LABELS } from "../style/palette";
import { base, card, fields, tables } from "../style/shared";
import { bars } from "./bar";
import { choose, showCard } from "./choose";
import "./export-menu";
import { bytes, titleOf } from "./figure";
import "./term";

/** From this share of the whole thing on, it is told that a part holds more than was asked for. */
const WORTH_TELLING = 0.01;

/** Below this share of the peak nothing is flagged, as in tensorboard_plugin_memest/memory/dominant.py: it is only the largest. */
const DECIDES = 0.05;

/** The few things that hold most of the peak, each with everything that exists because of it. */
@customElement("memest-dominant-items")
export class DominantItems extends LitElement {
  @property({ attribute: false }) dominant: readonly Dominant[] = [];
  @property() run = "";
  @property() unit: Unit = "GiB";

  override render(): TemplateResult {
    return html`
      <header>
        <h2><memest-term word="dominant">Dominant items</memest-term></h2>
        <span class="soft">what holds most of the peak</span>
        <memest-export-menu
          class="controls"
          data-testid="dominant-export"
          run=${this.run}
          name="dominant"
          .records=${() => dominantRecords(this.dominant)}
        ></memest-export-menu>
      </header>
      ${this.dominant.some(decides) ? nothing : NOTHING}
      <ol>
        ${this.dominant.map((entry, n) => this.#entry(entry, n === 0))}
      </ol>
    `;
  }

  /** Folded to one line but for the first. */
  #entry(entry: Dominant, first: boolean): TemplateResult {
    const shape = entry.shape ? formatShape(entry.shape) : "tensors of this layer";
    return html`<li>
      <details ?open=${first} data-testid="dominant" data-name=${entry.name}>
        <summary>
          <span class="flag" title="one of the few that decide" aria-hidden="true"
            >${decides(entry) ? "⚑" : nothing}</span
          >
          <span class="what"><code>${entry.name}</code> <span class="soft">${shape}</span></span>
          <span class="bar" role="presentation">${this.#shares(entry.parts)}</span>
          <b class="number">${bytes(entry.bytes, this.unit)}</b>
          <span class="number">${formatFraction(entry.share)}</span>
        </summary>
        <table>
          <tbody>
            ${entry.parts.map((part) => this.#part(part, entry.bytes))}
          </tbody>
          <tfoot>
            <tr data-testid="dominant-total">
              <th scope="row">together</th>
              <td class="number">${bytes(entry.bytes, this.unit)}</td>
              <td class="number">${formatFraction(entry.share)}</td>
            </tr>
          </tfoot>
        </table>
        <button type="button" class="link" data-testid="dominant-layer" @click=${() => this.#showLayer(entry.layer)}>
          Show <code>${entry.layer}</code> among the layers
        </button>
      </details>
    </li>`;
  }

  #showLayer(layer: string): void {
    choose(this, { layer });
    showCard(this, "layers");
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

  #part(part: DominantPart, whole: Bytes): TemplateResult {
    return html`<tr data-testid="dominant-part" data-role=${part.role} data-category=${part.category}>
      <th scope="row" title=${LABELS[part.category]}>
        <span class="swatch" style="background:${categoryFill(part.category)}"></span>${part.role}${
          part.count > 1 ? html` <span class="soft">× ${part.count}</span>` : ""
        }${
          part.bytes - part.requested_bytes > WORTH_TELLING * whole
            ? html` <memest-term word="slack" class="soft"
                >${formatBytes(part.requested_bytes, this.unit)} asked for</memest-term
              >`
            : ""
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
    fields,
    css`
      p {
        margin: 0 0 4px;
      }
      ol {
        list-style: none;
        margin: 0;
        padding: 0;
      }
      li + li {
        border-top: 1px solid var(--line);
      }
      summary {
        display: grid;
        grid-template-columns: 14px minmax(0, 1fr) minmax(70px, 28%) minmax(78px, max-content) 52px;
        align-items: center;
        gap: 10px;
        padding: 7px 4px;
        cursor: pointer;
        list-style: none;
      }
      summary::-webkit-details-marker {
        display: none;
      }
      summary:hover {
        background: var(--hover);
      }
      .what {
        overflow-wrap: anywhere;
      }
      .what .soft {
        font-size: 12px;
      }
      th memest-term {
        display: inline-block;
        margin-left: 8px;
        font-size: 12px;
      }
      .flag {
        color: var(--bad);
      }
      summary .number {
        text-align: right;
      }
      details > :is(table, button.link) {
        margin-left: 24px;
      }
      details[open] {
        padding-bottom: 12px;
      }
      table {
        width: calc(100% - 24px);
        margin-bottom: 8px;
      }
      td.number:nth-child(3) {
        width: 62px;
      }
    `,
  ];
}

const decides = ({ share }: Dominant): boolean => share >= DECIDES;

/** One record for each kind of copy of each of them. */
function dominantRecords(dominant: readonly Dominant[]): Fields[] {
  return dominant.flatMap(({ name, layer, shape, parts }) =>
    parts.map(({ role, category, count, bytes: held, requested_bytes, share }) => ({
      ...{ name, layer, shape: shape ? formatShape(shape) : "" },
      ...{ role, category, count, bytes: held, requested_bytes, share },
    })),
  );
}

const NOTHING = html`<p class="soft" data-testid="dominant-none">
  Nothing stands out: no variable and no layer holds much of the peak alone.
</p>`;
