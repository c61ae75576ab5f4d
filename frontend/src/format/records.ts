/** A record of an export; every record has the same fields. */
export type Fields = Record<string, unknown>;

/** Records as a table for spreadsheets, after RFC 4180: a line of names, then one of values for each. */
export function csv(records: readonly Fields[]): string {
  const names = Object.keys(records[0] ?? {});
  const lines = [names, ...records.map((record) => names.map((name) => record[name]))];
  return lines.map((line) => line.map(cell).join(",") + "\r\n").join("");
}

/** Records as JSON, one a line. */
export function json(records: readonly Fields[]): string {
  return `[\n${records.map((record) => JSON.stringify(record)).join(",\n")}\n]\n`;
}

function cell(value: unknown): string {
  const text = typeof value === "string" ? value : value === null || value === undefined ? "" : JSON.stringify(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
