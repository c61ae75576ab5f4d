import { css, html, LitElement, nothing, type TemplateResult } from "lit";
import { customElement, property } from "lit/decorators.js";
import type { Overview } from "../model/types";
import { base, card } from "../style/shared";

/** What of a run was not measured, and how to measure it next time. */
@customElement("memest-unmeasured-card")
export class UnmeasuredCard extends LitElement {
  @property({ attribute: false }) overview!: Overview;

  override render(): TemplateResult {
    const { measured } = this.overview;
    return html`
      <header><h2>Not measured yet</h2></header>
      ${measured.devices.length ? nothing : NO_PEAKS} ${measured.profiles.length ? nothing : NO_PROFILE}
    `;
  }

  static override styles = [
    base,
    card,
    css`
      p {
        margin: 0;
        max-width: 110ch;
      }
      p + p {
        margin-top: 6px;
      }
    `,
  ];
}

/** Whether there is anything that was not measured; what could not be read may have been. */
export function lacksMeasurements({ measured, problems }: Overview): boolean {
  return problems.length === 0 && (measured.devices.length === 0 || measured.profiles.length === 0);
}

const NO_PEAKS = html`<p class="soft" data-testid="no-peaks">
  No step of this run was measured. Add <code>memest.MemoryCallback(logdir)</code> to
  <code>model.fit(callbacks=[…])</code> to see what each step really needed.
</p>`;

const NO_PROFILE = html`<p class="soft" data-testid="no-profile">
  This run has no memory profile. To see a measured step beside the predicted one, profile a few: pass
  <code>memest.MemoryCallback(logdir, profile_batch=(2, 4))</code> to <code>model.fit(callbacks=[…])</code>.
</p>`;
