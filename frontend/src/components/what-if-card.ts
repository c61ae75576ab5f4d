import { css, html, LitElement, nothing, type TemplateResult } from "lit";
import { customElement, property } from "lit/decorators.js";
import { formatBytes, formatRange, formatShare, type Unit } from "../format/bytes";
import { CATEGORIES, type Bytes, type ChoiceOutcome, type Choices, type Gpu, type WhatIf } from "../model/types";
import { categoryFill, LABELS } from "../style/palette";
import { base, card, fields, keys } from "../style/shared";
import { segmentsOf } from "../views/phases";
import { choicesOf, judge, outcomeOf, outcomeRecord, type Chosen, type Judgement } from "../views/what-if";
import { modeLabel, phaseLabel } from "../views/words";
import { bars, stack, stackLabel } from "./bar";
import { choose } from "./choose";
import "./export-menu";
import { bytes, titleOf } from "./figure";

/** The training under other choices, each estimated in Python before: moving a slider answers at once. */
@customElement("memest-what-if-card")
export class WhatIfCard extends LitElement {
  @property({ attribute: false }) whatIf!: WhatIf;
  @property() run = "";
  @property({ attribute: false }) chosen!: Chosen;
  @property({ attribute: false }) gpus: readonly Gpu[] = [];
  /** Name of the chosen device; empty for `limit`. */
  @property() gpu = "";
  /** The limit that the run is judged by; null where there is none. */
  @property({ attribute: false }) limit: Bytes | null = null;
  @property() unit: Unit = "GiB";

  override render(): TemplateResult {
    const choices = choicesOf(this.whatIf, this.chosen);
    const before = outcomeOf(this.whatIf, this.whatIf.base);
    const after = outcomeOf(this.whatIf, choices);
    const limit = this.gpus.find(({ name }) => name === this.gpu)?.usable_bytes ?? this.limit;
    return html`
      <header>
        <h2>What if</h2>
        <span class="soft">each combination was estimated with the run</span>
        <span class="controls">
          <button type="button" class="small" data-testid="what-if-reset" @click=${() => this.#reset()}>
            As it is
          </button>
          <memest-export-menu
            data-testid="what-if-export"
            run=${this.run}
            name="what-if"
            .records=${() => this.whatIf.outcomes.map(outcomeRecord)}
          ></memest-export-menu>
        </span>
      </header>
      ${this.#controls(choices)} ${this.#bars(before, after, limit)}
      <p role="status" data-testid="what-if-sentence">${this.#sentence(before, after, limit)}</p>
      ${
        this.whatIf.notes.length
          ? html`<ul class="soft">
              ${this.whatIf.notes.map((note) => html`<li data-testid="what-if-note">${note}</li>`)}
            </ul>`
          : nothing
      }
    `;
  }

  #controls(choices: Choices): TemplateResult {
    const { batch_sizes, optimizers, precisions, modes } = this.whatIf;
    return html`<div class="controls">
      <label>
        <span>Batch size <b data-testid="what-if-batch-value">${choices.batch_size.toLocaleString("en-US")}</b></span>
        <input
          type="range"
          data-testid="what-if-batch"
          min="0"
          max=${batch_sizes.length - 1}
          step="1"
          .value=${String(batch_sizes.indexOf(choices.batch_size))}
          aria-valuetext=${`${choices.batch_size} examples`}
          ?disabled=${batch_sizes.length < 2}
          @input=${(event: Event) =>
            choose(this, { batch: String(batch_sizes[Number((event.target as HTMLInputElement).value)]) })}
        />
      </label>
      ${this.#select("Optimizer", "what-if-optimizer", optimizers, choices.optimizer, (optimizer) =>
        choose(this, { optimizer }),
      )}
      ${this.#select("Precision", "what-if-precision", precisions, choices.precision, (precision) =>
        choose(this, { precision }),
      )}
      ${this.#select("Mode", "what-if-mode", modes, choices.mode, (mode) => choose(this, { mode }), modeLabel)}
      ${this.#select(
        "GPU",
        "what-if-gpu",
        ["", ...this.gpus.filter(({ carries }) => carries === null).map(({ name }) => name)],
        this.gpu,
        (gpu) => choose(this, { gpu }),
        (name) => name || (this.limit === null ? "no limit" : `the limit, ${formatBytes(this.limit, this.unit)}`),
      )}
    </div>`;
  }

  #select(
    label: string,
    testId: string,
    options: readonly string[],
    value: string,
    take: (value: string) => void,
    say: (value: string) => string = (option) => option,
  ): TemplateResult {
    return html`<label>
      <span>${label}</span>
      <select data-testid=${testId} @change=${(event: Event) => take((event.target as HTMLSelectElement).value)}>
        ${options.map((option) => html`<option value=${option} .selected=${option === value}>${say(option)}</option>`)}
      </select>
    </label>`;
  }

  #bars(before: ChoiceOutcome | undefined, after: ChoiceOutcome | undefined, limit: Bytes | null): TemplateResult {
    const shown = [before, after].filter((one) => one !== undefined);
    const highest = Math.max(1, ...shown.map(({ peak_bytes }) => peak_bytes));
    // A limit far beyond would leave nothing of the bars.
    const far = limit !== null && limit > 3 * highest;
    const max = limit === null || far ? highest : Math.max(highest, limit);
    const present = CATEGORIES.filter((category) => shown.some(({ categories }) => categories[category]));
    return html`<div class="bars">
        ${this.#bar("As it is", "what-if-before", before, max, far ? null : limit)}
        ${this.#bar("With this", "what-if-after", after, max, far ? null : limit)}
      </div>
      <ul class="key">
        ${present.map(
          (category) =>
            html`<li><span class="swatch" style="background:${categoryFill(category)}"></span>${LABELS[category]}</li>`,
        )}
      </ul>`;
  }

  #bar(
    label: string,
    testId: string,
    outcome: ChoiceOutcome | undefined,
    max: Bytes,
    limit: Bytes | null,
  ): TemplateResult {
    const segments = outcome ? segmentsOf(outcome.categories) : [];
    return html`<span class="name">${label}</span>
      <div class="bar" role="img" data-testid="${testId}-bar" aria-label="${label}: ${stackLabel(segments, this.unit)}">
        ${stack(segments, max, this.unit)}
        ${
          limit === null
            ? nothing
            : html`<i
                class="limit"
                title=${titleOf("limit", limit, this.unit)}
                style="left:${(limit / max) * 100}%"
              ></i>`
        }
      </div>
      <b data-testid=${testId}>${outcome ? bytes(outcome.peak_bytes, this.unit) : "not estimated"}</b>`;
  }

  #sentence(
    before: ChoiceOutcome | undefined,
    after: ChoiceOutcome | undefined,
    limit: Bytes | null,
  ): TemplateResult | string {
    if (!after || !before) {
      return "This combination was not estimated. Estimate.what_if(seconds=None) estimates all of them.";
    }
    const saved = after.saving_bytes;
    const spread = formatRange([after.phases["step"]?.[1] ?? 0, after.phases["step"]?.[2] ?? 0], this.unit);
    const share = formatShare(Math.abs(saved), before.peak_bytes);
    return html`Peaks at
    ${bytes(after.peak_bytes, this.unit)}${spread ? ` (a step can be ${spread})` : nothing}${
      saved === 0
        ? nothing
        : html`,
            <span data-testid="what-if-saving">${bytes(Math.abs(saved), this.unit)}</span>
            (${share}) ${saved > 0 ? "less" : "more"} than as it is`
    }.
    ${limit === null ? nothing : this.#verdict(judge(after.phases, limit), limit)}`;
  }

  #verdict({ outcome, margin, phase }: Judgement, limit: Bytes): TemplateResult {
    const where = phase === "step" || phase === "first_step" ? "" : ` in the phase ${phaseLabel(phase)}`;
    return html`<span data-testid="what-if-outcome" data-outcome=${outcome}
        >${outcome === "fits" ? "Fits" : outcome === "may not fit" ? "May not fit" : "Does not fit"}</span
      >
      into ${bytes(limit, this.unit)}:
      <span data-testid="what-if-margin">${bytes(Math.abs(margin), this.unit)}</span>
      ${margin < 0 ? "short" : "to spare"}${where}.`;
  }

  #reset(): void {
    choose(this, { batch: "", optimizer: "", precision: "", mode: "", gpu: "" });
  }

  static override styles = [
    base,
    card,
    fields,
    keys,
    bars,
    css`
      div.controls {
        display: flex;
        flex-wrap: wrap;
        gap: 10px 22px;
        margin-bottom: 14px;
      }
      label {
        display: grid;
        gap: 3px;
        color: var(--soft);
        font-size: 12px;
      }
      label b {
        color: var(--ink);
      }
      select {
        font-size: 13px;
      }
      input[type="range"] {
        width: 180px;
        accent-color: var(--accent);
      }
      .bars {
        display: grid;
        grid-template-columns: max-content 1fr max-content;
        gap: 8px 14px;
        align-items: center;
      }
      .bar {
        height: 20px;
      }
      p {
        margin: 10px 0 0;
      }
      ul.soft {
        margin: 8px 0 0;
        padding-left: 18px;
        font-size: 12px;
      }
      [data-outcome] {
        font-weight: 600;
      }
      [data-outcome="does not fit"] {
        color: var(--bad);
      }
      [data-outcome="may not fit"] {
        color: var(--warn);
      }
    `,
  ];
}
