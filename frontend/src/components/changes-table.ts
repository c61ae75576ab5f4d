import { css, html, LitElement, nothing, type TemplateResult } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import { formatRange, type Unit } from "../format/bytes";
import type { Bytes } from "../model/types";
import { base, fields, tables } from "../style/shared";
import { bars } from "./bar";
import { copied } from "./copied";
import { bytes, titleOf } from "./figure";

/** A change to a training or its data, as it was estimated. */
export interface Change {
  name: string;
  title: string;
  peak_bytes: Bytes;
  saving_bytes: Bytes;
  /** Whose memory is saved, where that is not what the table is about. */
  saved_of?: string;
  /** Whether it fits then, and the most that any phase needs; left out where there is no limit. */
  fits?: boolean;
  needs_bytes?: Bytes;
  /** What it costs, or why it does not help. */
  cost: string;
  /** Empty where a line is only left out. */
  code: string;
}

/** Lines of code that are shown without being asked for. */
const SHORT = 3;

/** Changes one below the other: what each leaves and saves, what it costs, and its code to copy. */
@customElement("memest-changes-table")
export class ChangesTable extends LitElement {
  @property({ attribute: false }) changes: readonly Change[] = [];
  /** The peak without any of them. */
  @property({ attribute: false }) now: Bytes = 0;
  /** What there is; null where that does not matter. */
  @property({ attribute: false }) limit: Bytes | null = null;
  /** The test id of each row. */
  @property() row = "change";
  @property() unit: Unit = "GiB";
  /** The change whose code was copied last. */
  @state() private copied: string | null = null;

  override render(): TemplateResult {
    return html`<table>
      <thead>
        <tr>
          <th scope="col">Change</th>
          <th scope="col" class="track">Before and after</th>
          <th scope="col" class="number">Peak then</th>
          <th scope="col" class="number">Saves</th>
          ${this.limit === null ? nothing : html`<th scope="col">Fits</th>`}
          <th scope="col">Cost</th>
          <th scope="col">How</th>
        </tr>
      </thead>
      <tbody>
        ${this.changes.map(
          (change) =>
            html`<tr data-testid=${this.row} data-name=${change.name}>
              <th scope="row">${change.title}</th>
              <td class="track">${this.#bar(change)}</td>
              <td class="number">${this.#peak(change)}</td>
              <td class="number">${this.#saving(change)}</td>
              ${
                this.limit === null
                  ? nothing
                  : html`<td class=${change.fits ? "fits" : "soft"}>${change.fits ? "yes" : "no"}</td>`
              }
              <td class="why sentence">${change.cost}</td>
              <td class="why">${change.code ? this.#code(change) : nothing}</td>
            </tr>`,
        )}
      </tbody>
    </table>`;
  }

  /** The peak, and the most that any phase can need, which decides whether it fits. */
  #peak({ peak_bytes, needs_bytes = peak_bytes }: Change): TemplateResult {
    return html`${bytes(peak_bytes, this.unit)}${
      formatRange([peak_bytes, needs_bytes], this.unit)
        ? html` <span class="most" title="The most that any phase can need"
            >up to ${bytes(needs_bytes, this.unit)}</span
          >`
        : nothing
    }`;
  }

  /** Folded where it is long: what each change does is to be seen first. */
  #code(change: Change): TemplateResult {
    const lines = change.code.split("\n").length;
    const code = html`<code>${change.code}</code>`;
    return html`${
        lines > SHORT
          ? html`<details>
              <summary>${lines} lines of code</summary>
              ${code}
            </details>`
          : code
      }
      <button
        type="button"
        class="small"
        data-testid="copy-code"
        aria-label="Copy the code of ${change.title}"
        @click=${() => void this.#copy(change)}
      >
        ${this.copied === change.name ? "Copied" : "Copy"}
      </button>`;
  }

  /** What the peak is now as the track, what would be left of it as the bar, and where the limit is. */
  #bar({ title, peak_bytes }: Change): TemplateResult {
    const max = Math.max(this.now, peak_bytes, 1);
    const { limit } = this;
    const label = `${titleOf("now", this.now, this.unit)}, ${titleOf("then", peak_bytes, this.unit)}`;
    return html`<div class="bar" role="img" aria-label="${title}: ${label}" title=${label}>
      <i class="before" style="width:${(this.now / max) * 100}%"></i>
      <i class="after" data-bytes=${peak_bytes} style="width:${(peak_bytes / max) * 100}%"></i>
      ${
        limit === null || limit > max
          ? nothing
          : html`<i class="limit" title=${titleOf("limit", limit, this.unit)} style="left:${(limit / max) * 100}%"></i>`
      }
    </div>`;
  }

  #saving({ saving_bytes, saved_of }: Change): TemplateResult {
    return saving_bytes > 0
      ? html`${bytes(saving_bytes, this.unit)}${saved_of ? ` of ${saved_of}` : ""}`
      : html`<span class="soft">nothing</span>`;
  }

  async #copy({ name, code }: Change): Promise<void> {
    if (await copied(code)) {
      this.copied = name;
    }
  }

  static override styles = [
    base,
    fields,
    tables,
    bars,
    css`
      .track {
        width: 16%;
        min-width: 100px;
      }
      /* Beside the first line of a row of several. */
      td.track {
        vertical-align: top;
        padding-top: 9px;
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
      button.small {
        font-size: 11px;
        padding: 0 6px;
        margin-left: 6px;
      }
      th[scope="row"] {
        min-width: 180px;
      }
      th[scope="row"]::first-letter,
      .sentence::first-letter {
        text-transform: uppercase;
      }
      .fits {
        color: var(--good);
        font-weight: 600;
      }
      .most {
        display: block;
        color: var(--soft);
        font-size: 12px;
      }
      details {
        display: inline-block;
        vertical-align: top;
      }
      summary {
        cursor: pointer;
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
    `,
  ];
}
