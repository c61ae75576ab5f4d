import { css, html, LitElement, type TemplateResult } from "lit";
import { customElement, property } from "lit/decorators.js";
import { csv } from "../format/records";
import { download, fileName } from "../host/download";
import { base, fields } from "../style/shared";
import type { ChartData } from "../views/chart";
import "./menu";

/** Saves a chart: its picture as it is on show, or its numbers. */
@customElement("memest-chart-export")
export class ChartExport extends LitElement {
  @property({ attribute: false }) data: ChartData = { x: [], series: [] };
  /** Draws the picture; null before there is one. */
  @property({ attribute: false }) picture: () => HTMLCanvasElement | null = () => null;
  /** What the files are named by. */
  @property() name = "chart";

  override render(): TemplateResult {
    return html`<memest-menu label="Save" data-testid="chart-export">
      <div class="choice">
        <button type="button" class="link" data-format="png" @click=${() => this.#png()}>PNG, as on show</button>
        <button type="button" class="link" data-format="csv" @click=${() => this.#csv()}>CSV, exact bytes</button>
      </div>
    </memest-menu>`;
  }

  #png(): void {
    this.picture()?.toBlob(
      (content) => content && download(fileName("memest", this.name, "png"), content),
      "image/png",
    );
  }

  #csv(): void {
    const { x, series } = this.data;
    const records = x.map((at, n) => ({
      x: at,
      ...Object.fromEntries(series.map(({ label, values }) => [label, values[n] ?? null])),
    }));
    download(fileName("memest", this.name, "csv"), new Blob([csv(records)], { type: "text/csv" }));
  }

  static override styles = [
    base,
    fields,
    css`
      .choice {
        display: grid;
        gap: 4px;
      }
    `,
  ];
}
