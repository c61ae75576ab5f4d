import { css } from "lit";

/** What every component's styles start from. */
export const base = css`
  :host {
    display: block;
    color: var(--ink);
    font: 13px/1.45 var(--font);
  }
  *,
  *::before,
  *::after {
    box-sizing: border-box;
  }
  code {
    font: 12px var(--mono);
    overflow-wrap: anywhere;
    /* Names may hold marks that turn the direction of writing, which must end with the name. */
    unicode-bidi: isolate;
  }
  .soft {
    color: var(--soft);
  }
  .number {
    font-variant-numeric: tabular-nums;
    white-space: nowrap;
  }
  .unit {
    color: var(--soft);
    font-size: 0.86em;
    margin-left: 0.2em;
  }
  :focus-visible {
    outline: 2px solid var(--accent);
    outline-offset: 1px;
  }
`;

/** A card with a heading. */
export const card = css`
  :host {
    background: var(--card);
    border: 1px solid var(--edge);
    border-radius: var(--radius);
    padding: 14px 18px 16px;
    min-width: 0;
  }
  header {
    display: flex;
    flex-wrap: wrap;
    align-items: baseline;
    gap: 4px 10px;
    margin-bottom: 12px;
  }
  h2 {
    font-size: 14px;
    font-weight: 600;
    margin: 0;
  }
  header .soft {
    font-size: 12px;
  }
  header .controls {
    margin-left: auto;
  }
`;

export const tables = css`
  table {
    border-collapse: collapse;
    width: 100%;
  }
  th,
  td {
    padding: 5px 8px;
    text-align: left;
    border-bottom: 1px solid var(--line);
    font-weight: 400;
    vertical-align: baseline;
  }
  th:first-child,
  td:first-child {
    padding-left: 4px;
  }
  th:last-child,
  td:last-child {
    padding-right: 4px;
  }
  thead th {
    color: var(--soft);
    font-size: 12px;
    vertical-align: bottom;
  }
  td.number,
  th.number {
    text-align: right;
  }
  tbody tr:hover > * {
    background: var(--hover);
  }
  tfoot td,
  tfoot th {
    font-weight: 600;
    border-bottom: 0;
    border-top: 1px solid var(--edge);
  }
`;

/** Tables that scroll by themselves under a heading that stays. Comes after `tables`. */
export const scrolled = css`
  tbody th,
  tbody td {
    white-space: nowrap;
  }
  thead th {
    position: sticky;
    top: 0;
    z-index: 2;
    background: var(--card);
  }
`;

/** Lists of sentences below a heading within a card. */
export const lists = css`
  h3 {
    font-size: 13px;
    font-weight: 600;
    margin: 18px 0 4px;
  }
  ul {
    margin: 0;
    padding-left: 18px;
    max-width: 100ch;
  }
  li {
    margin: 3px 0;
  }
`;

/** What the colours and lines of a picture mean, below it. */
export const keys = css`
  .key {
    display: flex;
    flex-wrap: wrap;
    gap: 3px 16px;
    list-style: none;
    margin: 10px 0 0;
    padding: 0;
    color: var(--soft);
    font-size: 12px;
  }
`;

/** What hovering tells; the component says where. */
export const tooltips = css`
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
`;

/** Buttons side by side of which one is on. */
export const segments = css`
  .segments {
    display: inline-flex;
    border: 1px solid var(--edge);
    border-radius: 5px;
    overflow: hidden;
  }
  .segments button {
    appearance: none;
    border: 0;
    border-left: 1px solid var(--edge);
    background: var(--card);
    color: var(--ink);
    font: inherit;
    font-size: 12px;
    padding: 3px 10px;
    cursor: pointer;
  }
  .segments button:first-child {
    border-left: 0;
  }
  .segments button:hover {
    background: var(--hover);
  }
  .segments button[aria-pressed="true"] {
    background: var(--accent-wash);
    color: var(--accent);
    font-weight: 600;
  }
  .segments button:disabled {
    color: var(--soft);
    cursor: default;
  }
  .segments button:focus-visible {
    outline-offset: -2px;
  }
`;

/** What a person fills in or chooses from; buttons that look like what they hold, like links, and small ones. */
export const fields = css`
  input[type="search"],
  input[type="text"],
  select {
    font: inherit;
    font-size: 12px;
    color: var(--ink);
    background: var(--card);
    border: 1px solid var(--edge);
    border-radius: 5px;
    padding: 3px 8px;
    max-width: 100%;
  }
  input::placeholder {
    color: var(--soft);
    opacity: 1;
  }
  button.bare,
  button.link {
    appearance: none;
    border: 0;
    background: none;
    padding: 0;
    margin: 0;
    font: inherit;
    text-align: inherit;
    color: inherit;
    cursor: pointer;
  }
  button.link {
    color: var(--accent);
  }
  button.link:hover {
    text-decoration: underline;
  }
  .small {
    font: inherit;
    font-size: 12px;
    background: var(--card);
    border: 1px solid var(--edge);
    border-radius: 5px;
    padding: 3px 10px;
    cursor: pointer;
  }
  button.small {
    color: var(--accent);
  }
  .small:hover {
    background: var(--hover);
  }
`;
