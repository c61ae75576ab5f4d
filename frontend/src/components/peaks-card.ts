import { css, html, LitElement, nothing, type PropertyValues, type TemplateResult } from "lit";
import { customElement, property } from "lit/decorators.js";
import { exactBytes, formatBytes, grouped, type Unit } from "../format/bytes";
import type { Theme } from "../host/theme";
import { valueOf, type Load } from "../model/load";
import type { Bytes, DevicePeaks, Overview, PeaksAnswer } from "../model/types";
import { base, card, keys, segments } from "../style/shared";
import { byteAxis, type ByteAxis } from "../views/axis";
import type { Band, ChartData, Level } from "../views/chart";
import { describeWindow, epochBands, peaksData, trendOf } from "../views/curves";
import { deviceOf } from "../views/device";
import { seriesOf, shownSeries, type Series } from "../views/series";
import { parseStretch, stretchText, type Stretch } from "../views/stretch";
import { counted } from "../views/words";
import { choose } from "./choose";
import "./curve-chart";
import { bytes } from "./figure";

/** Measured peaks step by step: of training, on one device or another, of evaluation, or of the host; and what grows. */
@customElement("memest-peaks-card")
export class PeaksCard extends LitElement {
  @property({ attribute: false }) overview!: Overview;
  @property({ attribute: false }) peaks: Load<PeaksAnswer> = { state: "idle" };
  /** Key of the series on show, and which steps of it, as they stand in the address. */
  @property() chosen = "";
  @property() stretch = "";
  @property() unit: Unit = "GiB";
  @property() theme: Theme = "light";

  #series: Series[] = [];
  #shown: Series | undefined;
  #data: ChartData = { x: [], series: [] };
  #bands: Band[] = [];

  override willUpdate(changed: PropertyValues): void {
    if (["overview", "peaks", "chosen"].some((name) => changed.has(name))) {
      const answer = valueOf(this.peaks);
      this.#series = answer ? seriesOf(answer) : [];
      this.#shown = shownSeries(this.#series, this.chosen, this.overview.estimate);
      this.#data = this.#shown
        ? peaksData(this.#shown.peaks, { peak: "--measured", current: "--soft", area: "--measured-area" })
        : { x: [], series: [] };
      this.#bands = this.#shown ? epochBands(this.#shown.peaks) : [];
    }
  }

  override render(): TemplateResult {
    const shown = this.#shown;
    const limit = shown && shown.what !== "host" ? (this.overview.verdict?.limit_bytes ?? null) : null;
    const axis = shown ? this.#axis(shown, limit) : null;
    return html`
      <header>
        <h2>Measured peaks</h2>
        <span class="soft"
          >step by
          step${axis?.limitBeyond ? `; the limit of ${formatBytes(limit!, this.unit)} lies far above` : nothing}</span
        >
        ${this.#series.length > 1 ? this.#choice(shown) : nothing}
      </header>
      ${shown && axis ? this.#chart(shown, axis, limit) : this.#nothing()} ${this.#totals()} ${this.#host()}
    `;
  }

  #choice(shown: Series | undefined): TemplateResult {
    return html`<div class="controls segments" role="group" aria-label="What was measured" data-testid="series">
      ${this.#series.map(
        ({ key, label, leak }) =>
          html`<button
            type="button"
            data-key=${key}
            aria-pressed=${key === shown?.key ? "true" : "false"}
            @click=${() => choose(this, { series: key })}
          >
            ${label}${leak ? html`<span class="grows" title=${leak.sentence}> ↗ grows</span>` : nothing}
          </button>`,
      )}
    </div>`;
  }

  #nothing(): TemplateResult | typeof nothing {
    if (this.peaks.state === "failed") {
      return html`<p class="failed" role="alert">${this.peaks.message}</p>`;
    }
    if (this.overview.measured.devices.length === 0) {
      return nothing;
    }
    return valueOf(this.peaks)
      ? html`<p class="soft" data-testid="no-steps">No step has been measured yet.</p>`
      : html`<p class="soft waiting">Loading …</p>`;
  }

  #totals(): TemplateResult[] {
    return (this.overview.measured.totals ?? []).map(
      ({ device, model, total_bytes, used_bytes, process_bytes }) =>
        html`<p class="soft host" data-testid="totals" data-device=${device}>
          ${device}, ${model}: all processes at most ${bytes(used_bytes, this.unit)} of
          ${bytes(total_bytes, this.unit)}${
            process_bytes === null
              ? nothing
              : html`, this one ${bytes(process_bytes, this.unit)} with its allocator's pool, CUDA context and libraries`
          }.
        </p>`,
    );
  }

  #host(): TemplateResult | typeof nothing {
    const { host } = this.overview.measured;
    return host
      ? html`<p class="soft host" data-testid="host" title=${host.source}>
          Host memory of the process: ${bytes(host.first_bytes, this.unit)} before the first step,
          ${bytes(host.last_bytes, this.unit)} after the last, at most ${bytes(host.peak_bytes, this.unit)}.
        </p>`
      : nothing;
  }

  #chart({ what, label, peaks, leak }: Series, axis: ByteAxis, limit: Bytes | null): TemplateResult {
    const predicted = this.#predicted(what, peaks);
    const levels: Level[] = [];
    if (predicted !== null) {
      levels.push({ label: "predicted", bytes: predicted, colour: "--accent", side: "right" });
    }
    if (limit !== null) {
      levels.push({ label: "limit", bytes: limit, colour: "--limit", side: "left" });
    }
    const last = peaks.windows.at(-1)![1];
    const highest = Math.max(...peaks.windows.map((window) => window[2]));
    const noun = what === "evaluate" || what === "predict" ? "batch" : "step";
    return html`
      <memest-curve-chart
        run=${this.overview.name}
        name="peaks"
        data-testid="peaks-chart"
        data-device=${peaks.device}
        data-what=${what}
        .data=${this.#data}
        .axis=${axis}
        .extent=${[0, last + 1] as const}
        .stretch=${parseStretch(this.stretch)}
        .levels=${levels}
        .bands=${this.#bands}
        .trend=${leak ? trendOf(leak, this.unit) : null}
        .formatX=${grouped}
        caption=${noun === "batch" ? "batch" : "training step"}
        .describe=${(index: number) => describeWindow(peaks, index, this.unit)}
        .unit=${this.unit}
        .theme=${this.theme}
        label="Measured peaks of ${counted(last + 1, noun)}, ${label}; the highest is ${formatBytes(
          highest,
          this.unit,
        )}. Arrow keys go from step to step, plus and minus zoom."
        @stretch=${(event: CustomEvent<Stretch>) => choose(this, { steps: stretchText(event.detail) })}
      ></memest-curve-chart>
      <ul class="key">
        <li>
          <span class="line" style="--colour:var(--measured)"></span>peak of a ${noun}${this.#pipeline(what, peaks)}
        </li>
        <li><span class="line" style="--colour:var(--soft)"></span>in use after it</li>
        <li>${label}, ${counted(last + 1, noun)}, ${peaks.source}</li>
        ${
          peaks.before_bytes === null
            ? nothing
            : html`<li data-bytes=${peaks.before_bytes} title=${exactBytes(peaks.before_bytes)}>
                before the first step: ${formatBytes(peaks.before_bytes, this.unit)}
              </li>`
        }
      </ul>
      ${leak ? html`<p class="leak" data-testid="leak">${leak.sentence}</p>` : nothing}
    `;
  }

  /** What the peaks of this device hold beside the step; the prediction does not. */
  #pipeline(what: Series["what"], peaks: DevicePeaks): TemplateResult | typeof nothing {
    const { pipeline_bytes: held } = this.overview.measured;
    return held && this.#predicted(what, peaks) !== null
      ? html`, with about ${bytes(held, this.unit)} of the data pipeline`
      : nothing;
  }

  /** What was predicted for these peaks; null where nothing was. */
  #predicted(what: Series["what"], peaks: DevicePeaks): Bytes | null {
    const { estimate } = this.overview;
    if (what === "train") {
      const devices = this.#series.filter((one) => one.what === "train").map((one) => one.peaks);
      return estimate && deviceOf(estimate, devices)?.device === peaks.device ? estimate.peak_bytes : null;
    }
    return estimate?.phases.find(({ name }) => name === what)?.peak_bytes ?? null;
  }

  #axis({ what, peaks }: Series, limit: Bytes | null): ByteAxis {
    const highest = peaks.windows.map((window) => window[2]);
    return byteAxis([...highest, this.#predicted(what, peaks) ?? 0], limit, this.unit);
  }

  static override styles = [
    base,
    card,
    keys,
    segments,
    css`
      p {
        margin: 0;
        max-width: 100ch;
      }
      .segments {
        flex-wrap: wrap;
      }
      .grows {
        color: var(--warn);
        font-weight: 600;
      }
      .leak {
        margin-top: 8px;
        padding: 8px 12px;
        max-width: none;
        background: var(--warn-wash);
        color: var(--warn);
        border-radius: 4px;
      }
      .failed {
        color: var(--bad);
      }
      .waiting {
        min-height: 290px;
      }
      .host {
        margin-top: 8px;
        font-size: 12px;
      }
    `,
    css`
      .key {
        margin-right: 92px;
      }
      .line {
        display: inline-block;
        width: 14px;
        border-top: 2px solid var(--colour);
        vertical-align: 3px;
        margin-right: 6px;
      }
    `,
  ];
}
