import { css, html, LitElement, nothing, type TemplateResult } from "lit";
import { customElement, property } from "lit/decorators.js";
import { base, fields } from "../style/shared";

/** A button that opens a small panel with what the slot holds. Escape and a click elsewhere close it. */
@customElement("memest-menu")
export class Menu extends LitElement {
  @property() label = "";
  /** What it is about, for those who do not see where it stands. */
  @property() about = "";

  readonly #leave = (event: Event): void => {
    if (!event.composedPath().includes(this)) {
      this.close();
    }
  };

  override connectedCallback(): void {
    super.connectedCallback();
    document.addEventListener("pointerdown", this.#leave);
    document.addEventListener("focusin", this.#leave);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    document.removeEventListener("pointerdown", this.#leave);
    document.removeEventListener("focusin", this.#leave);
  }

  close(): void {
    this.renderRoot.querySelector("details")?.removeAttribute("open");
  }

  override render(): TemplateResult {
    return html`<details @keydown=${(event: KeyboardEvent) => this.#key(event)}>
      <summary class="small" aria-label=${this.about ? `${this.label} ${this.about}` : nothing}>
        ${this.label}<span aria-hidden="true"> ▾</span>
      </summary>
      <div class="panel"><slot></slot></div>
    </details>`;
  }

  #key(event: KeyboardEvent): void {
    if (event.key === "Escape") {
      this.close();
      this.renderRoot.querySelector("summary")?.focus();
    }
  }

  static override styles = [
    base,
    fields,
    css`
      :host {
        display: inline-block;
        position: relative;
      }
      summary {
        list-style: none;
        user-select: none;
      }
      summary::-webkit-details-marker {
        display: none;
      }
      .panel {
        position: absolute;
        right: 0;
        top: calc(100% + 4px);
        z-index: 20;
        min-width: 100%;
        width: max-content;
        max-width: 320px;
        max-height: 420px;
        overflow: auto;
        padding: 8px 12px;
        background: var(--card);
        border: 1px solid var(--edge);
        border-radius: var(--radius);
        box-shadow: var(--shadow);
      }
    `,
  ];
}
