import { css, html, LitElement, nothing, unsafeCSS, type PropertyValues, type TemplateResult } from "lit";
import { customElement, property, query, state } from "lit/decorators.js";
import uPlot from "uplot";
import uPlotStyles from "uplot/dist/uPlot.min.css?inline";
import { exactBytes, formatBytes, type Unit } from "../format/bytes";
import type { Theme } from "../host/theme";
import { base } from "../style/shared";
import { tickLabel, type ByteAxis } from "../views/axis";
import type { Band, ChartData, Level, Told } from "../views/chart";
import { peakIndex } from "../views/curves";

const HEIGHT = 260;
const Y_AXIS_WIDTH = 62;
const FONT_SIZE = 11;

/** Stepped lines on a byte axis, with bands, levels, the peak marked, and each moment told on hover or by arrow keys. */
@customElement("memest-curve-chart")
export class CurveChart extends LitElement {
  @property({ attribute: false }) data: ChartData = { x: [], series: [] };
  @property({ attribute: false }) axis: ByteAxis = { max: 1, ticks: [0], limitBeyond: false };
  @property({ attribute: false }) levels: readonly Level[] = [];
  @property({ attribute: false }) bands: readonly Band[] = [];
  @property({ attribute: false }) formatX: (x: number) => string = String;
  @property({ attribute: false }) describe: (index: number) => Told = () => ({ title: "", where: "", figures: [] });
  /** Words beside the mark on the first line's peak. */
  @property() peakLabel = "";
  @property() label = "";
  @property() unit: Unit = "GiB";
  /** A change of theme draws the canvas anew: it cannot follow custom properties by itself. */
  @property() theme: Theme = "light";
  @state() private told: (Told & { left: number; top: number }) | null = null;
  @query(".plot") private plot!: HTMLElement;

  #chart: uPlot | null = null;
  #index: number | null = null;
  readonly #resized = new ResizeObserver(() => this.#fit());

  override connectedCallback(): void {
    super.connectedCallback();
    this.#resized.observe(this);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#resized.disconnect();
    this.#destroy();
  }

  override updated(changed: PropertyValues): void {
    const drawn: (keyof CurveChart)[] = ["data", "axis", "levels", "bands", "peakLabel", "unit", "theme"];
    if (drawn.some((name) => changed.has(name))) {
      this.#destroy();
      this.#fit();
    }
  }

  override render(): TemplateResult {
    return html`<div
        class="plot"
        role="img"
        tabindex="0"
        aria-label=${this.label}
        @keydown=${(event: KeyboardEvent) => this.#step(event)}
        @blur=${() => this.#leave()}
      ></div>
      ${this.told ? this.#tooltip(this.told) : nothing}`;
  }

  #tooltip({ title, where, figures, left, top }: Told & { left: number; top: number }): TemplateResult {
    const leftward = left > this.clientWidth / 2;
    return html`<div
      class="tooltip"
      role="status"
      data-testid="chart-tooltip"
      style="top:${Math.min(top + 10, HEIGHT - 60)}px;${leftward ? `right:${this.clientWidth - left + 12}px` : `left:${left + 12}px`}"
    >
      ${title ? html`<div class="title">${title}</div>` : nothing}
      ${figures.map(
        ({ label, bytes, text }) =>
          html`<div data-bytes=${bytes}><b>${text}</b> ${label} <span class="soft">${exactBytes(bytes)}</span></div>`,
      )}
      ${where ? html`<div class="soft">${where}</div>` : nothing}
    </div>`;
  }

  /** While the tab is hidden there is no width to draw in; the observer calls again when there is. */
  #fit(): void {
    const width = this.clientWidth;
    if (width === 0 || !this.isConnected || this.data.x.length === 0) {
      return;
    }
    if (this.#chart) {
      if (this.#chart.width !== width) {
        this.#chart.setSize({ width, height: HEIGHT });
      }
      return;
    }
    const x = [...this.data.x];
    const columns = this.data.series.map((series) => [...series.values]);
    this.#chart = new uPlot(this.#options(width), [x, ...columns], this.plot);
  }

  #destroy(): void {
    this.#chart?.destroy();
    this.#chart = null;
    this.told = null;
  }

  #options(width: number): uPlot.Options {
    const font = `${FONT_SIZE}px ${this.#token("--font")}`;
    const grid = { stroke: this.#token("--line"), width: 1 };
    const stepped = uPlot.paths.stepped?.({ align: 1 });
    const axis = { stroke: this.#token("--soft"), font, grid, ticks: { show: false } };
    return {
      width,
      height: HEIGHT,
      padding: [18, 24, 0, 0],
      legend: { show: false },
      cursor: {
        y: false,
        points: { size: 7 },
        drag: { x: true, y: false },
        // What is in use between two events is what the one before left, however near the next one is.
        dataIdx: (chart, _, nearest, x) => (nearest > 0 && (chart.data[0][nearest] ?? x) > x ? nearest - 1 : nearest),
      },
      scales: { x: { time: false }, y: { range: [0, this.axis.max] } },
      axes: [
        {
          ...axis,
          size: 26,
          grid: { show: false },
          space: 70,
          values: (_, splits) => splits.map((split) => (Number.isInteger(split) ? this.formatX(split) : "")),
        },
        {
          ...axis,
          size: Y_AXIS_WIDTH,
          splits: () => this.axis.ticks,
          values: (_, splits) => splits.map((split) => tickLabel(split, this.axis.max, this.unit)),
        },
      ],
      series: [
        {},
        ...this.data.series.map((series) => ({
          label: series.label,
          stroke: this.#token(series.colour),
          width: 1.5,
          points: { show: false },
          ...(series.area ? { fill: this.#token(series.area) } : {}),
          ...(stepped ? { paths: stepped } : {}),
        })),
      ],
      hooks: {
        drawClear: [(chart) => this.#drawBands(chart)],
        draw: [(chart) => this.#drawLevels(chart), (chart) => this.#drawPeak(chart)],
        setCursor: [(chart) => this.#tell(chart)],
      },
    };
  }

  #drawBands(chart: uPlot): void {
    const { ctx, bbox } = chart;
    ctx.save();
    this.#type(ctx);
    let written = -Infinity;
    this.bands.forEach((band, n) => {
      const from = Math.max(bbox.left, chart.valToPos(band.start, "x", true));
      const to = Math.min(bbox.left + bbox.width, chart.valToPos(band.end, "x", true));
      if (to <= from) {
        return;
      }
      if (n % 2 === 0) {
        ctx.fillStyle = this.#token("--band");
        ctx.fillRect(from, bbox.top, to - from, bbox.height);
      }
      const half = ctx.measureText(band.name).width / 2;
      const middle = (from + to) / 2;
      // Stretches may overlap; their names must not.
      if (2 * half < to - from - 4 && middle - half > written) {
        written = middle + half;
        ctx.fillStyle = this.#token("--soft");
        ctx.textAlign = "center";
        ctx.fillText(band.name, middle, bbox.top - 6 * devicePixelRatio);
      }
    });
    ctx.restore();
  }

  #drawLevels(chart: uPlot): void {
    const { ctx, bbox } = chart;
    ctx.save();
    this.#type(ctx);
    for (const level of this.levels) {
      if (level.bytes > this.axis.max) {
        continue;
      }
      const y = chart.valToPos(level.bytes, "y", true);
      ctx.strokeStyle = ctx.fillStyle = this.#token(level.colour);
      ctx.lineWidth = 1.5 * devicePixelRatio;
      ctx.setLineDash([5 * devicePixelRatio, 4 * devicePixelRatio]);
      ctx.beginPath();
      ctx.moveTo(bbox.left, y);
      ctx.lineTo(bbox.left + bbox.width, y);
      ctx.stroke();
      ctx.textAlign = level.side;
      const inset = 4 * devicePixelRatio;
      const x = level.side === "left" ? bbox.left + inset : bbox.left + bbox.width - inset;
      this.#halo(
        ctx,
        `${level.label} ${formatBytes(level.bytes, this.unit)}`,
        x,
        level.below ? y + 3.5 * inset : y - inset,
      );
    }
    ctx.restore();
  }

  #drawPeak(chart: uPlot): void {
    const series = this.data.series[0];
    const index = this.peakLabel && series ? peakIndex(series.values) : -1;
    if (!series || index < 0) {
      return;
    }
    const { ctx, bbox } = chart;
    const x = chart.valToPos(this.data.x[index]!, "x", true);
    const y = chart.valToPos(series.values[index]!, "y", true);
    if (x < bbox.left || x > bbox.left + bbox.width) {
      return;
    }
    ctx.save();
    this.#type(ctx);
    ctx.fillStyle = this.#token(series.colour);
    ctx.beginPath();
    ctx.arc(x, y, 3.5 * devicePixelRatio, 0, 2 * Math.PI);
    ctx.fill();
    const { width } = ctx.measureText(this.peakLabel);
    const left = Math.max(bbox.left, Math.min(x - width / 2, bbox.left + bbox.width - width));
    ctx.textAlign = "left";
    ctx.fillStyle = this.#token("--ink");
    this.#halo(ctx, this.peakLabel, left, y - 8 * devicePixelRatio);
    ctx.restore();
  }

  /** Text that stays readable over lines. */
  #halo(ctx: CanvasRenderingContext2D, text: string, x: number, y: number): void {
    ctx.setLineDash([]);
    ctx.lineJoin = "round";
    ctx.lineWidth = 4 * devicePixelRatio;
    ctx.strokeStyle = this.#token("--card");
    ctx.strokeText(text, x, y);
    ctx.fillText(text, x, y);
  }

  #type(ctx: CanvasRenderingContext2D): void {
    ctx.font = `${FONT_SIZE * devicePixelRatio}px ${this.#token("--font")}`;
    ctx.textBaseline = "alphabetic";
  }

  #tell(chart: uPlot): void {
    const { idxs, left, top } = chart.cursor;
    const idx = idxs?.[1];
    if (idx === null || idx === undefined || left === undefined || left < 0) {
      this.told = null;
      this.#index = null;
      return;
    }
    this.#index = idx;
    this.told = { ...this.describe(idx), left: left + Y_AXIS_WIDTH, top: Math.max(0, top ?? 0) };
  }

  #step(event: KeyboardEvent): void {
    const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -50, PageDown: 50, Home: -Infinity, End: Infinity }[event.key];
    if (by === undefined || !this.#chart) {
      return;
    }
    event.preventDefault();
    const last = this.data.x.length - 1;
    const index = Math.max(0, Math.min(last, (this.#index ?? -1) + by));
    const left = this.#chart.valToPos(this.data.x[index]!, "x");
    const top = this.#chart.valToPos(this.data.series[0]!.values[index]!, "y");
    this.#chart.setCursor({ left, top });
    // Moments that share a pixel share its position: say which one is meant.
    this.#index = index;
    this.told = { ...this.describe(index), left: left + Y_AXIS_WIDTH, top };
  }

  #leave(): void {
    this.#chart?.setCursor({ left: -10, top: -10 });
  }

  #token(name: string): string {
    return getComputedStyle(this).getPropertyValue(name).trim();
  }

  static override styles = [
    unsafeCSS(uPlotStyles),
    base,
    css`
      :host {
        position: relative;
        min-height: ${HEIGHT}px;
        min-width: 0;
      }
      .plot {
        overflow: hidden;
      }
      .u-hz .u-cursor-x,
      .u-hz .u-cursor-y {
        border-color: var(--soft);
      }
      .u-select {
        background: var(--area);
      }
      .tooltip {
        position: absolute;
        z-index: 2;
        pointer-events: none;
        max-width: min(420px, 90%);
        background: var(--card);
        border: 1px solid var(--edge);
        border-radius: 4px;
        box-shadow: var(--shadow);
        padding: 6px 9px;
        font-size: 12px;
      }
      .title {
        font: 11.5px var(--mono);
        overflow-wrap: anywhere;
      }
    `,
  ];
}
