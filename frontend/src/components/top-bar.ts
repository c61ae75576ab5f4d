import { css, html, LitElement, nothing, type TemplateResult } from "lit";
import { customElement, property } from "lit/decorators.js";
import { UNITS, formatBytes, type Unit } from "../format/bytes";
import type { Bytes, Gpu, Headline } from "../model/types";
import { base, segments } from "../style/shared";
import { choose } from "./choose";
import { plainBytes } from "./figure";

/** The runs, the limit and the unit. */
@customElement("memest-top-bar")
export class TopBar extends LitElement {
  @property({ attribute: false }) runs: readonly Headline[] = [];
  @property() run: string | null = null;
  @property({ attribute: false }) gpus: readonly Gpu[] = [];
  @property() limit = "";
  /** What the limit is while none is typed; null where none was recorded. */
  @property({ attribute: false }) recordedLimit: Bytes | null = null;
  @property() limitError: string | null = null;
  @property() unit: Unit = "GiB";

  override render(): TemplateResult {
    return html`
      <fieldset class="runs" data-testid="run-picker">
        <legend>Runs</legend>
        <div class="options">${this.runs.map((run) => this.#option(run))}</div>
      </fieldset>
      <form class="limit" @submit=${(event: Event) => this.#submit(event)}>
        <label for="limit">Limit</label>
        <input
          id="limit"
          data-testid="limit-input"
          name="limit"
          .value=${this.limit}
          placeholder=${this.recordedLimit === null ? "9.29GiB" : formatBytes(this.recordedLimit)}
          title="Memory of the device, such as 9.29GiB or 24GB. Empty: the limit recorded with the run."
          list="gpus"
          autocomplete="off"
          spellcheck="false"
          aria-invalid=${this.limitError ? "true" : "false"}
          aria-describedby="limit-error"
          @change=${(event: Event) => this.#submit(event)}
        />
        <datalist id="gpus">
          ${this.gpus.map(
            (gpu) =>
              html`<option value=${gpu.name}>
                ${formatBytes(gpu.usable_bytes)} of ${formatBytes(gpu.memory_bytes)}${gpu.carries && `, ${gpu.carries}`}
              </option>`,
          )}
        </datalist>
        ${
          this.limit
            ? html`<button
                type="button"
                class="clear"
                aria-label="Clear the limit"
                @click=${() => choose(this, { limit: "" })}
              >
                ×
              </button>`
            : nothing
        }
      </form>
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
      <p id="limit-error" role="alert" data-testid="limit-error">${this.limitError ?? nothing}</p>
    `;
  }

  #option(run: Headline): TemplateResult {
    const peak = run.peak_bytes ?? run.measured_peak_bytes;
    const facts = [
      run.optimizer,
      run.batch_size === null ? null : `batch ${run.batch_size}`,
      run.mode === "xla" ? "XLA" : run.mode,
    ];
    return html`<label class="option" data-testid="run-option" data-run=${run.name}>
      <input
        type="radio"
        name="run"
        value=${run.name}
        .checked=${run.name === this.run}
        @change=${() => choose(this, { run: run.name })}
      />
      <span class="name"
        >${run.name}${
          run.problems.length
            ? html`<span class="mark" title=${run.problems.join("\n")} aria-label="has problems">!</span>`
            : nothing
        }</span
      >
      <span class="headline">
        ${peak === null ? nothing : html`<b class="number" data-bytes=${peak}>${plainBytes(peak, this.unit)}</b>`}
        ${run.peak_bytes === null && peak !== null ? "measured" : facts.filter(Boolean).join(" · ")}
      </span>
    </label>`;
  }

  #submit(event: Event): void {
    event.preventDefault();
    const input = this.renderRoot.querySelector<HTMLInputElement>("#limit")!;
    choose(this, { limit: input.value.trim() });
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
      .runs {
        display: flex;
        align-items: center;
        gap: 12px;
        border: 0;
        margin: 0;
        padding: 0;
        min-width: 0;
        flex: 1 1 420px;
      }
      legend {
        float: left;
        padding: 0;
        font-weight: 600;
      }
      .options {
        display: flex;
        flex-wrap: wrap;
        gap: 6px;
        max-height: 132px;
        overflow-y: auto;
        padding: 2px;
      }
      .option {
        position: relative;
        display: grid;
        border: 1px solid var(--edge);
        border-radius: var(--radius);
        padding: 4px 12px 5px;
        cursor: pointer;
      }
      .option:hover {
        background: var(--hover);
      }
      .option:has(:checked) {
        background: var(--accent-wash);
        border-color: var(--accent);
      }
      .option:has(:checked) .name {
        color: var(--accent);
      }
      .option:has(:focus-visible) {
        outline: 2px solid var(--accent);
        outline-offset: 1px;
      }
      .option input {
        position: absolute;
        inset: 0;
        opacity: 0;
        margin: 0;
        cursor: pointer;
      }
      .name {
        font-weight: 600;
      }
      .headline {
        color: var(--soft);
        font-size: 11.5px;
        white-space: nowrap;
      }
      .headline b {
        color: var(--ink);
        font-weight: 500;
        margin-right: 4px;
      }
      .mark {
        display: inline-block;
        margin-left: 6px;
        width: 14px;
        border-radius: 7px;
        background: var(--warn);
        color: var(--card);
        text-align: center;
        font-size: 11px;
        line-height: 14px;
      }
      .limit {
        position: relative;
        display: flex;
        align-items: center;
        gap: 8px;
      }
      .limit label {
        color: var(--soft);
      }
      .limit input {
        width: 116px;
        font: inherit;
        color: var(--ink);
        background: var(--card);
        border: 1px solid var(--edge);
        border-radius: 5px;
        padding: 3px 24px 3px 8px;
      }
      .limit input::placeholder {
        color: var(--soft);
        opacity: 0.75;
      }
      .limit input[aria-invalid="true"] {
        border-color: var(--bad);
      }
      .clear {
        position: absolute;
        right: 2px;
        border: 0;
        background: none;
        color: var(--soft);
        font-size: 15px;
        line-height: 1;
        padding: 4px 6px;
        cursor: pointer;
      }
      #limit-error {
        flex-basis: 100%;
        margin: 0;
        text-align: right;
        color: var(--bad);
      }
      #limit-error:empty {
        display: none;
      }
    `,
  ];
}
