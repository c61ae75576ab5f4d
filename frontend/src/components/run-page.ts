import { css, html, LitElement, nothing, type PropertyValues, type TemplateResult } from "lit";
import { customElement, property } from "lit/decorators.js";
import type { Theme } from "../host/theme";
import { valueOf } from "../model/load";
import { groupingOf, markOf, momentOf, phaseOf, profileOf, type State, xprofSessionOf } from "../model/questions";
import type { Estimate, Overview } from "../model/types";
import { base } from "../style/shared";
import "./advice-card";
import { onChoose, showCard } from "./choose";
import "./compare-card";
import "./crash-card";
import "./dominant-items";
import "./host-card";
import "./layers-card";
import "./moment-card";
import { hasNotes } from "./notes-card";
import "./peaks-card";
import "./phase-bars";
import "./step-card";
import { lacksMeasurements } from "./unmeasured-card";
import "./verdict-card";
import "./what-if-card";

/** What a card gets to see. */
interface Seen {
  shown: State;
  overview: Overview;
  estimate: Estimate | null;
  theme: Theme;
}

/** A place on the page. */
interface Slot {
  /** What links lead to it by. */
  id: string;
  /** What stands for it in the contents; empty for what needs no link. */
  title: string;
  /** How wide it is: `half` where there is room, `paired` where there is room for two pages. */
  width: "whole" | "half" | "paired";
  /** What stands in it; null where a run has nothing for it. */
  draw: (seen: Seen) => TemplateResult | null;
}

/** The page from top to bottom. */
const SLOTS: readonly Slot[] = [
  {
    id: "verdict",
    title: "",
    width: "whole",
    draw: ({ overview, shown }) =>
      html`<memest-verdict-card
        .overview=${overview}
        .host=${valueOf(shown.host)?.host ?? null}
        .unit=${shown.place.unit}
      ></memest-verdict-card>`,
  },
  {
    id: "problems",
    title: "",
    width: "whole",
    draw: ({ overview }) =>
      overview.problems.length ? html`<memest-problems .problems=${overview.problems}></memest-problems>` : null,
  },
  {
    id: "crash",
    title: "Out of memory",
    width: "whole",
    draw: ({ overview, shown }) =>
      overview.crash
        ? html`<memest-crash-card
            .crash=${overview.crash}
            ?advised=${overview.advice !== null}
            .unit=${shown.place.unit}
          ></memest-crash-card>`
        : null,
  },
  {
    id: "compare",
    title: "Compared",
    width: "whole",
    draw: ({ shown }) =>
      shown.compared.state === "idle"
        ? null
        : html`<memest-compare-card
            .compared=${shown.compared}
            .changed=${shown.place.changed}
            .unit=${shown.place.unit}
          ></memest-compare-card>`,
  },
  {
    id: "phases",
    title: "Phases",
    width: "half",
    draw: ({ overview, shown }) =>
      overview.estimate || overview.measured.devices.length
        ? html`<memest-phase-bars .overview=${overview} .unit=${shown.place.unit}></memest-phase-bars>`
        : null,
  },
  {
    id: "dominant",
    title: "Dominant items",
    width: "half",
    draw: ({ estimate, overview, shown }) =>
      estimate &&
      html`<memest-dominant-items
        .dominant=${estimate.dominant}
        run=${overview.name}
        .unit=${shown.place.unit}
      ></memest-dominant-items>`,
  },
  {
    id: "step",
    title: "One step",
    width: "paired",
    draw: ({ overview, shown, theme }) =>
      overview.estimate || overview.measured.profiles.length
        ? html`<memest-step-card
            .overview=${overview}
            .phase=${phaseOf(shown) ?? "step"}
            .curve=${shown.curve}
            .profileId=${profileOf(shown)}
            .profile=${shown.profile}
            .aligned=${shown.aligned}
            .xprof=${xprofSessionOf(shown)}
            .stretch=${shown.place.step}
            .time=${shown.place.time}
            .mark=${markOf(shown)}
            .unit=${shown.place.unit}
            .theme=${theme}
          ></memest-step-card>`
        : null,
  },
  {
    id: "alive",
    title: "What is alive",
    width: "paired",
    draw: ({ overview, shown, theme }) => {
      const of = momentOf(shown);
      return (
        of &&
        html`<memest-moment-card
          .run=${overview.name}
          .moment=${shown.moment}
          .phase=${of.phase ?? null}
          .chosen=${of.at !== undefined}
          .by=${groupingOf(shown).by}
          .group=${shown.place.group}
          .unit=${shown.place.unit}
          .theme=${theme}
        ></memest-moment-card>`
      );
    },
  },
  {
    id: "peaks",
    title: "Measured peaks",
    width: "paired",
    draw: ({ overview, shown, theme }) =>
      wasMeasured(overview)
        ? html`<memest-peaks-card
            .overview=${overview}
            .peaks=${shown.peaks}
            .chosen=${shown.place.series}
            .stretch=${shown.place.steps}
            .unit=${shown.place.unit}
            .theme=${theme}
          ></memest-peaks-card>`
        : null,
  },
  {
    id: "layers",
    title: "Layers",
    width: "paired",
    draw: ({ estimate, overview, shown }) =>
      estimate &&
      html`<memest-layers-card .estimate=${estimate} .place=${shown.place} .run=${overview.name}></memest-layers-card>`,
  },
  {
    id: "what-if",
    title: "What if",
    width: "paired",
    draw: ({ overview, shown }) => {
      const whatIf = valueOf(shown.whatIf)?.what_if;
      return whatIf
        ? html`<memest-what-if-card
            .run=${overview.name}
            .whatIf=${whatIf}
            .chosen=${shown.place}
            .gpus=${valueOf(shown.gpus) ?? []}
            .gpu=${shown.place.gpu}
            .limit=${overview.verdict?.limit_bytes ?? null}
            .unit=${shown.place.unit}
          ></memest-what-if-card>`
        : null;
    },
  },
  {
    id: "advice",
    title: "What to change",
    width: "paired",
    draw: ({ overview, shown }) =>
      overview.advice &&
      html`<memest-advice-card
        .run=${overview.name}
        .advice=${overview.advice}
        .unit=${shown.place.unit}
      ></memest-advice-card>`,
  },
  {
    id: "host",
    title: "Data pipeline",
    width: "paired",
    draw: ({ overview, shown }) => {
      const host = valueOf(shown.host)?.host;
      return host
        ? html`<memest-host-card .run=${overview.name} .host=${host} .unit=${shown.place.unit}></memest-host-card>`
        : null;
    },
  },
  {
    id: "unmeasured",
    title: "Not measured yet",
    width: "paired",
    draw: ({ overview }) =>
      lacksMeasurements(overview)
        ? html`<memest-unmeasured-card .overview=${overview}></memest-unmeasured-card>`
        : null,
  },
  {
    id: "notes",
    title: "Assumptions and notes",
    width: "paired",
    draw: ({ overview }) =>
      hasNotes(overview) ? html`<memest-notes-card .overview=${overview}></memest-notes-card>` : null,
  },
];

/** Whether peaks of steps, the process's resident set or a GPU's totals were recorded. */
function wasMeasured({ measured: { devices, totals, host } }: Overview): boolean {
  return devices.length > 0 || (totals ?? []).length > 0 || Boolean(host);
}

/** What shows that a person has gone on from where a link led. */
const MOVES = ["wheel", "pointerdown", "keydown", "touchstart"] as const;

/** How many of them come before the contents: what is to be seen first. */
const ABOVE_CONTENTS = 3;

/** A slot of its own also while it is empty: cards keep their state when others come and go. */
function placed({ id, width, card }: Slot & { card: TemplateResult | null }): TemplateResult {
  return html`<div id=${id} class=${width} tabindex="-1" ?hidden=${card === null}>${card ?? nothing}</div>`;
}

/** Everything about the run on show, card by card. A card that lets a person choose something says so with `choose`. */
@customElement("memest-run-page")
export class RunPage extends LitElement {
  /** With an overview in it. */
  @property({ attribute: false }) shown!: State;
  @property() theme: Theme = "light";

  /** The card to keep in view while the cards above it still grow; empty once a person moves on. */
  #target = "";
  readonly #grown = new ResizeObserver(() => this.#scroll());
  readonly #moveOn = (): void => void (this.#target = "");

  constructor() {
    super();
    onChoose(this, ({ card }) => {
      if (card) {
        this.#target = card;
        this.#scroll();
        // Who goes by keyboard goes on from there.
        this.#slot(card)?.focus({ preventScroll: true });
      }
    });
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.#target = this.shown.place.card;
    this.#grown.observe(this);
    for (const type of MOVES) {
      window.addEventListener(type, this.#moveOn, { passive: true, capture: true });
    }
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#grown.disconnect();
    for (const type of MOVES) {
      window.removeEventListener(type, this.#moveOn, { capture: true });
    }
  }

  override updated(changed: PropertyValues<this>): void {
    const before = changed.get("shown")?.place.card;
    const { card } = this.shown.place;
    if (before !== undefined && card && card !== before) {
      this.#target = card;
      this.#scroll();
    }
  }

  override render(): TemplateResult | typeof nothing {
    const overview = valueOf(this.shown.overview);
    if (!overview) {
      return nothing;
    }
    const seen: Seen = { shown: this.shown, overview, estimate: overview.estimate, theme: this.theme };
    const drawn = SLOTS.map((slot) => ({ ...slot, card: slot.draw(seen) }));
    const contents = drawn.filter(({ title, card }) => title && card);
    return html`
      ${drawn.slice(0, ABOVE_CONTENTS).map(placed)}
      <nav aria-label="On this page">
        ${contents.map(
          ({ id, title }) =>
            html`<button type="button" data-card=${id} @click=${() => showCard(this, id)}>${title}</button>`,
        )}
      </nav>
      ${drawn.slice(ABOVE_CONTENTS).map(placed)}
    `;
  }

  #scroll(): void {
    if (this.#target) {
      this.#slot(this.#target)?.scrollIntoView({ block: "start" });
    }
  }

  #slot(card: string): HTMLElement | null {
    return this.renderRoot.querySelector(`#${CSS.escape(card)}`);
  }

  static override styles = [
    base,
    css`
      :host {
        display: grid;
        gap: 16px;
        grid-template-columns: repeat(2, minmax(0, 1fr));
        grid-auto-flow: row dense;
      }
      div,
      nav {
        grid-column: 1 / -1;
        scroll-margin-top: 52px;
      }
      nav {
        position: sticky;
        top: 0;
        z-index: 10;
        display: flex;
        flex-wrap: wrap;
        gap: 2px;
        margin: -4px -24px;
        padding: 6px 20px;
        background: var(--page);
        border-bottom: 1px solid var(--edge);
      }
      nav button {
        appearance: none;
        border: 0;
        border-radius: 5px;
        background: none;
        color: var(--soft);
        font: inherit;
        font-size: 12.5px;
        padding: 4px 10px;
        cursor: pointer;
      }
      nav button:hover {
        background: var(--track);
        color: var(--ink);
      }
      div {
        display: grid;
        grid-template-columns: minmax(0, 1fr);
      }
      div[hidden] {
        display: none;
      }
      @media (min-width: 1200px) {
        .half {
          grid-column: span 1;
        }
      }
      @media (min-width: 2200px) {
        .paired {
          grid-column: span 1;
        }
      }
    `,
  ];
}
