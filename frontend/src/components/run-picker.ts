import { css, html, LitElement, nothing, type PropertyValues, type TemplateResult } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import type { Unit } from "../format/bytes";
import { joined } from "../model/place";
import type { Headline } from "../model/types";
import { base, fields } from "../style/shared";
import { choose } from "./choose";
import { plainBytes } from "./figure";
import { Resized } from "./resized";

/** From so many runs on they can be searched. */
const MANY = 10;

/** What stands beside the name of a run that ended so. */
const CRASHED = "out of memory";

/** The runs: which one is on show, and which are held against it. */
@customElement("memest-run-picker")
export class RunPicker extends LitElement {
  @property({ attribute: false }) runs: readonly Headline[] = [];
  @property() run: string | null = null;
  @property({ attribute: false }) others: readonly string[] = [];
  @property() unit: Unit = "GiB";
  @state() private find = "";

  constructor() {
    super();
    // Where there is less room the runs take more rows, and the one on show may end up below what is seen.
    new Resized(this, () => this.#reveal());
  }

  override updated(changed: PropertyValues): void {
    if (changed.has("find")) {
      this.renderRoot.querySelector(".options")!.scrollTop = 0;
    }
    if (changed.has("run")) {
      this.#reveal();
    }
  }

  /** Scrolls the list, and only that, as far as it takes to see the run on show. */
  #reveal(): void {
    const list = this.renderRoot.querySelector(".options");
    const on = list?.querySelector(".on");
    if (!list || !on) {
      return;
    }
    const [seen, shown] = [list.getBoundingClientRect(), on.getBoundingClientRect()];
    // Browsers scroll by whole pixels.
    list.scrollTop +=
      Math.min(0, Math.floor(shown.top - seen.top)) + Math.max(0, Math.ceil(shown.bottom - seen.bottom));
  }

  override render(): TemplateResult {
    const text = this.find.trim().toLowerCase();
    const found = this.runs.filter((run) =>
      [run.name, ...factsOf(run), run.crashed ? CRASHED : ""].join(" ").toLowerCase().includes(text),
    );
    return html`<fieldset data-testid="run-picker">
      <legend>Runs</legend>
      ${
        this.runs.length > MANY
          ? html`<input
              type="search"
              aria-label="Find a run"
              title="Part of a run's name or of what stands with it, such as SGD or out of memory"
              placeholder="Find one of ${this.runs.length}"
              data-testid="run-find"
              .value=${this.find}
              @input=${(event: Event) => (this.find = (event.target as HTMLInputElement).value)}
            />`
          : nothing
      }
      <div class="options">
        ${found.map((run) => this.#option(run))}
        ${found.length === 0 ? html`<span class="soft">No run has that in its name or with it.</span>` : nothing}
      </div>
    </fieldset>`;
  }

  #option(run: Headline): TemplateResult {
    const peak = run.peak_bytes ?? run.measured_peak_bytes;
    const on = run.name === this.run;
    return html`<div class="option ${on ? "on" : ""}" data-testid="run-option" data-run=${run.name}>
      <label>
        <input type="radio" name="run" value=${run.name} .checked=${on} @change=${() => this.#show(run.name)} />
        <span class="name" title=${run.name}
          >${run.name}${
            run.problems.length
              ? html`<span class="mark" title=${run.problems.join("\n")} role="img" aria-label="has problems">!</span>`
              : nothing
          }${run.crashed ? html`<span class="crashed" data-testid="run-crashed">${CRASHED}</span>` : nothing}</span
        >
        <span class="headline">
          ${peak === null ? nothing : html`<b class="number" data-bytes=${peak}>${plainBytes(peak, this.unit)}</b>`}
          ${run.peak_bytes === null && peak !== null ? "measured" : factsOf(run).join(" · ")}
        </span>
      </label>
      ${on || this.runs.length < 2 ? nothing : this.#beside(run.name)}
    </div>`;
  }

  #beside(run: string): TemplateResult {
    const beside = this.others.includes(run);
    return html`<button
      type="button"
      class="beside"
      data-testid="run-compare"
      aria-pressed=${beside ? "true" : "false"}
      aria-label="Compare ${run} with the run on show"
      title=${beside ? "Stop comparing" : "Compare with the run on show"}
      @click=${() =>
        choose(this, { compare: joined(beside ? this.others.filter((one) => one !== run) : [...this.others, run]) })}
    >
      ${beside ? "✓" : "+"}
    </button>`;
  }

  /** Shows a run; where it was compared with, the one on show takes its place beside it. */
  #show(run: string): void {
    const swapped = this.others.map((one) => (one === run && this.run !== null ? this.run : one));
    choose(this, { run, compare: joined(swapped) });
  }

  static override styles = [
    base,
    fields,
    css`
      fieldset {
        display: flex;
        align-items: center;
        gap: 12px;
        border: 0;
        margin: 0;
        padding: 0;
        min-width: 0;
      }
      .crashed,
      .mark {
        flex: none;
      }
      legend {
        float: left;
        padding: 0;
        font-weight: 600;
      }
      input[type="search"] {
        width: 156px;
        flex: none;
      }
      .options {
        display: flex;
        flex-wrap: wrap;
        align-items: center;
        gap: 6px;
        max-height: 132px;
        overflow-y: auto;
        padding: 2px;
        min-height: 44px;
      }
      .option {
        flex: none;
        display: flex;
        border: 1px solid var(--edge);
        border-radius: var(--radius);
        max-width: 100%;
      }
      label {
        position: relative;
        display: grid;
        padding: 4px 10px 5px;
        cursor: pointer;
        min-width: 0;
        border-radius: inherit;
      }
      label:hover,
      .beside:hover {
        background: var(--hover);
      }
      .on {
        background: var(--accent-wash);
        border-color: var(--accent);
      }
      .on label:hover {
        background: none;
      }
      .on .name {
        color: var(--accent);
      }
      label:has(:focus-visible) {
        outline: 2px solid var(--accent);
        outline-offset: 1px;
      }
      label input {
        position: absolute;
        inset: 0;
        opacity: 0;
        margin: 0;
        cursor: pointer;
      }
      .name {
        font-weight: 600;
        /* Hovering tells all of it. */
        max-width: 60ch;
        overflow: hidden;
        text-overflow: ellipsis;
        white-space: nowrap;
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
      .crashed {
        margin-left: 8px;
        color: var(--bad);
        font-size: 11.5px;
        font-weight: 500;
      }
      .beside {
        appearance: none;
        border: 0;
        border-left: 1px solid var(--edge);
        border-radius: 0 var(--radius) var(--radius) 0;
        background: none;
        color: var(--soft);
        font: inherit;
        width: 24px;
        padding: 0;
        cursor: pointer;
      }
      .beside[aria-pressed="true"] {
        background: var(--accent);
        color: var(--card);
      }
    `,
  ];
}

/** What an estimate is of, in short. */
function factsOf({ optimizer, batch_size, mode }: Headline): string[] {
  const facts = [optimizer, batch_size === null ? null : `batch ${batch_size}`, mode === "xla" ? "XLA" : mode];
  return facts.filter((fact) => fact !== null);
}
