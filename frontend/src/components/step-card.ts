import { css, html, LitElement, nothing, type PropertyValues, type TemplateResult } from "lit";
import { customElement, property } from "lit/decorators.js";
import { formatBytes, grouped, type Unit } from "../format/bytes";
import { hostWindow } from "../host/parent";
import type { Theme } from "../host/theme";
import { xprofAddress } from "../host/xprof";
import { valueOf, type Load } from "../model/load";
import type { Aligned, Bytes, Curve, Overview, ProfileHeadline } from "../model/types";
import { base, card, fields, keys, segments, tables } from "../style/shared";
import { byteAxis, type ByteAxis } from "../views/axis";
import type { ChartData, Level, Pin, Told } from "../views/chart";
import { curveData, describeBoth, describeMoment, formatTime, overlaid, peakPin } from "../views/curves";
import { parseStretch, stretchText, type Stretch } from "../views/stretch";
import { allocatorLabel, counted, phaseLabel, sessionLabel } from "../views/words";
import { bars } from "./bar";
import { choose } from "./choose";
import "./curve-chart";
import { bytes } from "./figure";
import { itemTable } from "./item-rows";
import "./op-differences";

/** Where a moment that is looked into stands: on which curve, at which tick. */
export interface Mark {
  on: "predicted" | "measured";
  tick: number;
}

/**
 * One step, predicted op by op with the measured one laid over it, and measured over time, on one byte axis.
 */
@customElement("memest-step-card")
export class StepCard extends LitElement {
  @property({ attribute: false }) overview!: Overview;
  @property() phase = "step";
  @property({ attribute: false }) curve: Load<Curve> = { state: "idle" };
  @property() profileId: string | null = null;
  /** XProf's name of the profile; null where XProf is not installed. */
  @property() xprof: string | null = null;
  @property({ attribute: false }) profile: Load<Curve> = { state: "idle" };
  /** The profile's highest step on the axis of the phase that it shows. */
  @property({ attribute: false }) aligned: Load<Aligned> = { state: "idle" };
  /** What of the two curves is on show, as it stands in the address. */
  @property() stretch = "";
  @property() time = "";
  @property({ attribute: false }) mark: Mark | null = null;
  @property() unit: Unit = "GiB";
  @property() theme: Theme = "light";

  /** Made anew only when what is drawn has changed: a chart takes new lines for other lines. */
  #predictedLines: Lines | null = null;
  #measuredLines: Lines | null = null;
  #over: Aligned | null = null;

  override willUpdate(changed: PropertyValues): void {
    const changes = (...names: (keyof StepCard)[]): boolean => names.some((name) => changed.has(name));
    if (changes("curve", "aligned", "phase", "unit")) {
      const [curve, aligned] = [valueOf(this.curve), valueOf(this.aligned)];
      this.#over = aligned?.phase === this.phase ? aligned : null;
      this.#predictedLines = curve ? predictedLines(curve, this.#over, this.unit) : null;
    }
    if (changes("profile", "unit")) {
      const curve = valueOf(this.profile);
      this.#measuredLines = curve ? lines(curve, "measured", this.unit) : null;
    }
  }

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
          >memory in
          use${estimate && headline ? ", predicted and measured on one axis" : nothing}${
            axis.limitBeyond ? `; the limit of ${formatBytes(limit!, this.unit)} lies far above it` : nothing
          }</span
        >
      </header>
      <div class="panels">
        ${estimate ? this.#predicted(axis, levels) : nothing}
        ${headline ? this.#measured(headline, axis, levels) : nothing}
      </div>
      ${
        this.#over
          ? html`<memest-op-differences .aligned=${this.#over} .unit=${this.unit}></memest-op-differences>`
          : nothing
      }
      ${headline?.before.length ? this.#before(headline) : nothing}
    `;
  }

  #predicted(axis: ByteAxis, levels: readonly Level[]): TemplateResult {
    const phases = this.overview.estimate!.phases;
    return html`<section data-testid="predicted-curve">
      <div class="head">
        <h3>${this.#over ? "Predicted and measured, op by op" : "Predicted, op by op"}</h3>
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

  #measured(headline: ProfileHeadline, axis: ByteAxis, levels: readonly Level[]): TemplateResult {
    const { profiles } = this.overview.measured;
    return html`<section data-testid="measured-curve">
      <div class="head">
        <h3>Measured over time</h3>
        ${
          profiles.length > 1
            ? html`<select
                aria-label="Profile"
                @change=${(event: Event) => choose(this, { profile: (event.target as HTMLSelectElement).value })}
              >
                ${profiles.map(
                  (profile) =>
                    html`<option value=${profile.id} ?selected=${profile.id === headline.id}>
                      ${sessionLabel(profile.started_at)} · ${allocatorLabel(profile.allocator)} · ${profile.host}
                    </option>`,
                )}
              </select>`
            : html`<span class="soft" title=${headline.id}
                >${allocatorLabel(headline.allocator)}, ${sessionLabel(headline.started_at)}</span
              >`
        }
        ${
          this.xprof
            ? html`<a data-testid="xprof" href=${xprofAddress(hostWindow(), this.xprof)} target="_blank" rel="noopener"
                >in XProf ↗</a
              >`
            : nothing
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
    const predicted = kind === "predicted";
    const drawn = predicted ? this.#predictedLines : this.#measuredLines;
    if (timeline.ticks.length === 0 || !drawn) {
      return html`<p class="soft">Nothing was allocated or freed here.</p>`;
    }
    const { op = "" } = curve.peak ?? {};
    return html`<memest-curve-chart
        run=${this.overview.name}
        name=${kind}
        data-testid="${kind}-chart"
        data-peak-bytes=${curve.peak_bytes}
        data-events=${timeline.ticks.length}
        .data=${drawn.data}
        .axis=${axis}
        .extent=${curve.extent}
        .stretch=${parseStretch(predicted ? this.stretch : this.time)}
        .levels=${levels}
        .bands=${timeline.spans}
        .pin=${drawn.pin}
        .mark=${this.mark?.on === kind ? this.mark.tick : null}
        .formatX=${timeline.unit === "ns" ? formatTime : grouped}
        caption=${timeline.unit === "ns" ? "time since the profile began" : "ops, in the order in which they run"}
        .describe=${drawn.describe}
        .unit=${this.unit}
        .theme=${this.theme}
        label="${predicted ? "Predicted" : "Measured"} memory in use; the peak is ${formatBytes(
          curve.peak_bytes,
          this.unit,
        )} at ${op}. Arrow keys go from moment to moment, Enter looks into one, plus and minus zoom."
        @stretch=${(event: CustomEvent<Stretch>) =>
          choose(this, { [predicted ? "step" : "time"]: stretchText(event.detail) })}
        @pick=${(event: CustomEvent<number>) => {
          const position = drawn.position(event.detail);
          if (position !== undefined) {
            choose(this, { moment: `${kind[0]}${position}` });
          }
        }}
      ></memest-curve-chart>
      ${predicted ? this.#key() : nothing}
      <p class="below soft">
        ${counted(curve.events, "event")}${
          curve.events > timeline.ticks.length
            ? `, ${timeline.ticks.length.toLocaleString("en-US")} drawn with every high and low among them`
            : nothing
        }${!predicted && this.overview.measured.pipeline_bytes ? " · with the data pipeline" : nothing}
        · drag or turn the wheel to zoom, click a moment to see what is alive
      </p>`;
  }

  /** What the two lines are, where there are two. */
  #key(): TemplateResult | typeof nothing {
    const over = this.#over;
    return over
      ? html`<ul class="key" data-testid="step-key">
          <li><span class="line" style="--colour:var(--accent)"></span>predicted</li>
          <li>
            <span class="line" style="--colour:var(--measured)"></span>measured,
            ${over.step.name}${this.#beside(over.beside_bytes)}
          </li>
        </ul>`
      : nothing;
  }

  /** By how much the measured line was moved, so that both begin at one height. */
  #beside(held: Bytes): TemplateResult | typeof nothing {
    if (held === 0) {
      return nothing;
    }
    return held > 0
      ? html`, without ${bytes(held, this.unit)} that were in use beside it`
      : html`, with ${bytes(-held, this.unit)} added: it began with less in use than predicted`;
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
    keys,
    segments,
    fields,
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
      .head a {
        color: var(--accent);
        font-size: 12px;
      }
      .head .soft {
        font-size: 12px;
      }
      .key {
        margin: 2px 92px 0 70px;
      }
      .line {
        display: inline-block;
        width: 14px;
        border-top: 2px solid var(--colour);
        vertical-align: 3px;
        margin-right: 6px;
      }
      .below {
        font-size: 11.5px;
        margin: 2px 92px 0 70px;
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

/** What a chart draws, and how its moments are told and found on the server. */
interface Lines {
  data: ChartData;
  pin: Pin | null;
  describe: (index: number) => Told;
  /** Which event of the timeline a moment is. */
  position: (index: number) => number | undefined;
}

function lines(curve: Curve, kind: "predicted" | "measured", unit: Unit): Lines {
  const { timeline } = curve;
  const [colour, area] = kind === "predicted" ? ["--accent", "--area"] : ["--measured", "--measured-area"];
  return {
    data: curveData(curve, kind, colour, area),
    pin: peakPin(curve, unit, colour),
    describe: (index) => describeMoment(timeline, index, unit),
    position: (index) => timeline.positions[index],
  };
}

function predictedLines(curve: Curve, aligned: Aligned | null, unit: Unit): Lines {
  const alone = lines(curve, "predicted", unit);
  if (!aligned) {
    return alone;
  }
  const { timeline } = curve;
  const { data, moments } = overlaid(timeline, aligned);
  return {
    ...alone,
    data,
    describe: (index) => describeBoth(timeline, aligned, moments[index]!, unit),
    position: (index) => timeline.positions[moments[index]!.predicted],
  };
}
