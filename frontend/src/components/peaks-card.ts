import { css, html, LitElement, nothing, type TemplateResult } from "lit";
import { customElement, property } from "lit/decorators.js";
import { exactBytes, formatBytes, grouped, type Unit } from "../format/bytes";
import type { Theme } from "../host/theme";
import type { Bytes, DevicePeaks, Overview } from "../model/types";
import { base, card } from "../style/shared";
import { byteAxis, type ByteAxis } from "../views/axis";
import type { Level } from "../views/chart";
import { describeWindow, peaksData } from "../views/curves";
import { deviceOf } from "../views/device";
import { counted } from "../views/words";
import "./curve-chart";
import { bytes } from "./figure";

/** Measured peaks step by step, one chart for each device, with what was predicted and the limit. */
@customElement("memest-peaks-card")
export class PeaksCard extends LitElement {
  @property({ attribute: false }) overview!: Overview;
  @property({ attribute: false }) devices: readonly DevicePeaks[] = [];
  @property() unit: Unit = "GiB";
  @property() theme: Theme = "light";

  override render(): TemplateResult {
    const measured = this.devices.filter((device) => device.windows.length);
    const limit = this.overview.verdict?.limit_bytes ?? null;
    const beyond = measured.length > 0 && measured.every((device) => this.#axis(device, limit).limitBeyond);
    return html`
      <header>
        <h2>Measured peaks</h2>
        <span class="soft"
          >step by step${beyond ? `; the limit of ${formatBytes(limit!, this.unit)} lies far above` : nothing}</span
        >
      </header>
      ${
        measured.length
          ? measured.map((device) => this.#device(device))
          : html`<p class="soft" data-testid="no-peaks">
              No step of this run was measured. Add <code>memest.MemoryCallback(logdir)</code> to
              <code>model.fit(callbacks=[…])</code> to see what each step really needed.
            </p>`
      }
      ${this.#totals()} ${this.#host()}
    `;
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

  #device(device: DevicePeaks): TemplateResult {
    const predicted = this.#predicted(device);
    const levels: Level[] = [];
    const limit = this.overview.verdict?.limit_bytes ?? null;
    if (predicted !== null) {
      levels.push({ label: "predicted", bytes: predicted, colour: "--accent", side: "right" });
    }
    if (limit !== null) {
      levels.push({ label: "limit", bytes: limit, colour: "--limit", side: "left" });
    }
    const axis = this.#axis(device, limit);
    const last = device.windows.at(-1)![1];
    const highest = Math.max(...device.windows.map((window) => window[2]));
    return html`
      <memest-curve-chart
        name="peaks-${device.device}"
        data-testid="peaks-chart"
        data-device=${device.device}
        .data=${peaksData(device, { peak: "--measured", current: "--soft", area: "--measured-area" })}
        .axis=${axis}
        .levels=${levels}
        .formatX=${grouped}
        .describe=${(index: number) => describeWindow(device, index, this.unit)}
        .unit=${this.unit}
        .theme=${this.theme}
        label="Measured peaks of ${counted(last + 1, "step")} on ${device.device}; the highest is ${formatBytes(
          highest,
          this.unit,
        )}. Arrow keys go from step to step."
      ></memest-curve-chart>
      <ul class="key">
        <li><span class="line" style="--colour:var(--measured)"></span>peak of a step${this.#pipeline(device)}</li>
        <li><span class="line" style="--colour:var(--soft)"></span>in use after it</li>
        <li>${device.device}, ${counted(last + 1, "step")}, ${device.source}</li>
        ${
          device.before_bytes === null
            ? nothing
            : html`<li data-bytes=${device.before_bytes} title=${exactBytes(device.before_bytes)}>
                before the first step: ${formatBytes(device.before_bytes, this.unit)}
              </li>`
        }
      </ul>
    `;
  }

  /** What the peaks of this device hold beside the step; the prediction does not. */
  #pipeline(device: DevicePeaks): TemplateResult | typeof nothing {
    const { pipeline_bytes: held } = this.overview.measured;
    return held && this.#predicted(device) !== null
      ? html`, with about ${bytes(held, this.unit)} of the data pipeline`
      : nothing;
  }

  /** What was predicted for this device; null for the others. */
  #predicted(device: DevicePeaks): Bytes | null {
    const { estimate } = this.overview;
    return estimate && deviceOf(estimate, this.devices) === device ? estimate.peak_bytes : null;
  }

  #axis(device: DevicePeaks, limit: Bytes | null): ByteAxis {
    const peaks = device.windows.map((window) => window[2]);
    return byteAxis([...peaks, this.#predicted(device) ?? 0], limit, this.unit);
  }

  static override styles = [
    base,
    card,
    css`
      p {
        margin: 0;
        max-width: 62ch;
      }
      .host {
        margin-top: 8px;
        font-size: 12px;
      }
    `,
    css`
      .key {
        display: flex;
        flex-wrap: wrap;
        gap: 4px 16px;
        list-style: none;
        margin: 8px 0 0;
        padding: 0;
        color: var(--soft);
        font-size: 12px;
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
