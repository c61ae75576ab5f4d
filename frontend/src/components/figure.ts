import { html, type TemplateResult } from "lit";
import { bytesFigure, exactBytes, formatBytes, type Unit } from "../format/bytes";
import type { Bytes } from "../model/types";

/** A number of bytes: rounded to read, exact on hover and in `data-bytes`. */
export function bytes(value: Bytes, unit: Unit): TemplateResult {
  return html`<span class="number" data-bytes=${value} title=${exactBytes(value)}>${plainBytes(value, unit)}</span>`;
}

/** The same for a place that carries `data-bytes` and `title` itself. */
export function plainBytes(value: Bytes, unit: Unit): TemplateResult {
  const figure = bytesFigure(value, unit);
  return html`${figure.number}<span class="unit">${figure.unit}</span>`;
}

/** `weights 2.87 GiB, 3,082,000,000 B` as the title of a piece of a picture. */
export function titleOf(label: string, value: Bytes, unit: Unit): string {
  return unit === "B"
    ? `${label}: ${exactBytes(value)}`
    : `${label}: ${formatBytes(value, unit)} (${exactBytes(value)})`;
}
