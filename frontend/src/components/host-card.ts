import { css, html, LitElement, nothing, type TemplateResult } from "lit";
import { customElement, property } from "lit/decorators.js";
import type { Unit } from "../format/bytes";
import type { HostEstimate, HostLever, HostStage } from "../model/types";
import { base, card, lists, tables } from "../style/shared";
import { bars } from "./bar";
import type { Change } from "./changes-table";
import "./changes-table";
import { bytes, titleOf } from "./figure";
import "./export-menu";

/** The data pipeline on the host, stage by stage: what each holds, why, and which changes would need less. */
@customElement("memest-host-card")
export class HostCard extends LitElement {
  @property({ attribute: false }) host!: HostEstimate;
  @property() run = "";
  @property() unit: Unit = "GiB";

  override render(): TemplateResult {
    const { peak_bytes, startup_bytes, slack_bytes, stages, levers, assumptions } = this.host;
    return html`
      <header>
        <h2>Data pipeline</h2>
        <span class="soft">
          what it holds in the host's memory: <span data-testid="host-peak">${bytes(peak_bytes, this.unit)}</span>${
            slack_bytes ? html`, and up to ${bytes(slack_bytes, this.unit)} of allocators' overhead` : nothing
          }${startup_bytes > peak_bytes ? html`; for a moment at the start ${bytes(startup_bytes, this.unit)}` : nothing}
        </span>
        <memest-export-menu
          class="controls"
          data-testid="host-export"
          run=${this.run}
          name="pipeline"
          .records=${() => stages.map(({ name, bytes, elements, element_bytes, reason }) => ({ stage: name, bytes, elements, element_bytes, reason }))}
        ></memest-export-menu>
      </header>
      <table>
        <thead>
          <tr>
            <th scope="col">Stage</th>
            <th scope="col" class="track">Holds</th>
            <th scope="col"></th>
            <th scope="col" class="number">Elements</th>
            <th scope="col" class="number">Each</th>
            <th scope="col">Why</th>
          </tr>
        </thead>
        <tbody>
          ${this.#stages(stages, peak_bytes)}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row">together</th>
            <td></td>
            <td class="number">${bytes(peak_bytes, this.unit)}</td>
            <td></td>
            <td></td>
            <td></td>
          </tr>
        </tfoot>
      </table>
      ${levers.length ? this.#levers(levers) : nothing}
      ${
        assumptions.length
          ? html`<h3>Assumptions</h3>
              <ul data-testid="host-assumptions">
                ${assumptions.map((sentence) => html`<li>${sentence}</li>`)}
              </ul>`
          : nothing
      }
    `;
  }

  /** Each bar begins where the one above it ends, so that they climb to the peak. */
  #stages(stages: readonly HostStage[], peak: number): TemplateResult[] {
    let start = 0;
    return stages.map((stage) => {
      const left = peak ? (start / peak) * 100 : 0;
      const width = peak ? (stage.bytes / peak) * 100 : 0;
      start += stage.bytes;
      return html`<tr data-testid="host-stage" data-name=${stage.name}>
        <th scope="row"><code>${stage.name}</code></th>
        <td class="track">
          <div class="bar" role="presentation">
            <i
              class="segment"
              title=${titleOf(stage.name, stage.bytes, this.unit)}
              style="left:${Math.min(left, 99.5)}%;width:${width}%"
            ></i>
          </div>
        </td>
        <td class="number">${bytes(stage.bytes, this.unit)}</td>
        <td class="number">${stage.elements === null ? nothing : stage.elements.toLocaleString("en-US")}</td>
        <td class="number">${stage.element_bytes ? bytes(stage.element_bytes, this.unit) : nothing}</td>
        <td class="why">${stage.reason}</td>
      </tr>`;
    });
  }

  #levers(levers: readonly HostLever[]): TemplateResult {
    const helping = levers.filter(({ reason }) => reason === null);
    const useless = levers.filter(({ reason }) => reason !== null);
    const changes: Change[] = helping.map((lever) => ({ ...lever, title: lever.name }));
    return html`${
      changes.length
        ? html`<h3>What to change</h3>
            <memest-changes-table
              row="host-lever"
              .changes=${changes}
              .now=${this.host.peak_bytes}
              .unit=${this.unit}
            ></memest-changes-table>`
        : nothing
    }${
      useless.length
        ? html`<h3>Does not help</h3>
            <ul>
              ${useless.map(
                ({ name, peak_bytes, reason }) =>
                  html`<li data-testid="host-useless" data-name=${name}>
                    ${name}, ${bytes(peak_bytes, this.unit)} then: ${reason}
                  </li>`,
              )}
            </ul>`
        : nothing
    }`;
  }

  static override styles = [
    base,
    card,
    tables,
    lists,
    bars,
    css`
      :host {
        overflow-x: auto;
      }
      th.track,
      td.track {
        width: 22%;
        min-width: 120px;
      }
      /* Beside the first line of a row of several. */
      td.track {
        vertical-align: top;
        padding-top: 9px;
      }
      .segment {
        background: var(--accent);
        border-radius: 2px;
      }
      li::first-letter {
        text-transform: uppercase;
      }
      th[scope="row"] {
        white-space: nowrap;
      }
      .why {
        color: var(--soft);
        min-width: 180px;
        text-wrap: pretty;
      }
    `,
  ];
}
