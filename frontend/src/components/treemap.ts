import { css, html, LitElement, nothing, type PropertyValues, type TemplateResult } from "lit";
import { customElement, property, query, state } from "lit/decorators.js";
import { exactBytes, formatBytes, formatShape, formatShare, type Unit } from "../format/bytes";
import type { Theme } from "../host/theme";
import { CATEGORIES, type AliveItem, type Bytes, type MomentGroup } from "../model/types";
import { LABELS, readable } from "../style/palette";
import { base, fields, tooltips } from "../style/shared";
import type { Box } from "../views/labels";
import { treemapOf, type GroupBox } from "../views/treemap";
import { counted } from "../views/words";
import { onCard } from "./picture";
import { Resized } from "./resized";

const HEIGHT = 320;
const FONT_SIZE = 11;
/** Pixels a rectangle needs for words, and a group to be reachable by itself; the table has the smaller ones too. */
const WORDS = { width: 46, height: 15 };
const REACHABLE = 5;

/**
 * Everything alive at a moment as rectangles, a group around those that belong together.
 *
 * The rectangles are painted, as there may be thousands; over each group lies a button. Arrow keys go from group to group.
 * Fires `open-group` (detail: key).
 */
@customElement("memest-treemap")
export class Treemap extends LitElement {
  @property({ attribute: false }) groups: readonly MomentGroup[] = [];
  @property({ type: Number }) whole: Bytes = 0;
  @property() label = "";
  @property() unit: Unit = "GiB";
  @property() theme: Theme = "light";
  /** Whether a group can be opened; otherwise each group is a single buffer. */
  @property({ type: Boolean }) opens = true;
  @state() private width = 0;
  @state() private told: { item: AliveItem; left: number; top: number } | null = null;
  @state() private reached = 0;
  @query("canvas") private canvas!: HTMLCanvasElement;

  #boxes: GroupBox[] = [];

  constructor() {
    super();
    new Resized(this, () => (this.width = this.clientWidth));
  }

  override willUpdate(changed: PropertyValues): void {
    if (changed.has("groups") || changed.has("width")) {
      this.#boxes = this.width ? treemapOf(this.groups, this.width, HEIGHT) : [];
      this.told = null;
      this.reached = 0;
    }
  }

  override updated(changed: PropertyValues): void {
    // Not while a pointer moves over it.
    if (["groups", "width", "unit", "theme"].some((name) => changed.has(name))) {
      this.#paint();
    }
  }

  override render(): TemplateResult {
    const reachable = this.#boxes.filter(({ box }) => box.width >= REACHABLE && box.height >= REACHABLE);
    return html`<canvas aria-hidden="true"></canvas>
      <div
        class="groups"
        role="group"
        aria-label=${this.label}
        @keydown=${(event: KeyboardEvent) => this.#press(event, reachable.length)}
        @mousemove=${(event: MouseEvent) => this.#hover(event)}
        @mouseleave=${() => (this.told = null)}
      >
        ${reachable.map(({ group, box }, n) => this.#group(group, box, n))}
      </div>
      ${this.told ? this.#tooltip(this.told) : nothing}`;
  }

  /** What is drawn, to be saved. */
  picture(): HTMLCanvasElement {
    return onCard(this.canvas);
  }

  #group(group: MomentGroup, box: Box, n: number): TemplateResult {
    const words = `${group.key}: ${formatBytes(group.bytes, this.unit)}, ${formatShare(group.bytes, this.whole)}, ${counted(group.count, "buffer")}`;
    return html`<button
      type="button"
      class="bare"
      data-testid="treemap-group"
      data-key=${group.key}
      data-bytes=${group.bytes}
      aria-label=${words}
      tabindex=${n === this.reached ? 0 : -1}
      style="left:${box.left}px;top:${box.top}px;width:${box.width}px;height:${box.height}px"
      @focus=${() => (this.reached = n)}
      @click=${() => this.opens && this.dispatchEvent(new CustomEvent("open-group", { detail: group.key }))}
    ></button>`;
  }

  #tooltip({ item, left, top }: { item: AliveItem; left: number; top: number }): TemplateResult {
    const leftward = left > this.width / 2;
    return html`<div
      class="tooltip"
      data-testid="treemap-tooltip"
      style="top:${Math.min(top + 14, HEIGHT - 90)}px;${leftward ? `right:${this.width - left + 12}px` : `left:${left + 12}px`}"
    >
      <div class="title">${item.name}</div>
      <div data-bytes=${item.all_bytes}>
        <b>${formatBytes(item.all_bytes, this.unit)}</b>
        ${exactBytes(item.all_bytes)}${item.count > 1 ? html`, ${item.count} alike` : nothing}
      </div>
      <div>${LABELS[item.category]} · ${item.role}</div>
      <div class="soft">
        ${item.layer}${item.shape ? html` · ${formatShape(item.shape)} ${item.dtype ?? nothing}` : nothing}
      </div>
    </div>`;
  }

  #press(event: KeyboardEvent, count: number): void {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
    if (by === undefined) {
      return;
    }
    event.preventDefault();
    this.reached = Math.max(0, Math.min(count - 1, this.reached + by));
    const buttons = this.shadowRoot!.querySelectorAll<HTMLButtonElement>(".groups button");
    buttons[this.reached]?.focus();
  }

  #hover(event: MouseEvent): void {
    const area = this.getBoundingClientRect();
    const [left, top] = [event.clientX - area.left, event.clientY - area.top];
    const here = ({ box }: { box: Box }): boolean =>
      left >= box.left && left < box.left + box.width && top >= box.top && top < box.top + box.height;
    const found = this.#boxes.find(here);
    const item = found?.items.find(here);
    this.told = found && item ? { item: found.group.items[item.index]!, left, top } : null;
  }

  #paint(): void {
    const ctx = this.canvas.getContext("2d");
    if (!ctx || !this.width) {
      return;
    }
    const scale = devicePixelRatio;
    this.canvas.width = this.width * scale;
    this.canvas.height = HEIGHT * scale;
    ctx.scale(scale, scale);
    const style = getComputedStyle(this);
    const token = (name: string): string => style.getPropertyValue(name).trim();
    ctx.font = `${FONT_SIZE}px ${token("--font")}`;
    ctx.textBaseline = "middle";
    const stripes = this.#stripes(ctx, token("--category-unattributed"), token("--track"));
    const fills = new Map(CATEGORIES.map((category) => [category, token(`--category-${category}`)]));
    const [ground, ink, card] = ["--code", "--ink", "--card"].map(token) as [string, string, string];
    for (const { group, box, items } of this.#boxes) {
      ctx.fillStyle = ground;
      ctx.fillRect(box.left, box.top, box.width, box.height);
      for (const { index, category, box: inner } of items) {
        const fill = fills.get(category)!;
        ctx.fillStyle = category === "unattributed" ? stripes : fill;
        ctx.fillRect(inner.left, inner.top, inner.width, inner.height);
        if (inner.width >= WORDS.width && inner.height >= WORDS.height && category !== "unattributed") {
          ctx.fillStyle = readable(fill, [ink, card]);
          this.#write(ctx, shortName(group.items[index]!), inner);
        }
      }
      const heading = (items[0]?.box.top ?? box.top) - box.top;
      if (heading >= WORDS.height) {
        ctx.fillStyle = ink;
        this.#write(ctx, `${group.key}  ${formatBytes(group.bytes, this.unit)}`, { ...box, height: heading });
      }
    }
  }

  /** Words in the upper left corner of a rectangle, as many as go in. */
  #write(ctx: CanvasRenderingContext2D, text: string, { left, top, width, height }: Box): void {
    // No letter is narrower than this; what is left to cut is found by measuring.
    let words = text.slice(0, Math.ceil(width / (FONT_SIZE / 4)));
    while (words.length > 3 && ctx.measureText(words).width > width - 8) {
      words = `${words.slice(0, -2)}…`;
    }
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, top, width, height);
    ctx.clip();
    ctx.fillText(words, left + 4, top + Math.min(height, WORDS.height + 2) / 2 + 0.5);
    ctx.restore();
  }

  #stripes(ctx: CanvasRenderingContext2D, colour: string, ground: string): CanvasPattern | string {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 6;
    const pen = tile.getContext("2d")!;
    pen.fillStyle = ground;
    pen.fillRect(0, 0, 6, 6);
    pen.strokeStyle = colour;
    pen.lineWidth = 2;
    for (const from of [-6, 0, 6]) {
      pen.moveTo(from, 6);
      pen.lineTo(from + 6, 0);
    }
    pen.stroke();
    return ctx.createPattern(tile, "repeat") ?? colour;
  }

  static override styles = [
    base,
    fields,
    tooltips,
    css`
      :host {
        position: relative;
        height: ${HEIGHT}px;
        min-width: 0;
      }
      canvas {
        position: absolute;
        inset: 0;
        width: 100%;
        height: 100%;
      }
      .groups {
        position: absolute;
        inset: 0;
      }
      .groups button {
        position: absolute;
      }
      .groups button:hover {
        box-shadow: inset 0 0 0 2px var(--ink);
      }
      .groups button:focus-visible {
        outline: 3px solid var(--accent);
        outline-offset: -3px;
        box-shadow: inset 0 0 0 5px var(--card);
        z-index: 1;
      }
    `,
  ];
}

/** What a buffer is, and whose, in few words. */
function shortName({ role, variable, name }: AliveItem): string {
  return `${role} ${(variable ?? name).split("/").slice(-2).join("/")}`;
}

declare global {
  interface HTMLElementTagNameMap {
    "memest-treemap": Treemap;
  }
}
