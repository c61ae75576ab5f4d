import { css, html, LitElement, nothing, type TemplateResult } from "lit";
import { customElement, property } from "lit/decorators.js";
import { formatBytes, grouped, type Unit } from "../format/bytes";
import type { Theme } from "../host/theme";
import { valueOf, type Load } from "../model/load";
import type { Curve, Overview, ProfileHeadline } from "../model/types";
import { base, card, segments, tables } from "../style/shared";
import { byteAxis, type ByteAxis } from "../views/axis";
import type { Level } from "../views/chart";
import { curveData, describeMoment, formatTime, peakPin } from "../views/curves";
import { parseStretch, stretchText, type Stretch } from "../views/stretch";
import { counted, phaseLabel } from "../views/words";
import { bars } from "./bar";
import { choose } from "./choose";
import "./curve-chart";
import { bytes } from "./figure";
import { itemTable } from "./item-rows";

/** Where a moment that is looked into stands: on which curve, at which tick. */
export interface Mark {
  on: "predicted" | "measured";
  tick: number;
}

/**
 * One step, predicted op by op and measured over time, side by side on one byte axis.
 */
@customElement("memest-step-card")
export class StepCard extends LitElement {
  @property({ attribute: false }) overview!: Overview;
  @property() phase = "step";
  @property({ attribute: false }) curve: Load<Curve> = { state: "idle" };
  @property() profileId: string | null = null;
  @property({ attribute: false }) profile: Load<Curve> = { state: "idle" };
  /** What of the two curves is on show, as it stands in the address. */
  @property() stretch = "";
  @property() time = "";
  @property({ attribute: false }) mark: Mark | null = null;
  @property() unit: Unit = "GiB";
  @property() theme: Theme = "light";

  override render(): TemplateResult {
    const { estimate, verdict, measured } = this.overview;
    const limit = verdict?.limit_bytes ?? null;
    const headline = measured.profiles.find(({ id }) => id === this.profileId);
    // From the overview and not from the curves: the axis stands before they are there, and neither of them moves it.
    const peak = estimate?.phases.find(({ name }) => name === this.phase)?.peak_bytes ?? 0;
    const axis = byteAxis([peak, headline?.peak_bytes ?? 0], limit, this.unit);
    const levels: Level[] = limit === null ? [] : [{ label: "limit", bytes: limit, colour: "--limit", side: "left" }];
    return html`
      <header>
        <h2>One step</h2>
        <span class="soft"
          >memory in use, predicted and measured on one
          axis${axis.limitBeyond ? `; the limit of ${formatBytes(limit!, this.unit)} lies far above it` : nothing}</span
        >
      </header>
      <div class="panels">
        ${estimate ? this.#predicted(axis, levels) : nothing} ${this.#measured(headline, axis, levels)}
      </div>
      ${headline?.before.length ? this.#before(headline) : nothing}
    `;
  }

  #predicted(axis: ByteAxis, levels: readonly Level[]): TemplateResult {
    const phases = this.overview.estimate!.phases;
    return html`<section data-testid="predicted-curve">
      <div class="head">
        <h3>Predicted</h3>
        <div class="segments" role="group" aria-label="Phase of the predicted curve">
          ${phases.map(
            ({ name }) =>
              html`<button
                type="button"
                aria-pressed=${name === this.phase ? "true" : "false"}
                @click=${() => choose(this, { phase: name })}
              >
                ${phaseLabel(name)}
              </button>`,
          )}
        </div>
      </div>
      ${this.#chart(this.curve, "predicted", axis, levels)}
    </section>`;
  }

  #measured(headline: ProfileHeadline | undefined, axis: ByteAxis, levels: readonly Level[]): TemplateResult {
    const { profiles } = this.overview.measured;
    if (!headline) {
      return html`<section data-testid="measured-curve">
        <div class="head"><h3>Measured</h3></div>
        <div class="missing" data-testid="no-profile">
          <p>This run has no memory profile. To record one, profile a few steps:</p>
          <pre><code>memest.MemoryCallback(logdir, profile_batch=(2, 4))</code></pre>
          <p class="soft">and pass it to <code>model.fit(callbacks=[…])</code>.</p>
        </div>
      </section>`;
    }
    return html`<section data-testid="measured-curve">
      <div class="head">
        <h3>Measured</h3>
        ${
          profiles.length > 1
            ? html`<select
                aria-label="Profile"
                @change=${(event: Event) => choose(this, { profile: (event.target as HTMLSelectElement).value })}
              >
                ${profiles.map(
                  (profile) =>
                    html`<option value=${profile.id} ?selected=${profile.id === headline.id}>
                      ${profile.started_at} · ${profile.allocator} · ${profile.host}
                    </option>`,
                )}
              </select>`
            : html`<span class="soft" title=${headline.id}>${headline.allocator}, ${headline.started_at}</span>`
        }
      </div>
      ${this.#chart(this.profile, "measured", axis, [
        ...levels,
        { label: "in use before", bytes: headline.before_bytes, colour: "--soft", side: "right", below: true },
      ])}
    </section>`;
  }

  #chart(load: Load<Curve>, kind: "predicted" | "measured", axis: ByteAxis, levels: readonly Level[]): TemplateResult {
    const curve = valueOf(load);
    if (load.state === "failed") {
      return html`<p class="failed" role="alert">${load.message}</p>`;
    }
    if (!curve) {
      return html`<p class="soft waiting">Loading …</p>`;
    }
    const { timeline } = curve;
    if (timeline.ticks.length === 0) {
      return html`<p class="soft">Nothing was allocated or freed here.</p>`;
    }
    const predicted = kind === "predicted";
    const colour = predicted ? "--accent" : "--measured";
    const { op = "" } = curve.peak ?? {};
    return html`<memest-curve-chart
        data-testid="${kind}-chart"
        data-peak-bytes=${curve.peak_bytes}
        data-events=${timeline.ticks.length}
        .data=${curveData(curve, kind, colour, predicted ? "--area" : "--measured-area")}
        .axis=${axis}
        .extent=${curve.extent}
        .stretch=${parseStretch(predicted ? this.stretch : this.time)}
        .levels=${levels}
        .bands=${timeline.spans}
        .pin=${peakPin(curve, this.unit, colour)}
        .mark=${this.mark?.on === kind ? this.mark.tick : null}
        .formatX=${timeline.unit === "ns" ? formatTime : grouped}
        .describe=${(index: number) => describeMoment(timeline, index, this.unit)}
        .unit=${this.unit}
        .theme=${this.theme}
        label="${predicted ? "Predicted" : "Measured"} memory in use; the peak is ${formatBytes(
          curve.peak_bytes,
          this.unit,
        )} at ${op}. Arrow keys go from moment to moment, Enter looks into one, plus and minus zoom."
        @stretch=${(event: CustomEvent<Stretch>) =>
          choose(this, { [predicted ? "step" : "time"]: stretchText(event.detail) })}
        @pick=${(event: CustomEvent<number>) =>
          choose(this, { moment: `${kind[0]}${timeline.positions[event.detail]!}` })}
      ></memest-curve-chart>
      <p class="below soft">
        ${predicted ? "op by op, in the predicted order" : "time since the profile started"} ·
        ${counted(curve.events, "event")}${
          curve.events > timeline.ticks.length
            ? `, ${timeline.ticks.length.toLocaleString("en-US")} drawn with every high and low among them`
            : nothing
        }${!predicted && this.overview.measured.pipeline_bytes ? " · with the data pipeline" : nothing}
      </p>`;
  }

  #before(headline: ProfileHeadline): TemplateResult {
    return html`<details data-testid="profile-before">
      <summary>
        In use before the profile started: ${bytes(headline.before_bytes, this.unit)}
        <span class="soft">${counted(headline.before.length, "item")}, matched by size</span>
      </summary>
      <div class="scroller">${itemTable(headline.before, headline.before_bytes, this.unit)}</div>
    </details>`;
  }

  static override styles = [
    base,
    card,
    segments,
    tables,
    bars,
    css`
      .panels {
        display: grid;
        grid-template-columns: repeat(auto-fit, minmax(min(340px, 100%), 1fr));
        gap: 12px 20px;
      }
      section {
        min-width: 0;
      }
      .head {
        display: flex;
        flex-wrap: wrap;
        align-items: center;
        justify-content: space-between;
        gap: 4px 12px;
        min-height: 26px;
        margin-bottom: 4px;
      }
      h3 {
        margin: 0;
        font-size: 12.5px;
        font-weight: 600;
      }
      .head .soft {
        font-size: 12px;
      }
      select {
        font: inherit;
        font-size: 12px;
        color: var(--ink);
        background: var(--card);
        border: 1px solid var(--edge);
        border-radius: 5px;
        padding: 2px 6px;
        max-width: 100%;
      }
      .below {
        font-size: 11.5px;
        margin: 2px 0 0 70px;
      }
      .missing {
        border: 1px dashed var(--edge);
        border-radius: var(--radius);
        padding: 18px 20px;
        max-width: 560px;
      }
      .missing p {
        margin: 0;
      }
      pre {
        margin: 8px 0;
        padding: 8px 10px;
        background: var(--code);
        border-radius: 4px;
        white-space: pre-wrap;
      }
      .failed {
        color: var(--bad);
      }
      .waiting {
        min-height: 250px;
      }
      details {
        margin-top: 12px;
        border-top: 1px solid var(--line);
        padding-top: 10px;
      }
      summary {
        cursor: pointer;
      }
      .scroller th,
      .scroller td {
        white-space: nowrap;
      }
      .scroller {
        overflow: auto;
        max-height: 360px;
        margin-top: 8px;
      }
    `,
  ];
}
