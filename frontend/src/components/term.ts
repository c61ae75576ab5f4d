import { css, html, LitElement, type TemplateResult } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import { base, fields } from "../style/shared";
import { meaning } from "../views/terms";

/** A word with its explanation, which pointing at it or the keyboard brings up. The slot is the word as it is shown. */
@customElement("memest-term")
export class TermElement extends LitElement {
  /** One of views/terms.ts. */
  @property() word = "";
  @state() private shown = false;

  override render(): TemplateResult {
    const explanation = meaning(this.word);
    if (explanation === null) {
      return html`<slot></slot>`;
    }
    return html`<button
        type="button"
        class="bare"
        aria-describedby="explanation"
        @pointerenter=${() => this.#show(true)}
        @pointerleave=${() => this.#show(false)}
        @focus=${() => this.#show(true)}
        @blur=${() => this.#show(false)}
        @keydown=${(event: KeyboardEvent) => event.key === "Escape" && this.#show(false)}
      >
        <slot></slot>
      </button>
      <span id="explanation" role="tooltip" ?hidden=${!this.shown}>${explanation}</span>`;
  }

  #show(shown: boolean): void {
    this.shown = shown;
    // Kept within the page: near its right edge the words go to the left.
    const { left, width } = this.getBoundingClientRect();
    this.classList.toggle("leftward", left + width / 2 > document.documentElement.clientWidth - 300);
  }

  static override styles = [
    base,
    fields,
    css`
      :host {
        display: inline-block;
        position: relative;
        font: inherit;
        color: inherit;
      }
      button.bare {
        cursor: help;
        text-decoration: underline dotted var(--soft);
        text-underline-offset: 3px;
        text-decoration-thickness: 1px;
      }
      [role="tooltip"] {
        position: absolute;
        z-index: 30;
        top: calc(100% + 6px);
        left: 0;
        width: max-content;
        max-width: 290px;
        padding: 8px 11px;
        border-radius: 5px;
        background: var(--ink);
        color: var(--card);
        font: 400 12px/1.45 var(--font);
        letter-spacing: 0;
        white-space: normal;
        text-align: left;
        box-shadow: var(--shadow);
        pointer-events: none;
      }
      [hidden] {
        display: none;
      }
      :host(.leftward) [role="tooltip"] {
        left: auto;
        right: 0;
      }
    `,
  ];
}
