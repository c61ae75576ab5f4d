import { css, html, LitElement, nothing, type TemplateResult } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import type { Theme } from "../host/theme";
import { valueOf } from "../model/load";
import { othersOf, runOf, type State } from "../model/questions";
import type { Store } from "../model/store";
import { base, fields } from "../style/shared";
import { onChoose } from "./choose";
import "./message-card";
import "./run-page";
import "./top-bar";

/** The whole tab: the states in which there is no run to show, the bar above, and the page of the run below. */
@customElement("memest-app")
export class App extends LitElement {
  @property({ attribute: false }) store!: Store;
  @property() theme: Theme = "light";
  @state() private shown!: State;

  #unsubscribe = (): void => undefined;

  constructor() {
    super();
    onChoose(this, (change) => void this.store.choose(change));
  }

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
    const { runs } = this.shown;
    const run = runOf(this.shown);
    const known = valueOf(runs);
    if (runs.state === "failed" && !known) {
      return html`<memest-message-card heading="The runs could not be read" data-testid="error" role="alert">
        <p>${runs.message}</p>
        <button type="button" class="small" @click=${() => void this.store.reload()}>Try again</button>
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
      ${this.#topBar()} ${this.#stale()}
      <main aria-busy=${busy ? "true" : "false"} data-testid="run" data-run=${run ?? ""}>${this.#main()}</main>
    `;
  }

  /** What is shown is from before: what happened since could not be had. */
  #stale(): TemplateResult | typeof nothing {
    const { runs, overview } = this.shown;
    const failed = [runs, overview].find((load) => load.state === "failed" && valueOf<unknown>(load) !== undefined);
    return failed?.state === "failed"
      ? html`<p class="stale" role="alert" data-testid="stale">
          Not up to date: ${failed.message} What is shown is from before.
          <button type="button" class="small" @click=${() => void this.store.reload()}>Try again</button>
        </p>`
      : nothing;
  }

  #topBar(): TemplateResult {
    const { runs, gpus, place, overview } = this.shown;
    const known = valueOf(runs) ?? [];
    const run = runOf(this.shown);
    return html`<memest-top-bar
      .runs=${known}
      .run=${run}
      .others=${othersOf(this.shown)}
      .gpus=${valueOf(gpus) ?? []}
      .limit=${place.limit}
      .limitError=${valueOf(overview)?.refusedLimit ?? null}
      .recordedLimit=${known.find(({ name }) => name === run)?.limit_bytes ?? null}
      .unit=${place.unit}
    ></memest-top-bar>`;
  }

  #main(): TemplateResult {
    const { runs, overview } = this.shown;
    const run = runOf(this.shown);
    if (run !== null && !valueOf(runs)?.some(({ name }) => name === run)) {
      return html`<memest-message-card heading="No such run" data-testid="unknown-run" role="alert">
        <p>This log directory has no run named <code>${run}</code>, or nothing of memest's in it. Choose one above.</p>
      </memest-message-card>`;
    }
    if (overview.state === "failed" && !valueOf(overview)) {
      return html`<memest-message-card heading="This run could not be read" data-testid="error" role="alert">
        <p>${overview.message}</p>
        <button type="button" class="small" @click=${() => void this.store.reload()}>Try again</button>
      </memest-message-card>`;
    }
    return valueOf(overview)
      ? html`<memest-run-page .shown=${this.shown} .theme=${this.theme}></memest-run-page>`
      : html`<p class="loading" role="status" data-testid="loading">Loading ${run ?? ""} …</p>`;
  }

  static override styles = [
    base,
    fields,
    css`
      :host {
        display: flow-root;
        min-height: 100vh;
        background: var(--page);
      }
      main {
        padding: 16px 24px 32px;
      }
      .stale {
        margin: 12px 24px 0;
        padding: 8px 14px;
        border: 1px solid var(--warn);
        border-radius: var(--radius);
        background: var(--warn-wash);
      }
      .stale button {
        margin-left: 8px;
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
  <p>Add this to a training script, after the model is built and compiled:</p>
  <pre>
import memest

memest.log_model(model, logdir="runs/my-run")</pre>
  <p>
    Then point TensorBoard at <code>runs</code> and reload. To see what training really needed, add
    <code>memest.MemoryCallback("runs/my-run")</code> to the callbacks of <code>model.fit</code>.
  </p>
</memest-message-card>`;
