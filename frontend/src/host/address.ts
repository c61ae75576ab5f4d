import { UNITS, type Unit } from "../format/bytes";
import { decoded, START, type Place } from "../model/place";

/**
 * The tab's place in TensorBoard's address: `#memest&p.memest.run=…&p.memest.limit=…`, an entry for each key of Place,
 * which is TensorBoard's own form for deep links into plugins.
 */
const TAB = "memest";
const PREFIX = `p.${TAB}.`;
const KEYS = Object.keys(START) as (keyof Place)[];

export function readPlace(hash: string): Place {
  const found = new Map<string, string>();
  for (const part of hash.replace(/^#/, "").split("&")) {
    const equals = part.indexOf("=");
    const key = equals < 0 ? "" : decoded(part.slice(0, equals));
    if (key.startsWith(PREFIX)) {
      found.set(key.slice(PREFIX.length), decoded(part.slice(equals + 1)));
    }
  }
  const place = { ...START };
  for (const key of KEYS) {
    const value = found.get(key);
    if (value !== undefined && (key !== "unit" || UNITS.includes(value as Unit))) {
      Object.assign(place, { [key]: value });
    }
  }
  return place;
}

/** `hash` with the place in it; everything that is not the tab's own stays as it was. */
export function writePlace(hash: string, place: Place): string {
  const others = hash
    .replace(/^#/, "")
    .split("&")
    .filter((part) => part && !decoded(part).startsWith(PREFIX));
  const own = KEYS.filter((key) => place[key] !== START[key]).map(
    (key) => `${PREFIX}${key}=${encodeURIComponent(place[key])}`,
  );
  return `#${[...(others.length ? others : [TAB]), ...own].join("&")}`;
}

/** Whether the address points to this tab: the others stay alive behind it and own the address while they are on show. */
export function isOnTab(hash: string): boolean {
  const tab = hash.replace(/^#/, "").split("&")[0];
  return !tab || tab === TAB;
}

/** The address of `host`, as far as the tab is concerned. */
export class Address {
  constructor(private readonly host: Window) {}

  read(): Place {
    return readPlace(this.host.location.hash);
  }

  /** Keeps the place in the address without a new entry in the browser's history. */
  write(place: Place): void {
    const { hash } = this.host.location;
    if (isOnTab(hash)) {
      this.host.history.replaceState(this.host.history.state, "", writePlace(hash, place));
    }
  }

  /** Calls `follow` when someone else changes the address to another place in this tab. */
  watch(follow: (place: Place) => void): void {
    this.host.addEventListener("hashchange", () => {
      if (isOnTab(this.host.location.hash)) {
        follow(this.read());
      }
    });
  }
}
