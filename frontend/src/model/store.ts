import { ApiError, type Api } from "./api";
import { IDLE, valueOf, type Load } from "./load";
import { START, type Place } from "./place";
import type { Curve, Headline, HostAnswer, ItemsAnswer, Overview, PeaksAnswer } from "./types";

/** Everything the tab shows. Replaced as a whole on every change, never changed in place. */
export interface State {
  place: Place;
  runs: Load<Headline[]>;
  /** The run on show: the one in the address, or the first. Null before there is one. */
  run: string | null;
  overview: Load<Overview>;
  /** Why the server did not take the limit that was typed. */
  limitError: string | null;
  peaks: Load<PeaksAnswer>;
  /** Phase of the predicted curve. */
  curvePhase: string;
  curve: Load<Curve>;
  /** Id of the profile on show; null where the run has none. */
  profileId: string | null;
  profile: Load<Curve>;
  /** Phase whose items are listed; null while the list is closed. */
  itemsPhase: string | null;
  items: Load<ItemsAnswer>;
  /** The data pipeline on the host. */
  host: Load<HostAnswer>;
}

/** What each slot of the state is filled with. */
interface Answers {
  runs: Headline[];
  overview: Overview;
  peaks: PeaksAnswer;
  curve: Curve;
  profile: Curve;
  items: ItemsAnswer;
  host: HostAnswer;
}

type Slot = keyof Answers;

/**
 * The state of the tab in one place, and all that can change it.
 *
 * Every answer is checked before it is taken: each slot counts what was asked of it, and an answer to anything but the
 * last question is dropped, so a slow answer never overwrites a newer one.
 */
export class Store {
  #state: State = {
    place: START,
    runs: IDLE,
    run: null,
    overview: IDLE,
    limitError: null,
    peaks: IDLE,
    curvePhase: "step",
    curve: IDLE,
    profileId: null,
    profile: IDLE,
    itemsPhase: null,
    items: IDLE,
    host: IDLE,
  };
  readonly #asked: Record<Slot, number> = { runs: 0, overview: 0, peaks: 0, curve: 0, profile: 0, items: 0, host: 0 };
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

  async start(place: Place): Promise<void> {
    this.#set({ place });
    await this.reload();
  }

  /** Asks for everything on show again and keeps the place; what is known stays in view until the answer is there. */
  async reload(): Promise<void> {
    if (await this.#ask("runs", () => this.api.runs())) {
      await this.#showRun(this.#chosenRun());
    }
  }

  async selectRun(run: string): Promise<void> {
    this.#move({ run });
    await this.#showRun(run);
  }

  /** Takes the limit as it was typed; the server decides whether it is one. */
  async setLimit(limit: string): Promise<void> {
    const wanted = limit.trim();
    if (wanted === this.#state.place.limit) {
      return;
    }
    this.#move({ limit: wanted });
    await this.#askOverview();
  }

  setUnit(unit: Place["unit"]): void {
    this.#move({ unit });
  }

  /** Follows an address that changed under the tab: a deep link, or the browser's back button. */
  async goTo(place: Place): Promise<void> {
    const before = this.#state.place;
    this.#set({ place });
    if (place.run !== before.run) {
      await this.#showRun(this.#chosenRun());
    } else if (place.limit !== before.limit) {
      await this.#askOverview();
    }
  }

  async selectCurvePhase(phase: string): Promise<void> {
    this.#set({ curvePhase: phase, curve: IDLE });
    await this.#askCurve();
  }

  async selectProfile(id: string): Promise<void> {
    this.#set({ profileId: id, profile: IDLE });
    await this.#askProfile();
  }

  /** Opens the list of what is alive at the peak of `phase`; null closes it. */
  async showItems(phase: string | null): Promise<void> {
    if (phase === this.#state.itemsPhase) {
      return;
    }
    this.#set({ itemsPhase: phase, items: IDLE });
    await this.#askItems();
  }

  #chosenRun(): string | null {
    return this.#state.place.run || valueOf(this.#state.runs)?.[0]?.name || null;
  }

  async #showRun(run: string | null): Promise<void> {
    if (run !== this.#state.run) {
      this.#asked.peaks++;
      this.#asked.curve++;
      this.#asked.profile++;
      this.#asked.items++;
      this.#asked.host++;
      this.#set({
        run,
        overview: IDLE,
        limitError: null,
        peaks: IDLE,
        curve: IDLE,
        profileId: null,
        profile: IDLE,
        items: IDLE,
        host: IDLE,
      });
    }
    const known = valueOf(this.#state.runs);
    if (run === null || !known?.some((headline) => headline.name === run)) {
      this.#asked.overview++;
      this.#set({ overview: IDLE });
      return;
    }
    if (await this.#askOverview()) {
      await Promise.all([this.#askCurve(), this.#askProfile(), this.#askPeaks(), this.#askItems(), this.#askHost()]);
    }
  }

  /** Returns whether the answer was still wanted. A limit the server refuses is reported, and the run shown without. */
  async #askOverview(): Promise<boolean> {
    const { run, place } = this.#state;
    if (run === null) {
      return false;
    }
    let limitError: string | null = null;
    const taken = await this.#ask("overview", async () => {
      try {
        return await this.api.overview(run, place.limit);
      } catch (error) {
        if (!(error instanceof ApiError) || error.status !== 400 || !place.limit) {
          throw error;
        }
        limitError = error.message;
        return await this.api.overview(run, "");
      }
    });
    if (!taken) {
      return false;
    }
    const overview = valueOf(this.#state.overview);
    const phases = overview?.estimate?.phases.map((phase) => phase.name) ?? [];
    const profiles = overview?.measured.profiles.map((profile) => profile.id) ?? [];
    const { curvePhase, profileId } = this.#state;
    this.#set({
      limitError,
      curvePhase: phases.includes(curvePhase) ? curvePhase : (phases.at(-1) ?? "step"),
      profileId: profileId !== null && profiles.includes(profileId) ? profileId : (profiles.at(-1) ?? null),
    });
    return overview !== undefined;
  }

  async #askCurve(): Promise<void> {
    const { run, curvePhase } = this.#state;
    if (run !== null && valueOf(this.#state.overview)?.estimate) {
      await this.#ask("curve", () => this.api.timeline(run, curvePhase));
    }
  }

  async #askProfile(): Promise<void> {
    const { run, profileId } = this.#state;
    if (run !== null && profileId !== null) {
      await this.#ask("profile", () => this.api.profile(run, profileId));
    }
  }

  async #askPeaks(): Promise<void> {
    const { run } = this.#state;
    if (run !== null && valueOf(this.#state.overview)?.measured.devices.length) {
      await this.#ask("peaks", () => this.api.peaks(run));
    }
  }

  async #askItems(): Promise<void> {
    const { run, itemsPhase } = this.#state;
    if (run !== null && itemsPhase !== null) {
      await this.#ask("items", () => this.api.items(run, itemsPhase));
    }
  }

  async #askHost(): Promise<void> {
    const { run } = this.#state;
    if (run !== null) {
      await this.#ask("host", () => this.api.host(run));
    }
  }

  /** Fills a slot with an answer or the reason why there is none. Returns false when the answer came too late. */
  async #ask<S extends Slot>(slot: S, question: () => Promise<Answers[S]>): Promise<boolean> {
    const ticket = ++this.#asked[slot];
    const known = valueOf(this.#state[slot] as Load<unknown>);
    this.#set({ [slot]: known === undefined ? { state: "loading" } : { state: "loading", value: known } });
    let next: Load<unknown>;
    try {
      next = { state: "ready", value: await question() };
    } catch (error) {
      const status = error instanceof ApiError ? error.status : 0;
      next = { state: "failed", message: error instanceof Error ? error.message : String(error), status };
    }
    if (ticket !== this.#asked[slot]) {
      return false;
    }
    this.#set({ [slot]: next });
    return true;
  }

  #move(change: Partial<Place>): void {
    this.#set({ place: { ...this.#state.place, ...change } });
    this.remember(this.#state.place);
  }

  #set(change: Partial<State>): void {
    this.#state = { ...this.#state, ...change };
    for (const listener of this.#listeners) {
      listener(this.#state);
    }
  }
}
