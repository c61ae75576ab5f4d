import { css, html, LitElement, nothing, type TemplateResult } from "lit";
import { customElement, property } from "lit/decorators.js";
import type { Overview } from "../model/types";
import { base, card } from "../style/shared";

/** What was assumed for the estimate, and what was not measured and why. */
@customElement("memest-notes-card")
export class NotesCard extends LitElement {
  @property({ attribute: false }) overview!: Overview;

  override render(): TemplateResult {
    const { estimate, measured } = this.overview;
    const versions = Object.entries(estimate?.subject.versions ?? {});
    return html`
      ${list("Assumptions", "assumptions", estimate?.assumptions ?? [])} ${list("Notes", "notes", measured.notes)}
      ${
        versions.length
          ? html`<p class="soft" data-testid="versions">
              Estimated with ${versions.map(([name, version]) => `${name} ${version}`).join(", ")}.
            </p>`
          : nothing
      }
    `;
  }

  static override styles = [
    base,
    card,
    css`
      h2 {
        margin: 0 0 8px;
      }
      ul {
        margin: 0 0 14px;
        padding-left: 18px;
        max-width: 100ch;
      }
      li {
        margin: 3px 0;
      }
      p {
        margin: 0;
        font-size: 12px;
      }
    `,
  ];
}

/** Whether there is anything to note. */
export function hasNotes({ estimate, measured }: Overview): boolean {
  return estimate !== null || measured.notes.length > 0;
}

/** Problems go first and in colour: a record that could not be read may change everything below. */
@customElement("memest-problems")
export class Problems extends LitElement {
  @property({ attribute: false }) problems: readonly string[] = [];

  override render(): TemplateResult {
    return list(this.problems.length === 1 ? "A problem" : "Problems", "problems", this.problems);
  }

  static override styles = [
    base,
    css`
      :host {
        background: var(--warn-wash);
        border: 1px solid var(--warn);
        border-radius: var(--radius);
        padding: 10px 16px;
      }
      h2 {
        margin: 0 0 4px;
        font-size: 13px;
        color: var(--warn);
      }
      ul {
        margin: 0;
        padding-left: 18px;
      }
    `,
  ];
}

function list(title: string, name: string, lines: readonly string[]): TemplateResult {
  return lines.length
    ? html`<h2>${title}</h2>
        <ul data-testid=${name}>
          ${lines.map((line) => html`<li>${line}</li>`)}
        </ul>`
    : html``;
}
