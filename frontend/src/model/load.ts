/** Something that is asked for: what is known of it now. */
export type Load<T> =
  | { state: "idle" }
  | { state: "loading"; value?: T }
  | { state: "ready"; value: T }
  /** With the last answer to the same question, where there was one. */
  | { state: "failed"; message: string; status: number; value?: T };

export const IDLE: { state: "idle" } = { state: "idle" };

/** What can be shown: an answer, also while a newer one is on its way or could not be had. */
export function valueOf<T>(load: Load<T>): T | undefined {
  return load.state === "idle" ? undefined : load.value;
}
