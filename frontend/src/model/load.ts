/** Something that is asked for: what is known of it now. */
export type Load<T> =
  | { state: "idle" }
  | { state: "loading"; value?: T }
  | { state: "ready"; value: T }
  | { state: "failed"; message: string; status: number };

export const IDLE: { state: "idle" } = { state: "idle" };

/** What can be shown: an answer, also while a newer one is on its way. */
export function valueOf<T>(load: Load<T>): T | undefined {
  return load.state === "ready" || load.state === "loading" ? load.value : undefined;
}
