import type { Unit } from "../format/bytes";

/** Where a person is in the tab; the part of the state that lives in the address. Empty texts mean the default. */
export interface Place {
  run: string;
  limit: string;
  unit: Unit;
}

export const START: Place = { run: "", limit: "", unit: "GiB" };
