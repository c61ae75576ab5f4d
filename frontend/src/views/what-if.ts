import type { Fields } from "../format/records";
import { CATEGORIES, type Bytes, type ChoiceOutcome, type Choices, type Outcome, type WhatIf } from "../model/types";

/** Whether something fits into a limit, as Python's `judge` has it: tests/vectors/verdicts.json holds both to it. */
export interface Judgement {
  outcome: Outcome;
  /** Limit minus the highest peak of any phase; negative when short. */
  margin: Bytes;
  /** The phase that needs most. */
  phase: string;
}

/** What a person chose, as texts; empty or unknown ones mean the training as it is. */
export interface Chosen {
  batch: string;
  optimizer: string;
  precision: string;
  mode: string;
}

/** The choices that are meant, each one of those there are. */
export function choicesOf(whatIf: WhatIf, chosen: Chosen): Choices {
  const { base, batch_sizes, optimizers, precisions, modes } = whatIf;
  const among = <T>(there: readonly T[], wanted: T, otherwise: T): T => (there.includes(wanted) ? wanted : otherwise);
  return {
    batch_size: among(batch_sizes, Number(chosen.batch), base.batch_size),
    optimizer: among(optimizers, chosen.optimizer, base.optimizer),
    precision: among(precisions, chosen.precision, base.precision),
    mode: among(modes, chosen.mode, base.mode),
  };
}

/** What was estimated for these choices; undefined where that combination was left out. */
export function outcomeOf(whatIf: WhatIf, choices: Choices): ChoiceOutcome | undefined {
  return whatIf.outcomes.find(
    (outcome) =>
      outcome.batch_size === choices.batch_size &&
      outcome.optimizer === choices.optimizer &&
      outcome.precision === choices.precision &&
      outcome.mode === choices.mode,
  );
}

/** A combination for other programs, every number exact. */
export function outcomeRecord({ phases, categories, ...outcome }: ChoiceOutcome): Fields {
  return {
    batch_size: outcome.batch_size,
    optimizer: outcome.optimizer,
    precision: outcome.precision,
    mode: outcome.mode,
    peak_bytes: outcome.peak_bytes,
    saving_bytes: outcome.saving_bytes,
    highest_bytes: Math.max(...Object.values(phases).map(([, , high]) => high)),
    ...Object.fromEntries(CATEGORIES.map((category) => [category, categories[category] ?? 0])),
  };
}

/** The worst of all phases against a limit. */
export function judge(phases: ChoiceOutcome["phases"], limit: Bytes): Judgement {
  const entries = Object.entries(phases);
  const [phase, [peak]] = entries.reduce((most, entry) => (entry[1][0] > most[1][0] ? entry : most));
  const peaks = entries.map(([, [predicted]]) => predicted);
  const highest = entries.map(([, [, , high]]) => high);
  const outcome = peaks.some((one) => one > limit)
    ? "does not fit"
    : highest.some((one) => one > limit)
      ? "may not fit"
      : "fits";
  return { outcome, margin: limit - peak, phase };
}
