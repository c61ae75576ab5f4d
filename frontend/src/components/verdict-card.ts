import { css, html, LitElement, nothing, type TemplateResult } from "lit";
import { customElement, property } from "lit/decorators.js";
import { exactBytes, formatDifference, formatRange, grouped, type Unit } from "../format/bytes";
import type { Advice, HostEstimate, Measured, Overview } from "../model/types";
import { base, card, fields } from "../style/shared";
import { deviceOf } from "../views/device";
import { counted, modeLabel, phaseLabel, poolLabel } from "../views/words";
import { showCard } from "./choose";
import { bytes, plainBytes } from "./figure";
import "./term";

const RAN_OUT = "ran out of memory";

/** One sentence first: does it fit, or that it did not. Then the figures behind it and what they are about. */
@customElement("memest-verdict-card")
export class VerdictCard extends LitElement {
  @property({ attribute: false }) overview!: Overview;
  /** What is known of the data pipeline: the one thing that a run may be about without an estimate. */
  @property({ attribute: false }) host: HostEstimate | null = null;
  @property() unit: Unit = "GiB";

  override render(): TemplateResult {
    const { verdict, crash } = this.overview;
    const outcome = crash ? RAN_OUT : (verdict?.outcome ?? "unknown");
    return html`<div class="card" data-outcome=${outcome} data-testid="verdict">
      <div class="words">
        <h1 data-testid="verdict-sentence">${crash ? crash.sentence : this.#sentence()}</h1>
        ${crash ? this.#predicted() : nothing} ${this.#why()} ${this.#fix()} ${this.#risks()} ${this.#about()}
      </div>
      <dl>${this.#figures()}</dl>
    </div>`;
  }

  #sentence(): TemplateResult | string {
    const { estimate, verdict, measured } = this.overview;
    if (verdict) {
      return verdict.sentence;
    }
    if (estimate) {
      return html`Needs ${bytes(estimate.peak_bytes, this.unit)}. Give a limit above to see whether it fits.`;
    }
    if (measured.peak_bytes !== null) {
      return html`Used ${bytes(measured.peak_bytes, this.unit)} at its peak, measured.`;
    }
    if (this.host) {
      return html`The data pipeline holds ${bytes(this.host.peak_bytes, this.unit)} of the host's memory at its peak.`;
    }
    return this.overview.problems.length
      ? "What was recorded of this run could not be read."
      : "Neither an estimate nor a measured peak of this run was recorded.";
  }

  /** What the estimate says of a run that ran out of memory all the same: no more than a prediction. */
  #predicted(): TemplateResult {
    return html`<p class="why">
      ${
        this.overview.verdict
          ? html`By the estimate: <span data-testid="verdict-predicted">${this.overview.verdict.sentence}</span>`
          : nothing
      }
      <button type="button" class="link" @click=${() => showCard(this, "crash")}>What happened</button>
    </p>`;
  }

  /** What most of it is. */
  #why(): TemplateResult | typeof nothing {
    const [first] = this.overview.estimate?.dominant ?? [];
    return first
      ? html`<p class="why" data-testid="verdict-why">
          ${first.sentence} <button type="button" class="link" @click=${() => showCard(this, "dominant")}>More</button>
        </p>`
      : nothing;
  }

  /** What would help: the smallest change that makes it fit, and the one that saves most. */
  #fix(): TemplateResult | typeof nothing {
    const { verdict, advice, crash } = this.overview;
    if (!crash && (!verdict || verdict.outcome === "fits")) {
      return nothing;
    }
    return html`<p class="why" data-testid="verdict-fix">
      ${advice ? html`${this.#smallest(advice)} ${this.#best(advice)} <button type="button" class="link" @click=${() => showCard(this, "advice")}>All changes</button>` : ASK_FOR_ADVICE}
    </p>`;
  }

  #smallest({ combination, levers, limit_bytes, fits }: Advice): TemplateResult | typeof nothing {
    if (fits) {
      return nothing;
    }
    const forOther =
      limit_bytes === this.overview.verdict?.limit_bytes
        ? nothing
        : html` for the limit of ${bytes(limit_bytes, this.unit)}`;
    if (!combination) {
      return html`No change that was tried makes it fit${forOther}.`;
    }
    const titles = combination.names.map((name) => levers.find((lever) => lever.name === name)?.title ?? name);
    return html`Smallest change that fits${forOther}: <b>${titles.join(" and ")}</b>, then it needs at most
      ${bytes(combination.needs_bytes, this.unit)}.`;
  }

  /** The change that saves most, where it is not the smallest that fits. */
  #best({ combination, levers }: Advice): TemplateResult | typeof nothing {
    const [most] = levers.filter(({ saving_bytes }) => saving_bytes > 0).sort((a, b) => a.needs_bytes - b.needs_bytes);
    return most && combination?.names.join() !== most.name
      ? html`<span data-testid="verdict-best"
          >What saves most: <b>${most.title}</b>, then at most ${bytes(most.needs_bytes, this.unit)}.</span
        >`
      : nothing;
  }

  #risks(): TemplateResult[] {
    const { verdict, crash } = this.overview;
    // What the estimate had said, its risks included, stands in the card about the crash.
    const risks = crash ? [] : (verdict?.risks ?? []);
    return risks.map((risk) => html`<p class="risk" data-testid="verdict-risk">${risk}</p>`);
  }

  #about(): TemplateResult | typeof nothing {
    const { estimate, problems } = this.overview;
    if (!estimate && problems.length) {
      return nothing;
    }
    if (!estimate) {
      return html`<p>
        This run holds no estimate. Add <code>memest.log_model(model, logdir=…)</code> to its script to see what the
        memory is for.
      </p>`;
    }
    const { subject } = estimate;
    const facts = [
      html`<b>${subject.model_name}</b>${
          subject.model_class.toLowerCase() === subject.model_name.toLowerCase() ? nothing : ` (${subject.model_class})`
        }`,
      html`<span class="number">${grouped(subject.parameters)}</span> parameters`,
      subject.trainable_parameters === subject.parameters
        ? null
        : html`<span class="number">${grouped(subject.trainable_parameters)}</span> of them trainable`,
      subject.optimizer ?? "no optimizer",
      `batch ${subject.batch_size}`,
      html`<memest-term word=${subject.mode}>${modeLabel(subject.mode)}</memest-term>`,
      html`${subject.device}, <memest-term word=${subject.pool}>${poolLabel(subject.pool)}</memest-term>`,
    ].filter((fact) => fact !== null);
    return html`<p class="facts">
      ${facts.map((fact, n) => html`${n ? html`<span class="dot">·</span>` : nothing}${fact}`)}
    </p>`;
  }

  #figures(): TemplateResult[] {
    const { estimate, verdict, measured, crash } = this.overview;
    const figures: TemplateResult[] = [];
    if (estimate) {
      const phase = estimate.phases.find(({ name }) => name === estimate.peak_phase);
      const spread = phase && formatRange(phase.peak_range, this.unit);
      figures.push(
        figure(
          "Predicted peak",
          "predicted-peak",
          bytes(estimate.peak_bytes, this.unit),
          html`in
          ${inPhase(estimate.peak_phase)}${
            spread ? html`, <memest-term word="range">can be ${spread}</memest-term>` : nothing
          }`,
        ),
      );
    }
    const device = deviceOf(estimate, measured.devices);
    figures.push(
      measured.peak_bytes === null
        ? figure("Measured peak", "measured-peak", html`<span class="none">–</span>`, "not measured")
        : figure(
            "Measured peak",
            "measured-peak",
            bytes(measured.peak_bytes, this.unit),
            // What it would have needed beyond is not known, so no prediction can be held against it.
            crash
              ? "until it ran out"
              : measured.difference === null
                ? device
                  ? `${device.device}, ${counted(device.steps, "step")}`
                  : ""
                : html`prediction
                    <span data-testid="difference" data-fraction=${measured.difference}
                      >${formatDifference(measured.difference)}</span
                    >${device ? `, ${counted(device.steps, "step")}` : ""}`,
            pipelineNote(measured, this.unit),
          ),
    );
    if (verdict) {
      const short = verdict.margin_bytes < 0;
      figures.push(
        figure("Limit", "limit", bytes(verdict.limit_bytes, this.unit), verdict.limit_name ?? ""),
        figure(
          short ? "Short by" : "To spare",
          "margin",
          html`<span class="margin">${bytes(Math.abs(verdict.margin_bytes), this.unit)}</span>`,
          crash ? html`predicted: ${verdict.outcome}` : verdict.outcome,
        ),
      );
    }
    return figures;
  }

  static override styles = [
    base,
    card,
    fields,
    css`
      :host {
        padding: 0;
      }
      .card {
        display: flex;
        flex-wrap: wrap;
        align-items: center;
        gap: 14px 32px;
        padding: 16px 20px 16px 19px;
        border-left: 5px solid var(--tone, var(--edge));
        border-radius: var(--radius);
      }
      [data-outcome="fits"] {
        --tone: var(--good);
      }
      [data-outcome="may not fit"] {
        --tone: var(--warn);
      }
      [data-outcome="ran out of memory"],
      [data-outcome="does not fit"] {
        --tone: var(--bad);
      }
      .words {
        flex: 1 1 520px;
        min-width: 0;
        max-width: 1200px;
        overflow-wrap: anywhere;
      }
      h1 {
        margin: 0;
        font-size: 23px;
        line-height: 1.25;
        font-weight: 600;
        letter-spacing: -0.2px;
        text-wrap: pretty;
      }
      p {
        margin: 6px 0 0;
        color: var(--soft);
        font-size: 13.5px;
      }
      p b,
      p.why {
        color: var(--ink);
      }
      p b {
        font-weight: 600;
      }
      p.why,
      p.risk {
        max-width: 95ch;
        text-wrap: pretty;
      }
      .dot {
        margin: 0 6px;
      }
      dl {
        display: flex;
        flex-wrap: wrap;
        gap: 12px 30px;
        margin: 0;
      }
      dl div {
        min-width: 96px;
        max-width: 30ch;
      }
      dt,
      dd.note {
        color: var(--soft);
        font-size: 12px;
      }
      dd {
        margin: 0;
      }
      dd.value {
        font-size: 20px;
        font-weight: 600;
        line-height: 1.3;
      }
      .value .unit {
        font-size: 13px;
        font-weight: 500;
      }
      .pipeline {
        max-width: 30ch;
      }
      .margin {
        color: var(--tone);
      }
      [data-outcome="ran out of memory"] .margin {
        color: inherit;
      }
      .none {
        color: var(--soft);
      }
    `,
  ];
}

/** What lay in the same allocator as the steps and is none of theirs. */
function pipelineNote({ pipeline_bytes: held, total_peak_bytes: total }: Measured, unit: Unit): Piece {
  if (!held || total === null) {
    return nothing;
  }
  const why = `In all ${exactBytes(total)} were in use at most. What of it was there between the steps, beyond the variables, is taken for the data pipeline's.`;
  return html`<dd class="note pipeline" title=${why}>
    +
    <span class="number" data-testid="pipeline-bytes" data-bytes=${held} title=${exactBytes(held)}
      >${plainBytes(held, unit)}</span
    >
    of the data pipeline, which on a CPU shares the allocator
  </dd>`;
}

type Piece = TemplateResult | typeof nothing;

function figure(
  term: string,
  name: string,
  value: TemplateResult,
  note: TemplateResult | string,
  more: Piece = nothing,
): TemplateResult {
  return html`<div data-testid=${name}>
    <dt><memest-term word=${term.toLowerCase()}>${term}</memest-term></dt>
    <dd class="value">${value}</dd>
    <dd class="note">${note || html`&nbsp;`}</dd>
    ${more}
  </div>`;
}

function inPhase(name: string): string {
  return name === "step" ? "a step" : `the ${phaseLabel(name).toLowerCase()}`;
}

const ASK_FOR_ADVICE = html`To see what would make it fit, log the estimate with
  <code>memest.log_model(model, …, advice=True)</code>.`;
