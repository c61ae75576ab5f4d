import { css, html, LitElement, nothing, type TemplateResult } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import type { Unit } from "../format/bytes";
import type { Theme } from "../host/theme";
import { valueOf } from "../model/load";
import type { State, Store } from "../model/store";
import type { Overview } from "../model/types";
import { base } from "../style/shared";
import "./advice-card";
import "./crash-card";
import "./dominant-items";
import "./host-card";
import "./items-card";
import "./layer-table";
import "./message-card";
import "./notes-card";
import "./peaks-card";
import "./phase-bars";
import "./step-card";
import "./top-bar";
import "./verdict-card";

/** The whole tab: hands each part its piece of the state and each wish of a person to the store. */
@customElement("memest-app")
export class App extends LitElement {
  @property({ attribute: false }) store!: Store;
  @property() theme: Theme = "light";
  @state() private shown!: State;
  #unsubscribe = (): void => undefined;

  override connectedCallback(): void {
    super.connectedCallback();
    this.shown = this.store.state;
    this.#unsubscribe = this.store.subscribe((next) => (this.shown = next));
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#unsubscribe();
  }

  override render(): TemplateResult {
    const { runs, run } = this.shown;
    const known = valueOf(runs);
    if (runs.state === "failed") {
      return html`<memest-message-card heading="The runs could not be read" data-testid="error" role="alert">
        <p>${runs.message}</p>
        <button type="button" @click=${() => void this.store.reload()}>Try again</button>
      </memest-message-card>`;
    }
    if (!known) {
      return html`<p class="loading" role="status" data-testid="loading">Loading …</p>`;
    }
    if (known.length === 0) {
      return EMPTY;
    }
    const busy = this.shown.overview.state === "loading" || runs.state === "loading";
    return html`
      ${this.#topBar()}
      <main aria-busy=${busy ? "true" : "false"} data-testid="run" data-run=${run ?? ""}>${this.#main()}</main>
    `;
  }

  #topBar(): TemplateResult {
    const { runs, run, place, limitError } = this.shown;
    const known = valueOf(runs) ?? [];
    return html`<memest-top-bar
      .runs=${known}
      .run=${run}
      .limit=${place.limit}
      .limitError=${limitError}
      .recordedLimit=${known.find(({ name }) => name === run)?.limit_bytes ?? null}
      .unit=${place.unit}
      @choose-run=${(event: CustomEvent<string>) => void this.store.selectRun(event.detail)}
      @choose-limit=${(event: CustomEvent<string>) => void this.store.setLimit(event.detail)}
      @choose-unit=${(event: CustomEvent<Unit>) => this.store.setUnit(event.detail)}
    ></memest-top-bar>`;
  }

  #main(): TemplateResult {
    const { runs, run, overview } = this.shown;
    if (run !== null && !valueOf(runs)?.some(({ name }) => name === run)) {
      return html`<memest-message-card heading="No such run" data-testid="unknown-run" role="alert">
        <p>This log directory has no run named <code>${run}</code>, or nothing of memest's in it. Choose one above.</p>
      </memest-message-card>`;
    }
    if (overview.state === "failed") {
      return html`<memest-message-card heading="This run could not be read" data-testid="error" role="alert">
        <p>${overview.message}</p>
        <button type="button" @click=${() => void this.store.reload()}>Try again</button>
      </memest-message-card>`;
    }
    const value = valueOf(overview);
    return value
      ? this.#run(value)
      : html`<p class="loading" role="status" data-testid="loading">Loading ${run ?? ""} …</p>`;
  }

  #run(overview: Overview): TemplateResult {
    const { peaks, curvePhase, curve, profileId, profile, itemsPhase, items, host, place } = this.shown;
    const pipeline = valueOf(host)?.host ?? null;
    const { estimate } = overview;
    const { unit } = place;
    const devices = valueOf(peaks)?.devices ?? [];
    return html`
      <memest-verdict-card .overview=${overview} .unit=${unit}></memest-verdict-card>
      ${overview.problems.length ? html`<memest-problems .problems=${overview.problems}></memest-problems>` : nothing}
      ${overview.crash ? html`<memest-crash-card .crash=${overview.crash} .unit=${unit}></memest-crash-card>` : nothing}
      <div class="cards ${estimate ? "" : "measured-only"}">
        <memest-phase-bars class="phases" .overview=${overview} .unit=${unit}></memest-phase-bars>
        ${
          estimate
            ? html`<memest-dominant-items
                class="dominant"
                .dominant=${estimate.dominant}
                .unit=${unit}
              ></memest-dominant-items>`
            : nothing
        }
        <memest-step-card
          class="step"
          .overview=${overview}
          .phase=${curvePhase}
          .curve=${curve}
          .profileId=${profileId}
          .profile=${profile}
          .unit=${unit}
          .theme=${this.theme}
          @choose-phase=${(event: CustomEvent<string>) => void this.store.selectCurvePhase(event.detail)}
          @choose-profile=${(event: CustomEvent<string>) => void this.store.selectProfile(event.detail)}
        ></memest-step-card>
        <memest-peaks-card
          class="peaks"
          .overview=${overview}
          .devices=${devices}
          .unit=${unit}
          .theme=${this.theme}
        ></memest-peaks-card>
        ${
          estimate
            ? html`<memest-layer-table
                  class="layers"
                  .layers=${estimate.layers}
                  .total=${estimate.total}
                  .model=${estimate.subject.model_name}
                  .phase=${estimate.peak_phase}
                  .unit=${unit}
                ></memest-layer-table>
                <memest-items-card
                  class="items"
                  .phases=${estimate.phases.map(({ name }) => name)}
                  .peakPhase=${estimate.peak_phase}
                  .phase=${itemsPhase}
                  .items=${items}
                  .unit=${unit}
                  @show-items=${(event: CustomEvent<string | null>) => void this.store.showItems(event.detail)}
                ></memest-items-card>`
            : nothing
        }
        ${
          overview.advice
            ? html`<memest-advice-card class="advice" .advice=${overview.advice} .unit=${unit}></memest-advice-card>`
            : nothing
        }
        ${pipeline ? html`<memest-host-card class="host" .host=${pipeline} .unit=${unit}></memest-host-card>` : nothing}
        <memest-notes-card class="notes" .overview=${overview}></memest-notes-card>
      </div>
    `;
  }

  static override styles = [
    base,
    css`
      :host {
        display: flow-root;
        min-height: 100vh;
        background: var(--page);
      }
      main {
        padding: 16px 24px 32px;
        display: grid;
        gap: 16px;
      }
      .cards {
        display: grid;
        gap: 16px;
        grid-template-columns: minmax(0, 1fr);
      }
      @media (min-width: 1200px) {
        .cards {
          grid-template-columns: repeat(6, minmax(0, 1fr));
          grid-template-areas:
            "phases phases phases dominant dominant dominant"
            "step step step step peaks peaks"
            "layers layers layers layers layers layers"
            "items items items items items items"
            "advice advice advice advice advice advice"
            "host host host host host host"
            "notes notes notes notes notes notes";
        }
        .cards.measured-only {
          grid-template-areas:
            "phases phases phases peaks peaks peaks"
            "step step step step step step"
            "advice advice advice advice advice advice"
            "host host host host host host"
            "notes notes notes notes notes notes";
        }
        .phases {
          grid-area: phases;
        }
        .step {
          grid-area: step;
        }
        .dominant {
          grid-area: dominant;
        }
        .peaks {
          grid-area: peaks;
        }
        .layers {
          grid-area: layers;
        }
        .items {
          grid-area: items;
        }
        .host {
          grid-area: host;
        }
        .advice {
          grid-area: advice;
        }
        .notes {
          grid-area: notes;
        }
      }
      .loading {
        color: var(--soft);
        padding: 24px;
        margin: 0;
        /* An answer that comes at once should not flash. */
        animation: appear 0.2s 0.25s both;
      }
      @keyframes appear {
        from {
          opacity: 0;
        }
      }
      button {
        font: inherit;
        color: var(--accent);
        background: var(--card);
        border: 1px solid var(--edge);
        border-radius: 5px;
        padding: 5px 14px;
        cursor: pointer;
      }
      button:hover {
        background: var(--hover);
      }
      pre {
        margin: 12px 0;
        padding: 14px 16px;
        background: var(--code);
        border-radius: 5px;
        overflow-x: auto;
        font: 13px/1.6 var(--mono);
      }
      memest-message-card code {
        background: var(--code);
        border-radius: 3px;
        padding: 1px 4px;
      }
    `,
  ];
}

const EMPTY = html`<memest-message-card heading="No run with memory data yet" data-testid="empty">
  <p>Add three lines to a training script, after the model is built and compiled:</p>
  <pre>
import memest

memest.log_model(model, logdir="runs/my-run")</pre>
  <p>
    Then point TensorBoard at <code>runs</code> and reload. To see what training really needed, add
    <code>memest.MemoryCallback("runs/my-run")</code> to the callbacks of <code>model.fit</code>.
  </p>
</memest-message-card>`;
