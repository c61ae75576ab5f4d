import { VirtualizerController } from "@tanstack/lit-virtual";
import { html, nothing, type LitElement, type TemplateResult } from "lit";
import { createRef, type Ref } from "lit/directives/ref.js";

/** Every row of a windowed table is this high, in pixels: rows out of view are counted, not measured. */
export const ROW_HEIGHT = 30;
/** Up to here every row is in the page, so that the browser's own search finds it; beyond, only those near the view. */
const ALL_ROWS = 250;
const OVERSCAN = 8;
/** What heads and totals that stay in view may cover, in pixels. */
const MARGIN = 60;

/** Which rows of a long table are in the page. */
export class RowWindow {
  /** For the element that scrolls. */
  readonly scroller: Ref<HTMLDivElement> = createRef();
  readonly #virtual: VirtualizerController<HTMLDivElement, HTMLTableRowElement>;
  #count = 0;

  constructor(host: LitElement) {
    this.#virtual = new VirtualizerController(host, {
      getScrollElement: () => this.scroller.value ?? null,
      count: 0,
      estimateSize: () => ROW_HEIGHT,
      overscan: OVERSCAN,
    });
  }

  set count(count: number) {
    this.#count = count;
    const virtualizer = this.#virtual.getVirtualizer();
    virtualizer.setOptions({ ...virtualizer.options, count: count > ALL_ROWS ? count : 0 });
  }

  /** Whether only some of the rows are in the page. */
  get partial(): boolean {
    return this.#count > ALL_ROWS;
  }

  /** First row in the page, and the one after the last. */
  get range(): { first: number; end: number } {
    if (!this.partial) {
      return { first: 0, end: this.#count };
    }
    const items = this.#virtual.getVirtualizer().getVirtualItems();
    return { first: items[0]?.index ?? 0, end: (items.at(-1)?.index ?? -1) + 1 };
  }

  /** Scrolls until a row is in view, with some of its neighbours. */
  show(index: number): void {
    const scroller = this.scroller.value;
    if (!scroller) {
      return;
    }
    const top = index * ROW_HEIGHT;
    const room = scroller.clientHeight - MARGIN * 2;
    if (top < scroller.scrollTop + MARGIN || top + ROW_HEIGHT > scroller.scrollTop + room) {
      scroller.scrollTop = Math.max(0, top - room / 2);
    }
  }

  /** Stands for the rows before those in the page, so that the scroll bar tells the truth. */
  before(columns: number): TemplateResult | typeof nothing {
    return spacer(this.range.first, columns);
  }

  after(columns: number): TemplateResult | typeof nothing {
    return spacer(this.#count - this.range.end, columns);
  }
}

function spacer(rows: number, columns: number): TemplateResult | typeof nothing {
  return rows > 0
    ? html`<tr aria-hidden="true" style="height:${rows * ROW_HEIGHT}px">
        <td colspan=${columns} style="padding:0;border:0"></td>
      </tr>`
    : nothing;
}
