import { css, html, LitElement, nothing, type TemplateResult } from "lit";
import { customElement, property } from "lit/decorators.js";
import type { Theme } from "../host/theme";
import { valueOf } from "../model/load";
import { phaseOf, profileOf, type State } from "../model/questions";
import type { Estimate, Overview } from "../model/types";
import { base } from "../style/shared";
import "./advice-card";
import "./crash-card";
import "./dominant-items";
import "./host-card";
import "./items-card";
import "./layers-card";
import "./notes-card";
import "./peaks-card";
import "./phase-bars";
import "./step-card";
import "./verdict-card";
import "./what-if-card";

/** What a card gets to see. */
interface Seen {
  shown: State;
  overview: Overview;
  estimate: Estimate | null;
  theme: Theme;
}

/** A place on the page: how wide it is where there is room, and what stands in it; null where a run has nothing for it. */
interface Slot {
  width: "whole" | "half" | "third" | "rest";
  draw: (seen: Seen) => TemplateResult | null;
}

/** The page from top to bottom. */
const SLOTS: readonly Slot[] = [
  {
    width: "whole",
    draw: ({ overview, shown }) =>
      html`<memest-verdict-card .overview=${overview} .unit=${shown.place.unit}></memest-verdict-card>`,
  },
  {
    width: "whole",
    draw: ({ overview }) =>
      overview.problems.length ? html`<memest-problems .problems=${overview.problems}></memest-problems>` : null,
  },
  {
    width: "whole",
    draw: ({ overview, shown }) =>
      overview.crash
        ? html`<memest-crash-card .crash=${overview.crash} .unit=${shown.place.unit}></memest-crash-card>`
        : null,
  },
  {
    width: "half",
    draw: ({ overview, shown }) =>
      html`<memest-phase-bars .overview=${overview} .unit=${shown.place.unit}></memest-phase-bars>`,
  },
  {
    width: "half",
    draw: ({ estimate, shown }) =>
      estimate &&
      html`<memest-dominant-items .dominant=${estimate.dominant} .unit=${shown.place.unit}></memest-dominant-items>`,
  },
  {
    width: "rest",
    draw: ({ overview, shown, theme }) =>
      html`<memest-step-card
        .overview=${overview}
        .phase=${phaseOf(shown) ?? "step"}
        .curve=${shown.curve}
        .profileId=${profileOf(shown)}
        .profile=${shown.profile}
        .unit=${shown.place.unit}
        .theme=${theme}
      ></memest-step-card>`,
  },
  {
    width: "third",
    draw: ({ overview, shown, theme }) =>
      html`<memest-peaks-card
        .overview=${overview}
        .devices=${valueOf(shown.peaks)?.devices ?? []}
        .unit=${shown.place.unit}
        .theme=${theme}
      ></memest-peaks-card>`,
  },
  {
    width: "whole",
    draw: ({ estimate, overview, shown }) =>
      estimate &&
      html`<memest-layers-card .estimate=${estimate} .place=${shown.place} .run=${overview.name}></memest-layers-card>`,
  },
  {
    width: "whole",
    draw: ({ estimate, shown }) =>
      estimate &&
      html`<memest-items-card
        .phases=${estimate.phases.map(({ name }) => name)}
        .peakPhase=${estimate.peak_phase}
        .phase=${shown.place.items || null}
        .items=${shown.items}
        .unit=${shown.place.unit}
      ></memest-items-card>`,
  },
  {
    width: "whole",
    draw: ({ overview, shown }) => {
      const whatIf = valueOf(shown.whatIf)?.what_if;
      return whatIf
        ? html`<memest-what-if-card
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
    width: "whole",
    draw: ({ overview, shown }) =>
      overview.advice &&
      html`<memest-advice-card .advice=${overview.advice} .unit=${shown.place.unit}></memest-advice-card>`,
  },
  {
    width: "whole",
    draw: ({ shown }) => {
      const host = valueOf(shown.host)?.host;
      return host ? html`<memest-host-card .host=${host} .unit=${shown.place.unit}></memest-host-card>` : null;
    },
  },
  {
    width: "whole",
    draw: ({ overview }) => html`<memest-notes-card .overview=${overview}></memest-notes-card>`,
  },
];

/** Everything about the run on show, card by card. A card that lets a person choose something says so with `choose`. */
@customElement("memest-run-page")
export class RunPage extends LitElement {
  /** With an overview in it. */
  @property({ attribute: false }) shown!: State;
  @property() theme: Theme = "light";

  override render(): TemplateResult[] | typeof nothing {
    const overview = valueOf(this.shown.overview);
    if (!overview) {
      return nothing;
    }
    const seen: Seen = { shown: this.shown, overview, estimate: overview.estimate, theme: this.theme };
    return SLOTS.map(({ width, draw }) => {
      const card = draw(seen);
      // A slot of its own also while it is empty: cards keep their state when others come and go.
      return html`<div class=${width} ?hidden=${card === null}>${card ?? nothing}</div>`;
    });
  }

  static override styles = [
    base,
    css`
      :host {
        display: grid;
        gap: 16px;
        grid-template-columns: repeat(6, minmax(0, 1fr));
        grid-auto-flow: row dense;
      }
      div {
        grid-column: 1 / -1;
        display: grid;
        grid-template-columns: minmax(0, 1fr);
      }
      div[hidden] {
        display: none;
      }
      @media (min-width: 1200px) {
        .half {
          grid-column: span 3;
        }
        .third {
          grid-column: span 2;
        }
        .rest {
          grid-column: span 4;
        }
      }
    `,
  ];
}
