import { css, html, LitElement, nothing, type TemplateResult } from "lit";
import { customElement, property } from "lit/decorators.js";
import { csv, json, type Fields } from "../format/records";
import { download, fileName } from "../host/download";
import { base, fields } from "../style/shared";
import "./menu";

/** Saves what a card shows: its numbers with exact bytes and, where it draws one, its picture. The slot may say what is in it. */
@customElement("memest-export-menu")
export class ExportMenu extends LitElement {
  /** Makes the records when they are asked for. */
  @property({ attribute: false }) records: () => readonly Fields[] = () => [];
  /** Draws the picture, null before there is one; left out where a card has none. */
  @property({ attribute: false }) picture: (() => HTMLCanvasElement | null) | null = null;
  /** What the files are named by: a run, and what of it. */
  @property() run = "";
  @property() name = "records";

  override render(): TemplateResult {
    return html`<memest-menu label="Export" about=${this.name}>
      <div class="choice">
        <button type="button" class="link" data-format="csv" @click=${() => this.#save("csv", csv, "text/csv")}>
          CSV, exact bytes
        </button>
        <button
          type="button"
          class="link"
          data-format="json"
          @click=${() => this.#save("json", json, "application/json")}
        >
          JSON, exact bytes
        </button>
        ${
          this.picture
            ? html`<button type="button" class="link" data-format="png" @click=${() => this.#draw()}>
                PNG, as on show
              </button>`
            : nothing
        }
        <slot></slot>
      </div>
    </memest-menu>`;
  }

  #save(ending: string, written: (records: readonly Fields[]) => string, type: string): void {
    download(fileName(this.run, this.name, ending), new Blob([written(this.records())], { type }));
  }

  #draw(): void {
    this.picture?.()?.toBlob((content) => content && download(fileName(this.run, this.name, "png"), content));
  }

  static override styles = [
    base,
    fields,
    css`
      :host {
        display: inline-block;
      }
      .choice {
        display: grid;
        gap: 4px;
      }
    `,
  ];
}
