import { css, html, LitElement, nothing, type TemplateResult } from "lit";
import { customElement, property } from "lit/decorators.js";
import { exactBytes, formatBytes, formatShape, type Unit } from "../format/bytes";
import { CATEGORIES, type Bytes, type Crash } from "../model/types";
import { base, card, fields, tables } from "../style/shared";
import type { Segment } from "../views/phases";
import { counted, phaseLabel } from "../views/words";
import { bars, stack, stackLabel } from "./bar";
import { showCard } from "./choose";
import { bytes, plainBytes, titleOf } from "./figure";
import { itemTable } from "./item-rows";

/** Why a run ran out of memory: what was asked for, whose it was, what was there already, and what to change. */
@customElement("memest-crash-card")
export class CrashCard extends LitElement {
  @property({ attribute: false }) crash!: Crash;
  /** Whether the page tells what each change would save. */
  @property({ type: Boolean }) advised = false;
  @property() unit: Unit = "GiB";

  override render(): TemplateResult {
    const { crash } = this;
    return html`<section data-testid="crash" aria-labelledby="crash">
      <h2 id="crash">Out of memory</h2>
      <p class="headline" role="alert" data-testid="crash-headline">${crash.headline}</p>
      <div class="columns">
        <div>${this.#picture()} ${this.#facts()}</div>
        ${this.#changes()}
      </div>
      ${crash.live.length ? this.#live() : nothing}
    </section>`;
  }

  /** What was in use and what was asked for, against the limit; and what the estimate had said. */
  #picture(): TemplateResult | typeof nothing {
    const { in_use_bytes: used, bytes: asked, limit_bytes: limit, predicted_peak_bytes: predicted } = this.crash;
    const max = Math.max((used ?? 0) + (asked ?? 0), limit ?? 0, predicted ?? 0) * 1.04;
    if (used === null && predicted === null) {
      return nothing;
    }
    const seen = this.crash.live_is_predicted ? [] : this.#segments;
    const share = (value: Bytes): string => `${(value / max) * 100}%`;
    const mark =
      limit === null
        ? nothing
        : html`<i class="limit" title=${titleOf("limit", limit, this.unit)} style="left:${share(limit)}"></i>`;
    const asking =
      asked === null || used === null
        ? nothing
        : html`<i
            class="asked"
            data-bytes=${asked}
            title=${titleOf("asked for", asked, this.unit)}
            style="left:${share(used)};width:${share(asked)}"
          ></i>`;
    return html`<div class="picture" data-testid="crash-picture">
      ${
        used === null
          ? nothing
          : this.#bar(
              "In use",
              used,
              html`${
                seen.length
                  ? stack(seen, max, this.unit)
                  : html`<i class="used" title=${titleOf("in use", used, this.unit)} style="width:${share(used)}"></i>`
              }${asking}${mark}`,
              `In use ${formatBytes(used, this.unit)}${
                asked === null ? "" : `, asked for ${formatBytes(asked, this.unit)} more`
              }${limit === null ? "" : `, limit ${formatBytes(limit, this.unit)}`}`,
              this.#room(),
            )
      }
      ${
        predicted === null
          ? nothing
          : this.#bar(
              "Predicted",
              predicted,
              html`${
                this.crash.live_is_predicted
                  ? stack(this.#segments, max, this.unit)
                  : html`<i class="used" style="width:${share(predicted)}"></i>`
              }${mark}`,
              this.crash.live_is_predicted
                ? stackLabel(this.#segments, this.unit)
                : `Predicted ${formatBytes(predicted, this.unit)}`,
              this.crash.expectation
                ? html`<span data-testid="crash-expectation">${this.crash.expectation}</span>`
                : nothing,
            )
      }
      ${
        limit === null
          ? nothing
          : html`<p class="scale">
              <span class="limit-line"></span>limit
              <b data-bytes=${limit} title=${exactBytes(limit)}>${formatBytes(limit, this.unit)}</b>${
                asked !== null && used !== null
                  ? html`<span class="asked-box"></span>asked for, beside what was in use`
                  : nothing
              }
            </p>`
      }
    </div>`;
  }

  #bar(
    name: string,
    value: Bytes,
    inside: TemplateResult,
    label: string,
    note: TemplateResult | typeof nothing,
  ): TemplateResult {
    return html`<div class="name">${name}</div>
      <div class="figure number" data-bytes=${value} title=${exactBytes(value)}>${plainBytes(value, this.unit)}</div>
      <div class="bar" role="img" aria-label=${label}>${inside}</div>
      <div class="note soft">${note}</div>`;
  }

  /** Whether there was room at all. */
  #room(): TemplateResult | typeof nothing {
    const { free_bytes: free, short_bytes: short } = this.crash;
    if (free === null || short === null) {
      return nothing;
    }
    return short > 0
      ? html`${bytes(free, this.unit)} were free: ${bytes(short, this.unit)} short`
      : html`${bytes(free, this.unit)} were free, but not in one piece`;
  }

  get #segments(): Segment[] {
    return CATEGORIES.flatMap((category) => {
      const held = this.crash.live_categories[category];
      return held ? [{ category, bytes: held }] : [];
    });
  }

  #facts(): TemplateResult {
    const { crash, unit } = this;
    const size = (value: Bytes | null): TemplateResult | null => (value === null ? null : bytes(value, unit));
    const tensor = crash.shape && html`${formatShape(crash.shape)} <span class="soft">${crash.dtype ?? ""}</span>`;
    const where = crash.phase === null ? null : phaseLabel(crash.phase);
    return html`<dl>
      ${fact("Asked for", size(crash.bytes))} ${fact("Tensor", tensor)} ${fact("What it is", crash.role)}
      ${fact("Layer", crash.layer && html`<code>${crash.layer}</code>`)}
      ${fact("Variable", crash.variable && html`<code>${crash.variable}</code>`)} ${fact("Phase", where)}
      ${fact("Step", crash.step === null ? null : html`${crash.step}`)}
      ${fact("In use before", size(crash.in_use_bytes))} ${fact("Limit", size(crash.limit_bytes))}
      ${fact("Allocator", [crash.device, crash.allocator].filter(Boolean).join(" "))}
      ${fact("Failed op", crash.op && html`<code>${crash.op}</code>`, true)}
    </dl>`;
  }

  #changes(): TemplateResult | typeof nothing {
    const { advice, expectation, predicted_peak_bytes, in_use_bytes } = this.crash;
    // Without a picture there is no bar to write it under.
    const said = expectation && predicted_peak_bytes === null && in_use_bytes === null;
    if (!advice.length && !said) {
      return nothing;
    }
    return html`<div class="changes">
      ${said ? html`<p data-testid="crash-expectation">${expectation}</p>` : nothing}
      ${
        advice.length
          ? html`<h3>What to change</h3>
              <ol data-testid="crash-advice">
                ${advice.map((line) => html`<li>${line}</li>`)}
              </ol>
              ${
                this.advised
                  ? html`<button type="button" class="link" @click=${() => showCard(this, "advice")}>
                      What each change would save
                    </button>`
                  : nothing
              }`
          : nothing
      }
    </div>`;
  }

  #live(): TemplateResult {
    const { live, live_count, live_bytes, live_is_predicted } = this.crash;
    const rest = live_count - live.length;
    return html`<details>
      <summary>
        ${live_is_predicted ? "Alive at the predicted peak of this phase" : "Alive when it failed"}:
        ${counted(live_count, "item")}, ${bytes(live_bytes, this.unit)}
      </summary>
      <div class="scroller">${itemTable(live, live_bytes, this.unit)}</div>
      ${rest > 0 ? html`<p class="soft">And ${counted(rest, "smaller item")}.</p>` : nothing}
    </details>`;
  }

  static override styles = [
    base,
    card,
    tables,
    bars,
    fields,
    css`
      :host {
        border-color: var(--bad);
        border-left-width: 4px;
      }
      h2 {
        color: var(--bad);
      }
      h3 {
        font-size: 13px;
        font-weight: 600;
        margin: 0 0 6px;
      }
      p {
        margin: 0;
      }
      .headline {
        font-size: 15px;
        font-weight: 500;
        margin: 4px 0 14px;
        max-width: 110ch;
        overflow-wrap: anywhere;
      }
      .columns {
        display: grid;
        gap: 18px 32px;
        grid-template-columns: minmax(0, 1fr);
      }
      @media (min-width: 1200px) {
        .columns {
          grid-template-columns: minmax(0, 3fr) minmax(0, 2fr);
        }
      }
      .picture {
        display: grid;
        grid-template-columns: max-content max-content minmax(0, 1fr);
        gap: 2px 12px;
        align-items: center;
      }
      .picture .bar {
        height: 18px;
      }
      .figure {
        font-weight: 600;
        text-align: right;
      }
      .note,
      .scale {
        grid-column: 3;
        font-size: 12px;
        margin-bottom: 8px;
      }
      .note:empty {
        margin: 0;
      }
      .scale {
        color: var(--soft);
      }
      .used,
      .asked {
        position: absolute;
        inset-block: 0;
      }
      .used {
        left: 0;
        background: var(--soft);
        border-radius: 2px 0 0 2px;
      }
      .asked,
      .asked-box {
        background: repeating-linear-gradient(135deg, var(--bad) 0 3px, var(--card) 3px 6px);
        outline: 1px solid var(--bad);
        outline-offset: -1px;
      }
      .asked-box {
        display: inline-block;
        width: 14px;
        height: 10px;
        margin: 0 6px 0 18px;
      }
      .limit {
        /* Over what was asked for, which is of the same colour. */
        box-shadow: 0 0 0 1.5px var(--card);
      }
      .limit-line {
        display: inline-block;
        height: 12px;
        border-left: 2px dashed var(--limit);
        margin-right: 8px;
        vertical-align: -2px;
      }
      dl {
        display: grid;
        grid-template-columns: repeat(auto-fill, minmax(190px, 1fr));
        gap: 8px 18px;
        margin: 10px 0 0;
      }
      dl div {
        min-width: 0;
      }
      dl .wide {
        grid-column: 1 / -1;
      }
      dt {
        color: var(--soft);
        font-size: 12px;
      }
      dd {
        margin: 0;
        overflow-wrap: anywhere;
      }
      ol {
        margin: 0;
        padding-left: 20px;
        max-width: 90ch;
      }
      li {
        overflow-wrap: anywhere;
      }
      li + li {
        margin-top: 5px;
      }
      button.link {
        margin-top: 8px;
      }
      details {
        margin-top: 14px;
        border-top: 1px solid var(--line);
        padding-top: 10px;
      }
      summary {
        cursor: pointer;
      }
      .scroller {
        overflow-x: auto;
        margin-top: 8px;
      }
    `,
  ];
}

function fact(name: string, value: TemplateResult | string | null, wide = false): TemplateResult | typeof nothing {
  return value
    ? html`<div class=${wide ? "wide" : ""}>
        <dt>${name}</dt>
        <dd>${value}</dd>
      </div>`
    : nothing;
}
