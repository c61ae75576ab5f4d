import { css, html, LitElement, type TemplateResult } from "lit";
import { customElement, property } from "lit/decorators.js";
import { base } from "../style/shared";

/** A heading and what the slot holds, in the middle of an otherwise empty tab. */
@customElement("memest-message-card")
export class MessageCard extends LitElement {
  @property() heading = "";

  override render(): TemplateResult {
    return html`<h1>${this.heading}</h1>
      <slot></slot>`;
  }

  static override styles = [
    base,
    css`
      :host {
        max-width: 620px;
        margin: 12vh auto 0;
        background: var(--card);
        border: 1px solid var(--edge);
        border-radius: var(--radius);
        padding: 26px 32px 28px;
        font-size: 14px;
      }
      h1 {
        margin: 0 0 10px;
        font-size: 20px;
        font-weight: 600;
      }
    `,
  ];
}
