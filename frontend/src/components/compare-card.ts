import { css, html, LitElement, nothing, type PropertyValues, type TemplateResult } from "lit";
import { customElement, property } from "lit/decorators.js";
import { ref } from "lit/directives/ref.js";
import { exactBytes, grouped, type Unit } from "../format/bytes";
import { valueOf, type Load } from "../model/load";
import type { Bytes, Compared, ComparedRow } from "../model/types";
import { base, card, fields, tables } from "../style/shared";
import { comparedRecords, factLabel, inBytes, isChanged, rowLabel, type Section } from "../views/compared";
import { segmentsOf } from "../views/phases";
import { bars, stack, stackLabel } from "./bar";
import { choose } from "./choose";
import { bytes, plainBytes } from "./figure";
import "./export-menu";
import { ROW_HEIGHT, RowWindow } from "./row-window";

/** Runs side by side: what each needs, and where they differ. */
@customElement("memest-compare-card")
export class CompareCard extends LitElement {
  @property({ attribute: false }) compared: Load<Compared> = { state: "idle" };
  /** `only`: without what is the same in all runs. */
  @property() changed = "";
  @property() unit: Unit = "GiB";

  #layers: ComparedRow[] = [];
  readonly #window = new RowWindow(this);

  override willUpdate(changed: PropertyValues<this>): void {
    if (changed.has("compared") || changed.has("changed")) {
      const layers = valueOf(this.compared)?.layers ?? [];
      this.#layers = this.changed ? layers.filter(isChanged) : layers;
      this.#window.count = this.#layers.length;
    }
  }

  override render(): TemplateResult {
    const value = valueOf(this.compared);
    return html`
      <header>
        <h2>Compared</h2>
        <span class="soft">each run against the first</span>
        <span class="controls">
          <label class="only">
            <input
              type="checkbox"
              data-testid="compare-changed"
              .checked=${this.changed !== ""}
              @change=${(event: Event) =>
                choose(this, { changed: (event.target as HTMLInputElement).checked ? "only" : "" })}
            />
            only what differs
          </label>
          ${
            value
              ? html`<memest-export-menu
                  data-testid="compare-export"
                  run=${value.runs[0]?.name ?? ""}
                  name="compared"
                  .records=${() => comparedRecords(value)}
                ></memest-export-menu>`
              : nothing
          }
          <button type="button" class="link" @click=${() => choose(this, { compare: "" })}>Stop comparing</button>
        </span>
      </header>
      ${
        this.compared.state === "failed"
          ? html`<p role="alert" class="failed">${this.compared.message}</p>`
          : value
            ? this.#tables(value)
            : html`<p class="soft" role="status">Loading …</p>`
      }
    `;
  }

  #tables(compared: Compared): TemplateResult {
    const { runs, facts } = compared;
    const { first, end } = this.#window.range;
    const columns = runs.length + 1;
    const max = Math.max(1, ...runs.map((run) => run.peak_bytes ?? 0));
    return html`<div
      class="scroller"
      ${ref(this.#window.scroller)}
      tabindex="0"
      role="region"
      aria-label="Runs compared"
    >
      <table data-testid="compare-table">
        <thead>
          <tr>
            <td></td>
            ${runs.map(
              ({ name }) =>
                html`<th scope="col">
                  <button type="button" class="link" title="Show this run" @click=${() => choose(this, { run: name })}>
                    ${name}
                  </button>
                </th>`,
            )}
          </tr>
        </thead>
        <tbody>
          <tr>
            <th scope="row">At the peak</th>
            ${runs.map(({ bytes_per_category: categories }) => {
              const segments = segmentsOf(categories ?? {});
              return html`<td>
                <div class="bar" role="img" aria-label=${stackLabel(segments, this.unit) || "no estimate"}>
                  ${stack(segments, max, this.unit)}
                </div>
              </td>`;
            })}
          </tr>
          ${runs.some(({ verdict, crash }) => verdict ?? crash) ? this.#verdicts(compared) : nothing}
        </tbody>
        ${this.#section("Peaks", "peaks", compared)} ${this.#section("Phases", "phases", compared)}
        ${this.#section("Categories", "categories", compared)}
        <tbody data-testid="compare-facts">
          <tr class="section">
            <th scope="rowgroup" colspan=${columns}>What was estimated</th>
          </tr>
          ${facts
            .filter(({ differs }) => differs || !this.changed)
            .map(
              ({ name, values, differs }) =>
                html`<tr class=${differs ? "changed" : ""} data-testid="compare-fact" data-name=${name}>
                  <th scope="row">${factLabel(name)}</th>
                  ${values.map((value) => html`<td class="number">${value === null ? "–" : typeof value === "number" ? grouped(value) : value}</td>`)}
                </tr>`,
            )}
        </tbody>
        <tbody>
          <tr class="section">
            <th scope="rowgroup" colspan=${columns}>
              Layers at the peak <span class="soft">largest differences first</span>
            </th>
          </tr>
          ${this.#window.before(columns)} ${this.#layers.slice(first, end).map((row) => this.#row(row, "layers"))}
          ${this.#window.after(columns)}
        </tbody>
      </table>
    </div>`;
  }

  #section(title: string, section: Section, compared: Compared): TemplateResult {
    const rows = compared[section].filter((row) => !this.changed || isChanged(row));
    return rows.length
      ? html`<tbody>
          <tr class="section">
            <th scope="rowgroup" colspan=${compared.runs.length + 1}>${title}</th>
          </tr>
          ${rows.map((row) => this.#row(row, section))}
        </tbody>`
      : html``;
  }

  #row(row: ComparedRow, section: Section): TemplateResult {
    return html`<tr
      class=${isChanged(row) ? "changed" : ""}
      data-testid="compare-row"
      data-section=${section}
      data-name=${row.name}
    >
      <th scope="row">${rowLabel(section, row.name)}</th>
      ${row.values.map((value, n) => this.#cell(value, row.differences[n] ?? null))}
    </tr>`;
  }

  #cell(value: Bytes | null, difference: Bytes | null): TemplateResult {
    if (value === null) {
      return html`<td class="number soft">–</td>`;
    }
    return html`<td class="number" data-bytes=${value} title=${exactBytes(value)}>
      ${plainBytes(value, this.unit)}${
        difference
          ? html`<span
              class="difference ${difference > 0 ? "more" : "less"}"
              data-difference=${difference}
              title=${inBytes(difference)}
              >${difference > 0 ? "+" : "−"}${plainBytes(Math.abs(difference), this.unit)}</span
            >`
          : nothing
      }
    </td>`;
  }

  #verdicts({ runs }: Compared): TemplateResult {
    return html`<tr>
      <th scope="row">Fits</th>
      ${runs.map(({ verdict, crash }) =>
        crash
          ? html`<td class="number" data-outcome="ran out of memory" title=${crash}>ran out of memory</td>`
          : verdict
            ? html`<td class="number" data-outcome=${verdict.outcome} title=${verdict.sentence}>
                ${verdict.outcome}, ${bytes(Math.abs(verdict.margin_bytes), this.unit)}
                ${verdict.margin_bytes < 0 ? "short" : "to spare"}
              </td>`
            : html`<td class="number soft">–</td>`,
      )}
    </tr>`;
  }

  static override styles = [
    base,
    card,
    fields,
    tables,
    bars,
    css`
      .controls {
        display: flex;
        align-items: center;
        gap: 14px;
      }
      .only {
        display: flex;
        align-items: center;
        gap: 6px;
        font-size: 12px;
      }
      .choice {
        display: grid;
        gap: 4px;
      }
      .failed {
        color: var(--bad);
      }
      .scroller {
        overflow: auto;
        max-height: min(620px, 80vh);
      }
      table {
        border-collapse: separate;
        border-spacing: 0;
      }
      tbody tr {
        height: ${ROW_HEIGHT}px;
      }
      th,
      td {
        white-space: nowrap;
      }
      thead th,
      thead td {
        position: sticky;
        top: 0;
        z-index: 2;
        background: var(--card);
        text-align: right;
        min-width: 190px;
      }
      thead td {
        min-width: 150px;
      }
      thead .link {
        font-weight: 600;
      }
      tbody th[scope="row"] {
        position: sticky;
        left: 0;
        background: var(--card);
        max-width: 420px;
        overflow: hidden;
        text-overflow: ellipsis;
      }
      .section th {
        color: var(--soft);
        font-size: 12px;
        padding-top: 14px;
        vertical-align: bottom;
      }
      tr:not(.changed):not(.section) .number {
        color: var(--soft);
      }
      .changed th[scope="row"] {
        font-weight: 600;
      }
      .difference {
        display: inline-block;
        min-width: 92px;
        margin-left: 10px;
        padding: 0 6px;
        border-radius: 4px;
      }
      .difference.more {
        color: var(--bad);
        background: color-mix(in srgb, var(--bad) 9%, transparent);
      }
      .difference.less {
        color: var(--good);
        background: color-mix(in srgb, var(--good) 11%, transparent);
      }
      .difference .unit {
        color: inherit;
      }
      [data-outcome="ran out of memory"],
      [data-outcome="does not fit"] {
        color: var(--bad) !important;
      }
      [data-outcome="may not fit"] {
        color: var(--warn) !important;
      }
      [data-outcome="fits"] {
        color: var(--good) !important;
      }
    `,
  ];
}
