import { css, html, LitElement, nothing, type TemplateResult } from "lit";
import { customElement, property } from "lit/decorators.js";
import type { Unit } from "../format/bytes";
import type { HostEstimate, HostLever, HostStage } from "../model/types";
import { base, card, tables } from "../style/shared";
import { bars } from "./bar";
import { bytes, titleOf } from "./figure";

/** The data pipeline on the host, stage by stage: what each holds, why, and which changes would need less. */
@customElement("memest-host-card")
export class HostCard extends LitElement {
  @property({ attribute: false }) host!: HostEstimate;
  @property() unit: Unit = "GiB";

  override render(): TemplateResult {
    const { peak_bytes, startup_bytes, slack_bytes, stages, levers, assumptions } = this.host;
    return html`
      <header>
        <h2>Data pipeline</h2>
        <span class="soft">
          what it holds in the host's memory: <span data-testid="host-peak">${bytes(peak_bytes, this.unit)}</span>${
            slack_bytes
              ? html`, and up to ${bytes(slack_bytes, this.unit)} in the books and holes of allocators`
              : nothing
          }${startup_bytes > peak_bytes ? html`; for a moment at the start ${bytes(startup_bytes, this.unit)}` : nothing}
        </span>
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
    return html`<h3>What would change it</h3>
      <table>
        <thead>
          <tr>
            <th scope="col">Change</th>
            <th scope="col" class="number">Needs then</th>
            <th scope="col" class="number">Saves</th>
            <th scope="col">Cost, or why it does not help</th>
            <th scope="col">How</th>
          </tr>
        </thead>
        <tbody>
          ${levers.map(
            (lever) =>
              html`<tr data-testid="host-lever" data-name=${lever.name}>
                <th scope="row">${lever.name}</th>
                <td class="number">${bytes(lever.peak_bytes, this.unit)}</td>
                <td class="number">
                  ${
                    lever.saving_bytes > 0
                      ? bytes(lever.saving_bytes, this.unit)
                      : html`<span class="soft">nothing</span>`
                  }
                </td>
                <td class="why">${lever.reason ?? lever.cost}</td>
                <td class="why"><code>${lever.code}</code></td>
              </tr>`,
          )}
        </tbody>
      </table>`;
  }

  static override styles = [
    base,
    card,
    tables,
    bars,
    css`
      :host {
        overflow-x: auto;
      }
      h3 {
        font-size: 13px;
        font-weight: 600;
        margin: 18px 0 4px;
      }
      th.track,
      td.track {
        width: 22%;
        min-width: 120px;
      }
      td.track {
        vertical-align: middle;
      }
      .segment {
        background: var(--accent);
        border-radius: 2px;
      }
      th[scope="row"] {
        white-space: nowrap;
      }
      .why {
        color: var(--soft);
        min-width: 180px;
        text-wrap: pretty;
      }
      .why code {
        color: var(--ink);
        white-space: pre-wrap;
      }
      ul {
        margin: 0;
        padding-left: 18px;
        max-width: 100ch;
      }
      li {
        margin: 3px 0;
      }
    `,
  ];
}
