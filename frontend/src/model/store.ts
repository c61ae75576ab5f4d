import { ApiError, type Api } from "./api";
import { IDLE, valueOf, type Load } from "./load";
import { changed, START, type Place } from "./place";
import { QUESTIONS, runOf, SLOTS, type Slot, type State, type Wanted } from "./questions";

/** What was asked last for a slot. */
interface Asked {
  about: string;
  by: string;
}

/**
 * The state of the tab in one place, and the only two ways to change it: a person chooses something, or asks for
 * everything anew. What has to be asked of the server follows from that, see questions.ts.
 *
 * Every answer is checked before it is taken: an answer to anything but the last question of its slot is dropped, so a
 * slow answer never overwrites a newer one.
 */
export class Store {
  #state: State = { place: START, ...(Object.fromEntries(SLOTS.map((slot) => [slot, IDLE])) as Omit<State, "place">) };
  /** By slot; the object stands for the question, so that a later one is told from it. */
  readonly #asked = new Map<Slot, Asked>();
  readonly #listeners = new Set<(state: State) => void>();

  /**
   * @param api - where answers come from.
   * @param remember - told of every place a person chose, to keep it in the address.
   */
  constructor(
    private readonly api: Api,
    private readonly remember: (place: Place) => void = () => undefined,
  ) {}

  get state(): State {
    return this.#state;
  }

  /** Calls `listener` after every change. Returns a function that ends that. */
  subscribe(listener: (state: State) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Takes what a person chose, keeps it in the address and asks for what it needs. Resolves when all of that is there. */
  async choose(change: Partial<Place>): Promise<void> {
    const keys = Object.keys(change) as (keyof Place)[];
    if (keys.every((key) => change[key] === this.#state.place[key])) {
      return;
    }
    const place = changed(this.#state.place, change);
    this.#set({ place });
    this.remember(place);
    await this.#settle();
  }

  /** Follows an address that is there at the start or changed under the tab: a deep link, or the browser's back button. */
  async goTo(place: Place): Promise<void> {
    this.#set({ place });
    await this.#settle();
  }

  /** Asks for everything on show again and keeps the place; what is known stays in view until the answer is there. */
  async reload(): Promise<void> {
    for (const [slot, { about }] of this.#asked) {
      this.#asked.set(slot, { about, by: STALE });
    }
    await this.#settle();
  }

  /** Asks for everything that is wanted and was not asked for yet. */
  async #settle(): Promise<void> {
    // A run that began meanwhile is not shown in place of the one that somebody looks at.
    const run = runOf(this.#state);
    if (run !== null && run !== this.#state.place.run) {
      this.#set({ place: { ...this.#state.place, run } });
    }
    const answers: Promise<void>[] = [];
    for (const slot of SLOTS) {
      const wanted: Wanted<unknown> | null = QUESTIONS[slot](this.#state);
      if (wanted) {
        const [about, by] = [JSON.stringify(wanted.about), JSON.stringify(wanted.by ?? [])];
        const last = this.#asked.get(slot);
        if (last?.about !== about || last.by !== by) {
          answers.push(this.#ask(slot, wanted, { about, by }));
        }
      } else if (this.#asked.delete(slot)) {
        this.#set({ [slot]: IDLE });
      }
    }
    await Promise.all(answers);
  }

  /** Fills a slot with an answer or the reason why there is none, and asks for what follows from it. */
  async #ask(slot: Slot, wanted: Wanted<unknown>, asked: Asked): Promise<void> {
    const known = asked.about === this.#asked.get(slot)?.about ? valueOf<unknown>(this.#state[slot]) : undefined;
    this.#asked.set(slot, asked);
    this.#set({ [slot]: known === undefined ? { state: "loading" } : { state: "loading", value: known } });
    let next: Load<unknown>;
    try {
      next = { state: "ready", value: await wanted.ask(this.api) };
    } catch (error) {
      const status = error instanceof ApiError ? error.status : 0;
      const message = error instanceof Error ? error.message : String(error);
      next = { state: "failed", message, status, ...(known === undefined ? {} : { value: known }) };
    }
    if (this.#asked.get(slot) === asked) {
      this.#set({ [slot]: next });
      await this.#settle();
    }
  }

  #set(change: Partial<State>): void {
    this.#state = { ...this.#state, ...change };
    for (const listener of this.#listeners) {
      listener(this.#state);
    }
  }
}

/** No question depends on this text, so what was asked with it is asked again. */
const STALE = "stale";
