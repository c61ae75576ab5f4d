import { css, html, LitElement, nothing, type TemplateResult } from "lit";
import { customElement, property } from "lit/decorators.js";
import { formatBytes } from "../format/bytes";
import type { Bytes, Gpu } from "../model/types";
import { base, fields } from "../style/shared";
import { choose } from "./choose";

/** The memory to judge by: a size or a device's name, typed or chosen. The server decides whether it is one. */
@customElement("memest-limit-field")
export class LimitField extends LitElement {
  @property({ attribute: false }) gpus: readonly Gpu[] = [];
  @property() limit = "";
  /** What the limit is while none is typed; null where none was recorded. */
  @property({ attribute: false }) recorded: Bytes | null = null;
  /** Why the server did not take it. */
  @property() refused: string | null = null;

  override render(): TemplateResult {
    return html`
      <form @submit=${(event: Event) => this.#take(event)}>
        <label for="limit">GPU or limit</label>
        <span class="field">
          <input
            id="limit"
            type="text"
            data-testid="limit-input"
            name="limit"
            .value=${this.limit}
            placeholder=${this.recorded === null ? "size or GPU" : formatBytes(this.recorded)}
            title="Memory of the device, such as 9.29GiB, or a GPU's name, such as RTX 3080. Empty: the limit recorded with the run."
            list="gpus"
            class=${this.recorded === null ? "" : "recorded"}
            autocomplete="off"
            spellcheck="false"
            aria-invalid=${this.refused ? "true" : "false"}
            aria-describedby="refused"
            @change=${(event: Event) => this.#take(event)}
            @blur=${(event: Event) => ((event.target as HTMLInputElement).value = this.limit)}
          />
          <datalist id="gpus">
            ${this.gpus.map(
              (gpu) =>
                html`<option value=${gpu.name}>
                  ${formatBytes(gpu.usable_bytes)} usable of
                  ${formatBytes(gpu.memory_bytes)}${gpu.carries ? `, ${gpu.carries}` : nothing}
                </option>`,
            )}
          </datalist>
          ${
            this.limit
              ? html`<button
                  type="button"
                  class="clear"
                  aria-label="Clear the limit"
                  @click=${() => choose(this, { limit: "" })}
                >
                  ×
                </button>`
              : nothing
          }
        </span>
        <button
          type="button"
          class="small pick"
          data-testid="limit-pick"
          aria-label="Choose a GPU"
          title="Choose a GPU"
          @click=${() => this.#pick()}
        >
          ▾
        </button>
      </form>
      <p id="refused" role="alert" data-testid="limit-error">${this.refused ?? nothing}</p>
    `;
  }

  /** Shows the list of GPUs: all of them, for which the field has to be empty. What stood there comes back. */
  #pick(): void {
    const input = this.renderRoot.querySelector<HTMLInputElement>("#limit")!;
    input.value = "";
    input.focus();
    input.showPicker();
  }

  #take(event: Event): void {
    event.preventDefault();
    const input = this.renderRoot.querySelector<HTMLInputElement>("#limit")!;
    choose(this, { limit: input.value.trim() });
  }

  static override styles = [
    base,
    fields,
    css`
      .field {
        position: relative;
        display: flex;
        align-items: center;
      }
      form {
        display: flex;
        align-items: center;
        gap: 8px;
      }
      label {
        color: var(--soft);
      }
      input[type="text"] {
        width: 148px;
        font-size: 13px;
        padding-right: 24px;
      }
      .recorded::placeholder {
        color: var(--ink);
      }
      .pick {
        padding: 3px 7px;
        margin-left: -4px;
      }
      input[aria-invalid="true"] {
        border-color: var(--bad);
      }
      .clear {
        position: absolute;
        right: 2px;
        border: 0;
        background: none;
        color: var(--soft);
        font-size: 15px;
        line-height: 1;
        padding: 4px 6px;
        cursor: pointer;
      }
      p {
        margin: 4px 0 0;
        max-width: 60ch;
        color: var(--bad);
      }
      p:empty {
        display: none;
      }
    `,
  ];
}
