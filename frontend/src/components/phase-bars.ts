import { css, html, LitElement, nothing, type TemplateResult } from "lit";
import { customElement, property } from "lit/decorators.js";
import { exactBytes, formatBytes, formatRange, type Unit } from "../format/bytes";
import { CATEGORIES, type Bytes, type Overview } from "../model/types";
import { categoryFill, LABELS } from "../style/palette";
import { base, card, keys } from "../style/shared";
import { byteAxis, tickLabel, type ByteAxis } from "../views/axis";
import { phaseRecords, phaseRows, type PhaseRow } from "../views/phases";
import { shortened } from "../views/words";
import { bars, stack, stackLabel } from "./bar";
import "./export-menu";
import { bytes, plainBytes, titleOf } from "./figure";
import "./term";

/** Each phase as a bar of its categories on one byte axis, against the limit and what was measured. */
@customElement("memest-phase-bars")
export class PhaseBars extends LitElement {
  @property({ attribute: false }) overview!: Overview;
  @property() unit: Unit = "GiB";

  override render(): TemplateResult {
    const rows = phaseRows(this.overview);
    const limit = this.overview.verdict?.limit_bytes ?? null;
    const figures = rows.flatMap((row) => [row.peak ?? 0, row.range?.[1] ?? 0, row.measured?.bytes ?? 0]);
    const axis = byteAxis(figures, limit, this.unit, 6);
    return html`
      <header>
        <h2>Phases</h2>
        <span class="soft">what is in use at the peak of each</span>
        <memest-export-menu
          class="controls"
          data-testid="phases-export"
          run=${this.overview.name}
          name="phases"
          .records=${() => phaseRecords(this.overview)}
        ></memest-export-menu>
      </header>
      <div class="grid">
        ${rows.map((row) => this.#row(row, axis, limit))}
        <div class="scale" aria-hidden="true">
          ${axis.ticks.map(
            (tick) =>
              html`<span style="left:${(tick / axis.max) * 100}%">${tickLabel(tick, axis.max, this.unit)}</span>`,
          )}
        </div>
      </div>
      ${this.#key(rows, axis, limit)}
    `;
  }

  #row(row: PhaseRow, axis: ByteAxis, limit: Bytes | null): TemplateResult {
    const { measured, range } = row;
    return html`
      <div class="label" data-testid="phase" data-phase=${row.name}>
        <span class="name"><memest-term word=${row.name}>${row.label}</memest-term></span>
        ${
          row.peak === null
            ? row.measured && html`<span class="number soft">${bytes(row.measured.bytes, this.unit)}</span>`
            : html`<b
                class="number"
                data-outcome=${row.outcome ?? nothing}
                data-bytes=${row.peak}
                title=${exactBytes(row.peak)}
                >${plainBytes(row.peak, this.unit)}</b
              >`
        }
      </div>
      <div class="track">
        <div class="bar" role="img" data-testid="phase-bar" data-phase=${row.name} aria-label=${this.#spoken(row)}>
          ${
            row.peak === null && measured
              ? html`<i class="only-measured" style="width:${(measured.bytes / axis.max) * 100}%"></i>`
              : stack(row.segments, axis.max, this.unit)
          }
          ${
            range
              ? html`<i
                  class="range"
                  data-bytes=${range[0]}
                  data-bytes-high=${range[1]}
                  title="${exactBytes(range[0])} to ${exactBytes(range[1])}, by order of execution"
                  style="left:${(range[0] / axis.max) * 100}%;width:${((range[1] - range[0]) / axis.max) * 100}%"
                ></i>`
              : nothing
          }
          ${
            measured
              ? html`<i
                  class="measured"
                  data-testid="phase-measured"
                  data-bytes=${measured.bytes}
                  title=${titleOf(`measured ${measured.what}`, measured.bytes, this.unit)}
                  style="left:${(measured.bytes / axis.max) * 100}%"
                ></i>`
              : nothing
          }
          ${
            limit !== null && !axis.limitBeyond
              ? html`<i
                  class="limit"
                  title=${titleOf("limit", limit, this.unit)}
                  style="left:${(limit / axis.max) * 100}%"
                ></i>`
              : nothing
          }
        </div>
        <div class="note">${this.#note(row)}</div>
      </div>
    `;
  }

  #note({ op, peakOf, range, measured, host }: PhaseRow): TemplateResult {
    const parts: (TemplateResult | string)[] = [];
    if (measured) {
      parts.push(
        html`<span data-bytes=${measured.bytes} title=${exactBytes(measured.bytes)}
          >measured ${formatBytes(measured.bytes, this.unit)}</span
        >`,
      );
    }
    const spread = range && formatRange(range, this.unit);
    if (spread) {
      parts.push(`can be ${spread}`);
    }
    if (host) {
      parts.push(
        html`<span data-testid="phase-host" data-bytes=${host} title=${exactBytes(host)}
          >${formatBytes(host, this.unit)} of the host's memory</span
        >`,
      );
    }
    if (peakOf !== null) {
      parts.push(html`peak at <span class="of" title=${op}>${peakOf}</span>`);
    } else if (op) {
      parts.push(html`peak at <code title=${op}>${shortened(op)}</code>`);
    }
    return html`${parts.map((part, n) => html`${n ? " · " : nothing}${part}`)}`;
  }

  #key(rows: readonly PhaseRow[], axis: ByteAxis, limit: Bytes | null): TemplateResult {
    const present = CATEGORIES.filter((category) =>
      rows.some((row) => row.segments.some((s) => s.category === category)),
    );
    return html`<ul class="key">
      ${present.map(
        (category) =>
          html`<li>
            <span class="swatch" style="background:${categoryFill(category)}"></span
            ><memest-term word=${category}>${LABELS[category]}</memest-term>
          </li>`,
      )}
      ${rows.some((row) => row.range) ? html`<li><span class="swatch-range"></span><memest-term word="range">possible range</memest-term></li>` : nothing}
      ${
        rows.some((row) => row.measured)
          ? html`<li>
              <span class="swatch-measured"></span>measured${
                this.overview.measured.pipeline_bytes ? ", the steps without the data pipeline" : nothing
              }
            </li>`
          : nothing
      }
      ${
        limit === null
          ? nothing
          : html`<li class="limit-text">
              <span class="swatch-limit"></span>limit
              ${formatBytes(limit, this.unit)}${axis.limitBeyond ? ", far beyond this axis" : nothing}
            </li>`
      }
    </ul>`;
  }

  #spoken({ label, segments, peak, range, measured }: PhaseRow): string {
    return [
      peak === null ? label : titleOf(`${label}, predicted`, peak, this.unit),
      stackLabel(segments, this.unit),
      range ? `between ${exactBytes(range[0])} and ${exactBytes(range[1])}` : "",
      measured ? titleOf(`measured ${measured.what}`, measured.bytes, this.unit) : "",
    ]
      .filter(Boolean)
      .join("; ");
  }

  static override styles = [
    base,
    card,
    keys,
    bars,
    css`
      .grid {
        position: relative;
        display: grid;
        grid-template-columns: max-content 1fr;
        column-gap: 14px;
        row-gap: 14px;
      }
      .label {
        display: flex;
        justify-content: space-between;
        gap: 14px;
        line-height: 22px;
        min-width: 136px;
      }
      .label b {
        font-weight: 600;
      }
      [data-outcome="does not fit"] {
        color: var(--bad);
      }
      [data-outcome="may not fit"] {
        color: var(--warn);
      }
      .track {
        min-width: 0;
      }
      .bar {
        height: 22px;
      }
      .note {
        color: var(--soft);
        font-size: 11.5px;
        line-height: 16px;
        min-height: 16px;
        margin-top: 5px;
      }
      .note .of {
        overflow-wrap: anywhere;
      }
      .note code {
        white-space: nowrap;
        font-size: 11px;
      }
      .only-measured {
        position: absolute;
        inset: 0 auto 0 0;
        background: var(--measured-area);
      }
      .range {
        position: absolute;
        top: 50%;
        height: 8px;
        margin-top: -4px;
        border: solid var(--ink);
        border-width: 0 1.5px;
      }
      .range::after {
        content: "";
        position: absolute;
        inset: 3.25px 0 auto;
        border-top: 1.5px solid var(--ink);
      }
      .measured {
        position: absolute;
        top: -4px;
        bottom: -4px;
        width: 3px;
        margin-left: -1.5px;
        background: var(--measured);
        box-shadow: 0 0 0 1px var(--card);
        border-radius: 1px;
      }
      .scale {
        grid-column: 2;
        position: relative;
        height: 20px;
        margin-top: -6px;
        border-top: 1px solid var(--edge);
        color: var(--soft);
        font-size: 11px;
      }
      .scale span {
        position: absolute;
        top: 0;
        transform: translateX(-50%);
        white-space: nowrap;
        padding-top: 6px;
      }
      .scale span::before {
        content: "";
        position: absolute;
        top: 0;
        left: 50%;
        height: 4px;
        border-left: 1px solid var(--edge);
      }
      .scale span:first-child {
        transform: none;
      }
      .scale span:first-child::before {
        left: 0;
      }
      .swatch-limit,
      .swatch-measured,
      .swatch-range {
        display: inline-block;
        vertical-align: -2px;
        margin-right: 6px;
        height: 12px;
      }
      .swatch-limit {
        border-left: 2px dashed var(--limit);
      }
      .swatch-measured {
        width: 3px;
        background: var(--measured);
        border-radius: 1px;
      }
      .swatch-range {
        width: 12px;
        height: 8px;
        vertical-align: 0;
        border: solid var(--ink);
        border-width: 0 1.5px;
        background: linear-gradient(var(--ink), var(--ink)) center / 100% 1.5px no-repeat;
      }
      .limit-text {
        color: var(--limit);
      }
    `,
  ];
}
