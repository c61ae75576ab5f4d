import { css, html, LitElement, nothing, unsafeCSS, type PropertyValues, type TemplateResult } from "lit";
import { customElement, property, query, state } from "lit/decorators.js";
import uPlot from "uplot";
import uPlotStyles from "uplot/dist/uPlot.min.css?inline";
import { exactBytes, formatBytes, type Unit } from "../format/bytes";
import type { Theme } from "../host/theme";
import { base, tooltips } from "../style/shared";
import { tickLabel, zoomedAxis, type ByteAxis } from "../views/axis";
import { chartRecords, type Band, type ChartData, type Level, type Pin, type Told, type Trend } from "../views/chart";
import { placed, type Box } from "../views/labels";
import { panned, within, zoomed, WHOLE, type Range, type Stretch } from "../views/stretch";
import "./export-menu";
import { onCard } from "./picture";
import { Resized } from "./resized";

const HEIGHT = 278;
const Y_AXIS_WIDTH = 70;
const FONT_SIZE = 11;
/** What one notch of the wheel and one press of a key leave of a stretch. */
const WHEEL = 0.8;
const KEY = 0.5;
const PAN = 0.25;
/** Pixels; shorter drags are clicks, and drags that are thinner than `BOTH` zoom one axis only. */
const CLICK = 4;
const BOTH = 24;
/** A wheel that turns on after the page was scrolled goes on scrolling the page, for so many milliseconds. */
const SCROLLING = 400;
/** Milliseconds of rest after which a zoom by wheel or keys is told. */
const REST = 180;

/**
 * Stepped lines on a byte axis, with bands, levels and a pinned point. Each moment is told on hover or by arrow keys.
 *
 * Both axes zoom: by a drag, the wheel (with Shift the byte axis) and keys. Fires `stretch` (detail: Stretch) when what is
 * on show was changed, and `pick` (detail: index) when a moment was chosen.
 */
@customElement("memest-curve-chart")
export class CurveChart extends LitElement {
  @property({ attribute: false }) data: ChartData = { x: [], series: [] };
  @property({ attribute: false }) axis: ByteAxis = { min: 0, max: 1, ticks: [0], limitBeyond: false };
  /** First and last x of all there is, which may be more than `data` has. */
  @property({ attribute: false }) extent: Range | null = null;
  @property({ attribute: false }) stretch: Stretch = WHOLE;
  @property({ attribute: false }) levels: readonly Level[] = [];
  @property({ attribute: false }) bands: readonly Band[] = [];
  @property({ attribute: false }) pin: Pin | null = null;
  @property({ attribute: false }) trend: Trend | null = null;
  /** Where the chosen moment is. */
  @property({ type: Number }) mark: number | null = null;
  @property({ attribute: false }) formatX: (x: number) => string = String;
  /** What is along x. */
  @property() caption = "";
  @property({ attribute: false }) describe: (index: number) => Told = () => ({ title: "", where: "", figures: [] });
  @property() label = "";
  /** What files that are saved of it are named by: a run, and what of it. */
  @property() run = "";
  @property() name = "chart";
  @property() unit: Unit = "GiB";
  /** A change of theme draws the canvas anew: it cannot follow custom properties by itself. */
  @property() theme: Theme = "light";
  @state() private told: (Told & { left: number; top: number }) | null = null;
  /** What is on show: as given, until a person changes it. */
  @state() private view: Stretch = WHOLE;
  @query(".plot") private plot!: HTMLElement;

  #chart: uPlot | null = null;
  #index: number | null = null;
  #pressed: { x: number; y: number } | null = null;
  #rest: ReturnType<typeof setTimeout> | undefined;

  constructor() {
    super();
    new Resized(this, () => this.#fit());
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    clearTimeout(this.#rest);
    this.#destroy();
  }

  override willUpdate(changed: PropertyValues): void {
    if (changed.has("stretch")) {
      this.view = this.stretch;
    }
  }

  override updated(changed: PropertyValues): void {
    const lines = (data: ChartData | undefined): string => JSON.stringify(data?.series.map(({ colour }) => colour));
    const old = changed.get("data") as ChartData | undefined;
    if (changed.has("theme") || (changed.has("data") && lines(old) !== lines(this.data))) {
      this.#destroy();
    }
    if (!this.#chart) {
      this.#fit();
      return;
    }
    if (changed.has("data")) {
      this.told = null;
      this.#chart.setData(this.#columns(), false);
    }
    const drawn: (keyof CurveChart)[] = ["data", "axis", "extent", "levels", "bands", "pin", "trend", "mark", "unit"];
    if (changed.has("view") || drawn.some((name) => changed.has(name))) {
      this.#scale();
    }
  }

  override render(): TemplateResult {
    const last = Math.max(0, this.data.x.length - 1);
    const { told } = this;
    const spoken = told && [told.title, ...told.figures.map(({ text, label }) => `${text} ${label}`), told.where];
    const isWhole = this.view.x === null && this.view.y === null;
    return html`<div
        class="plot"
        role="slider"
        tabindex="0"
        aria-label=${this.label}
        aria-valuemin="0"
        aria-valuemax=${last}
        aria-valuenow=${this.#index ?? 0}
        aria-valuetext=${spoken?.filter(Boolean).join(", ") ?? "no moment chosen"}
        @keydown=${(event: KeyboardEvent) => this.#press(event)}
        @blur=${() => this.#leave()}
        @wheel=${(event: WheelEvent) => this.#turn(event)}
        @mousedown=${(event: MouseEvent) => (this.#pressed = { x: event.clientX, y: event.clientY })}
        @click=${(event: MouseEvent) => this.#click(event)}
        @dblclick=${() => this.#show(WHOLE)}
      ></div>
      ${
        isWhole
          ? nothing
          : html`<button type="button" class="reset" data-testid="zoom-reset" @click=${() => this.#show(WHOLE)}>
              Show all
            </button>`
      }
      <memest-export-menu
        data-testid="chart-export"
        run=${this.run}
        name=${this.name}
        .records=${() => chartRecords(this.data)}
        .picture=${() => this.#picture()}
      ></memest-export-menu>
      ${told ? this.#tooltip(told) : nothing}`;
  }

  #picture(): HTMLCanvasElement | null {
    const drawn = this.plot.querySelector("canvas");
    return drawn && onCard(drawn);
  }

  #tooltip({ title, where, figures, left, top }: Told & { left: number; top: number }): TemplateResult {
    const leftward = left > this.clientWidth / 2;
    return html`<div
      class="tooltip"
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

  /** All there is along x. */
  get #whole(): Range {
    const { x } = this.data;
    const [from, to] = this.extent ?? [x[0] ?? 0, x.at(-1) ?? 1];
    return from < to ? [from, to] : [from, from + 1];
  }

  get #shown(): { x: Range; y: Range } {
    return { x: this.view.x ?? this.#whole, y: this.view.y ?? [this.axis.min, this.axis.max] };
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
    this.#chart = new uPlot(this.#options(width), this.#columns(), this.plot);
    this.#scale();
  }

  #columns(): uPlot.AlignedData {
    return [[...this.data.x], ...this.data.series.map(({ values }) => [...values])];
  }

  /** Draws what is on show. */
  #scale(): void {
    const { x, y } = this.#shown;
    this.#chart?.batch((chart: uPlot) => {
      chart.setScale("x", { min: x[0], max: x[1] });
      chart.setScale("y", { min: y[0], max: y[1] });
    });
    this.#chart?.redraw();
  }

  #destroy(): void {
    this.#chart?.destroy();
    this.#chart = null;
    this.told = null;
  }

  /** Shows a stretch, and tells of it: at once, or when no other has followed for a moment. */
  #show(view: Stretch, later = false): void {
    this.view = view;
    clearTimeout(this.#rest);
    const tell = (): boolean => this.dispatchEvent(new CustomEvent<Stretch>("stretch", { detail: view }));
    if (later) {
      this.#rest = setTimeout(tell, REST);
    } else {
      tell();
    }
  }

  #zoom(axis: "x" | "y", factor: number, centre: number): boolean {
    const whole: Range = axis === "x" ? this.#whole : [this.axis.min, this.axis.max];
    const before = this.view[axis];
    const range = zoomed(this.#shown[axis], whole, factor, centre);
    if (String(range) === String(before)) {
      return false;
    }
    this.#show({ ...this.view, [axis]: range }, true);
    return true;
  }

  #pan(axis: "x" | "y", share: number): void {
    const whole: Range = axis === "x" ? this.#whole : [this.axis.min, this.axis.max];
    this.#show({ ...this.view, [axis]: panned(this.#shown[axis], whole, share) }, true);
  }

  #turn(event: WheelEvent): void {
    const chart = this.#chart;
    const turned = event.deltaY || event.deltaX;
    if (!chart || !turned || performance.now() - scrolledAt < SCROLLING) {
      return;
    }
    const area = chart.over.getBoundingClientRect();
    const axis = event.shiftKey ? "y" : "x";
    const at =
      axis === "x" ? chart.posToVal(event.clientX - area.left, "x") : chart.posToVal(event.clientY - area.top, "y");
    // Where there is nothing left to zoom out of, the page scrolls.
    if (this.#zoom(axis, turned < 0 ? WHEEL : 1 / WHEEL, at)) {
      event.preventDefault();
    }
  }

  #click(event: MouseEvent): void {
    const moved = this.#pressed && Math.hypot(event.clientX - this.#pressed.x, event.clientY - this.#pressed.y);
    if (moved !== null && moved < CLICK && this.#index !== null) {
      this.#pick(this.#index);
    }
  }

  #pick(index: number): void {
    this.dispatchEvent(new CustomEvent<number>("pick", { detail: index }));
  }

  /** A drag has ended: what lies in it is to be shown. */
  #selected(chart: uPlot): void {
    const { left, top, width, height } = chart.select;
    chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    if (Math.hypot(width, height) < CLICK) {
      return;
    }
    const area = chart.over;
    // uPlot stretches a drag along one axis over all of the other.
    const wide = width >= CLICK && width < area.clientWidth - 1;
    const tall = height >= CLICK && height < area.clientHeight - 1;
    const x: Range = [chart.posToVal(left, "x"), chart.posToVal(left + width, "x")];
    const y: Range = [chart.posToVal(top + height, "y"), chart.posToVal(top, "y")];
    this.#show({
      x: wide ? within(x, this.#whole) : this.view.x,
      y: tall ? within(y, [this.axis.min, this.axis.max]) : this.view.y,
    });
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
        drag: { x: true, y: true, uni: BOTH, setScale: false },
        // A double click shows all; what uPlot itself would do knows only what is in `data`.
        bind: { dblclick: () => null },
        // What is in use between two events is what the one before left, however near the next one is.
        dataIdx: (chart, _, nearest, x) => (nearest > 0 && (chart.data[0][nearest] ?? x) > x ? nearest - 1 : nearest),
      },
      scales: { x: { time: false, auto: false }, y: { auto: false } },
      axes: [
        {
          ...axis,
          size: 24,
          label: () => this.caption,
          labelSize: 18,
          labelGap: 0,
          labelFont: font,
          grid: { show: false },
          space: 80,
          values: (_, splits) => splits.map((split) => (Number.isInteger(split) ? this.formatX(split) : "")),
        },
        {
          ...axis,
          size: Y_AXIS_WIDTH,
          splits: () => this.#seenAxis.ticks,
          values: (_, splits) => splits.map((split) => tickLabel(split, this.#seenAxis.max, this.unit)),
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
        draw: [
          (chart) => this.#drawMark(chart),
          (chart) => this.#drawPin(chart, [...this.#drawLevels(chart), ...this.#drawTrend(chart)]),
        ],
        setCursor: [(chart) => this.#tell(chart)],
        setSelect: [(chart) => this.#selected(chart)],
      },
    };
  }

  get #seenAxis(): ByteAxis {
    return zoomedAxis(this.axis, this.view.y, this.unit);
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

  /** The chosen moment. */
  #drawMark(chart: uPlot): void {
    const { ctx, bbox } = chart;
    if (this.mark === null) {
      return;
    }
    const x = chart.valToPos(this.mark, "x", true);
    if (x < bbox.left || x > bbox.left + bbox.width) {
      return;
    }
    ctx.save();
    ctx.strokeStyle = this.#token("--accent");
    ctx.lineWidth = 1.5 * devicePixelRatio;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.restore();
  }

  /** Gives back where the words stand. */
  #drawLevels(chart: uPlot): Box[] {
    const { ctx, bbox } = chart;
    const taken: Box[] = [];
    ctx.save();
    this.#type(ctx);
    for (const level of this.levels) {
      const y = chart.valToPos(level.bytes, "y", true);
      if (y < bbox.top || y > bbox.top + bbox.height) {
        continue;
      }
      ctx.strokeStyle = ctx.fillStyle = this.#token(level.colour);
      ctx.lineWidth = 1.5 * devicePixelRatio;
      ctx.setLineDash([5 * devicePixelRatio, 4 * devicePixelRatio]);
      ctx.beginPath();
      ctx.moveTo(bbox.left, y);
      ctx.lineTo(bbox.left + bbox.width, y);
      ctx.stroke();
      const text = `${level.label} ${formatBytes(level.bytes, this.unit)}`;
      const { width } = ctx.measureText(text);
      const height = FONT_SIZE * devicePixelRatio;
      const inset = 4 * devicePixelRatio;
      const left = level.side === "left" ? bbox.left + inset : bbox.left + bbox.width - inset - width;
      const below = level.below && y + 2 * inset + height < bbox.top + bbox.height;
      const top = below ? y + inset : y - inset - height;
      this.#halo(ctx, text, left, top + height);
      // Nothing else goes on the line itself, beside its words or elsewhere.
      taken.push({ left, top, width, height }, { left: bbox.left, top: y - 1, width: bbox.width, height: 2 });
    }
    ctx.restore();
    return taken;
  }

  /** Gives back where the words stand. */
  #drawTrend(chart: uPlot): Box[] {
    const { trend } = this;
    if (!trend) {
      return [];
    }
    const { ctx, bbox } = chart;
    const [from, to] = [trend.from, trend.to].map(({ x, bytes }) => ({
      x: chart.valToPos(x, "x", true),
      y: chart.valToPos(bytes, "y", true),
    })) as [{ x: number; y: number }, { x: number; y: number }];
    ctx.save();
    this.#type(ctx);
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.strokeStyle = ctx.fillStyle = this.#token(trend.colour);
    ctx.lineWidth = 2.5 * devicePixelRatio;
    ctx.beginPath();
    ctx.moveTo(from.x, from.y);
    ctx.lineTo(to.x, to.y);
    ctx.stroke();
    for (const { x, y } of [from, to]) {
      ctx.beginPath();
      ctx.arc(x, y, 4 * devicePixelRatio, 0, 2 * Math.PI);
      ctx.fill();
    }
    const size = { width: ctx.measureText(trend.text).width, height: FONT_SIZE * devicePixelRatio };
    // To the left of the middle what grows is below it.
    const gap = 8 * devicePixelRatio;
    const box = {
      left: Math.max(bbox.left + gap, (from.x + to.x) / 2 - gap - size.width),
      top: Math.max(bbox.top, (from.y + to.y) / 2 - gap - size.height),
      ...size,
    };
    this.#halo(ctx, trend.text, box.left, box.top + box.height);
    ctx.restore();
    return [box];
  }

  /** The pinned point; one that is out of sight is named at the edge behind which it lies. */
  #drawPin(chart: uPlot, taken: readonly Box[]): void {
    const { pin } = this;
    if (!pin) {
      return;
    }
    const { ctx, bbox } = chart;
    const at = { x: chart.valToPos(pin.x, "x", true), y: chart.valToPos(pin.bytes, "y", true) };
    const [right, bottom] = [bbox.left + bbox.width, bbox.top + bbox.height];
    const point = {
      x: Math.max(bbox.left, Math.min(right, at.x)),
      y: Math.max(bbox.top, Math.min(bottom, at.y)),
    };
    const arrow = at.x < bbox.left ? "← " : at.x > right ? "→ " : at.y < bbox.top ? "↑ " : at.y > bottom ? "↓ " : "";
    const text = arrow + pin.text;
    ctx.save();
    this.#type(ctx);
    if (!arrow) {
      ctx.fillStyle = this.#token(pin.colour);
      ctx.beginPath();
      ctx.arc(point.x, point.y, 3.5 * devicePixelRatio, 0, 2 * Math.PI);
      ctx.fill();
    }
    const size = { width: ctx.measureText(text).width, height: FONT_SIZE * devicePixelRatio };
    // Words may stand in the strip above the plot, where the names of the bands are, only without bands.
    const strip = this.bands.length ? 0 : 16 * devicePixelRatio;
    const bounds = { left: bbox.left, top: bbox.top - strip, width: bbox.width, height: bbox.height + strip };
    const box = placed(point, size, bounds, taken, 6 * devicePixelRatio);
    ctx.fillStyle = this.#token("--ink");
    this.#halo(ctx, text, box.left, box.top + box.height);
    ctx.restore();
  }

  /** Text that stays readable over lines; from `x` on, on the line `y`. */
  #halo(ctx: CanvasRenderingContext2D, text: string, x: number, y: number): void {
    ctx.textAlign = "left";
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

  /** Arrow keys go from moment to moment and with Shift move what is on show; + and - zoom, with Shift the byte axis. */
  #press(event: KeyboardEvent): void {
    const chart = this.#chart;
    if (!chart || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const { x, y } = this.#shown;
    const here = this.#index === null ? (x[0] + x[1]) / 2 : (this.data.x[this.#index] ?? x[0]);
    const actions: Record<string, () => void> = {
      "+": () => this.#zoom("x", KEY, here),
      "=": () => this.#zoom("x", KEY, here),
      "-": () => this.#zoom("x", 1 / KEY, here),
      ArrowUp: () => (event.shiftKey ? this.#pan("y", PAN) : this.#zoom("y", KEY, (y[0] + y[1]) / 2)),
      ArrowDown: () => (event.shiftKey ? this.#pan("y", -PAN) : this.#zoom("y", 1 / KEY, (y[0] + y[1]) / 2)),
      ArrowLeft: () => (event.shiftKey ? this.#pan("x", -PAN) : this.#step(-1)),
      ArrowRight: () => (event.shiftKey ? this.#pan("x", PAN) : this.#step(1)),
      PageUp: () => this.#step(-50),
      PageDown: () => this.#step(50),
      Home: () => this.#step(-Infinity),
      End: () => this.#step(Infinity),
      Enter: () => this.#index !== null && this.#pick(this.#index),
      "0": () => this.#show(WHOLE),
      Escape: () => this.#show(WHOLE),
    };
    const act = actions[event.key];
    if (act) {
      event.preventDefault();
      act();
    }
  }

  /** Goes `by` moments on, among those in sight. */
  #step(by: number): void {
    const { x } = this.data;
    const [from, to] = this.#shown.x;
    const first = Math.max(
      0,
      x.findIndex((value) => value >= from),
    );
    const after = x.findIndex((value) => value > to);
    const last = (after < 0 ? x.length : after) - 1;
    const index = Math.max(first, Math.min(last, (this.#index ?? first - 1) + by));
    const chart = this.#chart!;
    const left = chart.valToPos(x[index]!, "x");
    const top = chart.valToPos(this.data.series[0]!.values[index] ?? 0, "y");
    chart.setCursor({ left, top });
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
    tooltips,
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
      .reset {
        position: absolute;
        right: 24px;
        top: 22px;
        font: inherit;
        font-size: 12px;
        color: var(--accent);
        background: var(--card);
        border: 1px solid var(--edge);
        border-radius: 5px;
        padding: 1px 8px;
        cursor: pointer;
      }
      .reset:hover {
        background: var(--hover);
      }
      memest-export-menu {
        position: absolute;
        right: 0;
        bottom: -6px;
      }
    `,
  ];
}

/** When the page was last scrolled. */
let scrolledAt = -Infinity;
addEventListener("scroll", () => (scrolledAt = performance.now()), { passive: true, capture: true });
