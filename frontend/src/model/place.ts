import type { Unit } from "../format/bytes";

/**
 * What a person chose: all of the tab's state that is no answer of the server. It lives in the address, so that a link
 * leads to the same view. Every value is a text; an empty one means the default.
 *
 * A card that lets a person choose something new gets an entry here and in START, and nothing else is needed for it to
 * be kept in the address.
 */
export interface Place {
  run: string;
  /** Runs beside it, as `joined` writes them. */
  compare: string;
  /** `only` for a comparison without what is the same in all runs. */
  changed: string;
  limit: string;
  unit: Unit;
  /** Phase of the predicted curve. */
  phase: string;
  /** Id of the profile whose curve is on show. */
  profile: string;
  /** The card that was linked to, by its id in components/run-page.ts. */
  card: string;
  /** The layer that was linked to. */
  layer: string;
  /** Layers on show: part of a name, a category, a least size, see views/layer-view.ts. */
  find: string;
  category: string;
  least: string;
  sort: string;
  /** Columns of the layer table, as `joined` writes them. */
  columns: string;
  /** `list` for layers without their groups. */
  tree: string;
  unfold: string;
  folds: string;
  /** What is chosen in the what-if panel: a batch size, an optimizer, a precision, a mode and a device's name. */
  batch: string;
  optimizer: string;
  precision: string;
  mode: string;
  gpu: string;
  /** What of the predicted curve is on show, as `stretchText` writes it; likewise of the measured one. */
  step: string;
  time: string;
  /** The moment that is looked into: `p12` is event 12 of the predicted curve, `m12` of the measured one. */
  moment: string;
  /** By what its buffers are added up, one of GROUPINGS or `each`; and the group that is looked into. */
  by: string;
  group: string;
  /** Whose peaks are on show: a key of views/series.ts; and which steps. */
  series: string;
  steps: string;
}

export const START: Place = {
  run: "",
  compare: "",
  changed: "",
  limit: "",
  unit: "GiB",
  phase: "",
  profile: "",
  card: "",
  layer: "",
  find: "",
  category: "",
  least: "",
  sort: "",
  columns: "",
  tree: "",
  unfold: "",
  folds: "",
  batch: "",
  optimizer: "",
  precision: "",
  mode: "",
  gpu: "",
  step: "",
  time: "",
  moment: "",
  by: "",
  group: "",
  series: "",
  steps: "",
};

/** What is about something ends when another is chosen: a stretch of a curve with the curve. */
const ENDS: Partial<Record<keyof Place, readonly (keyof Place)[]>> = {
  run: ["step", "time", "moment", "group", "series", "steps"],
  phase: ["step", "moment", "group"],
  profile: ["time", "moment", "group"],
  moment: ["group"],
  by: ["group"],
  series: ["steps"],
};

/** The place after a change of it. */
export function changed(place: Place, change: Partial<Place>): Place {
  const ended = (Object.keys(change) as (keyof Place)[])
    .filter((key) => change[key] !== place[key])
    .flatMap((key) => ENDS[key] ?? []);
  return { ...place, ...Object.fromEntries(ended.map((key) => [key, START[key]])), ...change };
}

/** Several names as one text. */
export function joined(names: readonly string[]): string {
  return names.map((name) => encodeURIComponent(name)).join(",");
}

/** What `joined` joined. */
export function parted(text: string): string[] {
  return text
    .split(",")
    .filter(Boolean)
    .map((name) => decoded(name));
}

/** A text with its percent escapes resolved; as it is where they are broken. */
export function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
