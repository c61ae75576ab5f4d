/** The answers of the HTTP API as docs/http_api.md describes them. All numbers of memory are bytes, exact integers. */

export const CATEGORIES = [
  "weights",
  "gradients",
  "optimizer_slots",
  "activations",
  "inputs",
  "temporaries",
  "workspace",
  "constants",
  "unattributed",
] as const;

export type Category = (typeof CATEGORIES)[number];
export type Bytes = number;
export type BytesPerCategory = Partial<Record<Category, Bytes>>;
export type Outcome = "fits" | "may not fit" | "does not fit";
export type Shape = readonly (number | null)[];

/** One change to the training, and what the changed one was estimated to need; `reason` is why it does not help. */
export interface Lever {
  name: string;
  title: string;
  peak_bytes: Bytes;
  needs_bytes: Bytes;
  saving_bytes: Bytes;
  saving_by_category: Record<string, Bytes>;
  fits: boolean;
  cost: string;
  code: string;
  reason: string | null;
  /** How much less of the host's memory it takes, where the change is about that; left out in old records. */
  host_saving_bytes?: Bytes;
}

export interface Advice {
  limit_bytes: Bytes;
  peak_bytes: Bytes;
  needs_bytes: Bytes;
  fits: boolean;
  levers: Lever[];
  useless: Lever[];
  combination: { names: string[]; peak_bytes: Bytes; needs_bytes: Bytes } | null;
  batch_curve: [number, Bytes][];
  max_batch_size: number | null;
  notes: string[];
}

/** One choice of each kind. */
export interface Choices {
  batch_size: number;
  optimizer: string;
  precision: string;
  mode: string;
}

/** What the training was estimated to need with some choices; phases have peak, lowest and highest peak. */
export interface ChoiceOutcome extends Choices {
  peak_bytes: Bytes;
  /** How much lower that is than as it is; negative if it is higher. */
  saving_bytes: Bytes;
  phases: Record<string, [Bytes, Bytes, Bytes]>;
  categories: BytesPerCategory;
}

export interface WhatIf {
  base: Choices;
  batch_sizes: number[];
  optimizers: string[];
  precisions: string[];
  modes: string[];
  /** Not every combination need be there. */
  outcomes: ChoiceOutcome[];
  notes: string[];
}

/** `what_if`: null for a run that was not estimated under other choices. */
export interface WhatIfAnswer {
  what_if: WhatIf | null;
}

/** One stage of a data pipeline. */
export interface HostStage {
  name: string;
  bytes: Bytes;
  elements: number | null;
  element_bytes: Bytes;
  reason: string;
}

/** A change of a data pipeline, and what the changed one was estimated to need. */
export interface HostLever {
  name: string;
  peak_bytes: Bytes;
  saving_bytes: Bytes;
  cost: string;
  code: string;
  /** Why it does not help; null where it does. */
  reason: string | null;
}

export interface HostEstimate {
  peak_bytes: Bytes;
  startup_bytes: Bytes;
  slack_bytes: Bytes;
  stages: HostStage[];
  levers: HostLever[];
  assumptions: string[];
}

/** `host`: null for a run whose data pipeline was not estimated. */
export interface HostAnswer {
  host: HostEstimate | null;
}

/** A device of the catalogue, or an instance type with each of its devices. */
export interface Gpu {
  name: string;
  vendor: string;
  memory_bytes: Bytes;
  /** What TensorFlow's allocator gets of an idle one. */
  usable_bytes: Bytes;
  /** For an instance type, the name of its device. */
  carries: string | null;
}

/** One run in the picker. */
export interface Headline {
  name: string;
  /** When it began, in seconds since 1970; null where nothing tells. */
  began: number | null;
  model: string | null;
  optimizer: string | null;
  batch_size: number | null;
  mode: string | null;
  device: string | null;
  peak_bytes: Bytes | null;
  measured_peak_bytes: Bytes | null;
  limit_bytes: Bytes | null;
  /** Whether it ran out of memory, and did not go on afterwards. */
  crashed: boolean;
  problems: string[];
}

export interface Subject {
  model_name: string;
  model_class: string;
  parameters: number;
  trainable_parameters: number;
  optimizer: string | null;
  batch_size: number;
  mode: string;
  device: string;
  pool: string;
  versions: Record<string, string>;
}

export interface Phase {
  name: string;
  peak_bytes: Bytes;
  requested_peak_bytes: Bytes;
  peak_without_scratch_bytes: Bytes;
  /** Lowest and highest peak over the orders of execution that can happen. */
  peak_range: [Bytes, Bytes];
  peak_op: string;
  /** What that op allocates, in words; null where that is not known. */
  peak_of: string | null;
  /** What the phase takes of the host's memory besides, such as saving; 0 where that is nothing or not known. */
  host_peak_bytes: Bytes;
  categories: BytesPerCategory;
}

export interface LayerRow {
  path: string;
  /** Empty for a part of the step that is no layer, such as `(optimizer)`. */
  class_name: string;
  output_shape: Shape | null;
  parameters: number;
  bytes_per_category: BytesPerCategory;
  bytes_at_peak: Bytes;
  /** Alive at the peak of a profile; null without one. */
  measured_bytes: Bytes | null;
  /** Measured less predicted. */
  difference_bytes: Bytes | null;
}

/** All layers below a path together, such as those of a nested model. */
export interface LayerGroup {
  path: string;
  layers: number;
  parameters: number;
  bytes_per_category: BytesPerCategory;
  bytes_at_peak: Bytes;
  measured_bytes: Bytes | null;
  difference_bytes: Bytes | null;
}

export interface Total {
  parameters: number;
  bytes_per_category: BytesPerCategory;
  bytes_at_peak: Bytes;
  measured_bytes: Bytes | null;
  difference_bytes: Bytes | null;
}

export interface DominantPart {
  role: string;
  category: Category;
  count: number;
  bytes: Bytes;
  /** Without what the allocator rounds up and does not split off. */
  requested_bytes: Bytes;
  share: number;
}

export interface Dominant {
  name: string;
  layer: string;
  shape: Shape | null;
  bytes: Bytes;
  share: number;
  sentence: string;
  parts: DominantPart[];
}

export interface Estimate {
  subject: Subject;
  peak_bytes: Bytes;
  peak_phase: string;
  resident_bytes: Bytes;
  phases: Phase[];
  layers: LayerRow[];
  groups: LayerGroup[];
  total: Total;
  dominant: Dominant[];
  assumptions: string[];
}

export interface PhaseMargin {
  peak_bytes: Bytes;
  margin_bytes: Bytes;
  outcome: Outcome;
}

export interface Verdict {
  limit_bytes: Bytes;
  /** The device that was named. */
  limit_name: string | null;
  /** What may fail although the peaks fit. */
  risks: string[];
  outcome: Outcome;
  /** Limit minus the highest peak of any phase; negative when short. */
  margin_bytes: Bytes;
  sentence: string;
  phases: Record<string, PhaseMargin>;
}

export interface Item {
  layer: string;
  name: string;
  category: Category;
  role: string;
  variable: string | null;
  shape: Shape | null;
  dtype: string | null;
  requested_bytes: Bytes;
  bytes: Bytes;
}

export interface MeasuredDevice {
  device: string;
  source: string;
  /** Peak before the first step, building included. */
  before_bytes: Bytes | null;
  limit_bytes: Bytes | null;
  peak_bytes: Bytes | null;
  steps: number;
}

export interface ProfileHeadline {
  id: string;
  allocator: string;
  host: string;
  started_at: string;
  /** Bytes in use when the profile started. */
  before_bytes: Bytes;
  peak_bytes: Bytes;
  before: Item[];
}

export interface Measured {
  /** The highest peak of any step itself; without an estimate the data pipeline is in it. */
  peak_bytes: Bytes | null;
  /** The highest peak of any step as the allocator counted it. */
  total_peak_bytes: Bytes | null;
  /** How much of that was the data pipeline's; null without an estimate. */
  pipeline_bytes: Bytes | null;
  /** (predicted - measured) / measured, a fraction. */
  difference: number | null;
  /** `peak_bytes` of the first step and of the later ones. */
  phases: { first_step?: Bytes; step?: Bytes; evaluate?: Bytes; predict?: Bytes };
  /** What the process held of the host's memory: the most that was read, before the first step, after the last. */
  host: { source: string; peak_bytes: Bytes; first_bytes: Bytes; last_bytes: Bytes } | null;
  /** What the driver has seen in use on each GPU, the most of any sample. */
  totals: { device: string; model: string; total_bytes: Bytes; used_bytes: Bytes; process_bytes: Bytes | null }[];
  devices: MeasuredDevice[];
  profiles: ProfileHeadline[];
  notes: string[];
}

/** Why a run ran out of memory; what is not known is null. */
export interface Crash {
  sentence: string;
  headline: string;
  source: string;
  message: string;
  op: string | null;
  shape: Shape | null;
  dtype: string | null;
  bytes: Bytes | null;
  device: string | null;
  allocator: string | null;
  layer: string | null;
  category: Category | null;
  role: string | null;
  variable: string | null;
  phase: string | null;
  step: number | null;
  /** The most that was in use in the step until it failed. */
  in_use_bytes: Bytes | null;
  limit_bytes: Bytes | null;
  /** What the limit leaves beside that, and by how much what was asked for exceeds it. */
  free_bytes: Bytes | null;
  short_bytes: Bytes | null;
  /** The largest of what was alive; `live_count`, `live_bytes` and `live_categories` are of all. */
  live: Item[];
  live_count: number;
  live_bytes: Bytes;
  live_categories: BytesPerCategory;
  /** Whether it is what the estimate says, and not what was seen. */
  live_is_predicted: boolean;
  predicted_peak_bytes: Bytes | null;
  expectation: string | null;
  advice: string[];
}

export interface Overview {
  name: string;
  estimate: Estimate | null;
  verdict: Verdict | null;
  measured: Measured;
  crash: Crash | null;
  advice: Advice | null;
  problems: string[];
}

export interface Span {
  name: string;
  start: number;
  end: number;
}

export interface Timeline {
  /** What a tick is: `op`, a position in the predicted order, or `ns`, nanoseconds since the start of the profile. */
  unit: "op" | "ns";
  ticks: number[];
  live_bytes: Bytes[];
  op_index: number[];
  ops: string[];
  /** For each of `ops` the layer whose tensor it makes; null where that is not known. */
  layers: (string | null)[];
  /** Which events of the whole timeline these are. */
  positions: number[];
  spans: Span[];
}

/** A curve, or the stretch of it that was asked for; all but `timeline` is of the whole. */
export interface Curve {
  peak_bytes: Bytes;
  /** How many events there were before thinning. */
  events: number;
  /** First and last tick; null without events. */
  extent: [number, number] | null;
  peak: { position: number; tick: number; live_bytes: Bytes; op: string } | null;
  timeline: Timeline;
}

/** An op of which prediction and measurement do not say the same; null on a side that does not know it. */
export interface OpDifference {
  op: string;
  /** Where it is on the predicted axis. */
  tick: number | null;
  predicted_bytes: Bytes | null;
  measured_bytes: Bytes | null;
  predicted_live_bytes: Bytes | null;
  measured_live_bytes: Bytes | null;
}

/** The highest step of a profile on the axis of the predicted curve of `phase`. */
export interface Aligned {
  id: string;
  phase: string;
  step: Span;
  /** How much more was in use when the step began than is predicted. */
  beside_bytes: Bytes;
  timeline: Omit<Timeline, "layers">;
  ops: { predicted: number; measured: number; matched: number; in_order: number };
  differences: OpDifference[];
}

/** Buffers that are alike in everything: `count` of them, `bytes` each and `all_bytes` together. */
export type AliveItem = Item & { count: number; all_bytes: Bytes };

export interface MomentGroup {
  key: string;
  bytes: Bytes;
  count: number;
  categories: BytesPerCategory;
  items: AliveItem[];
}

export const GROUPINGS = ["layer", "op", "category", "shape"] as const;
export type Grouping = (typeof GROUPINGS)[number];

/** Everything alive just after one event of a timeline. */
export interface Moment {
  position: number;
  tick: number;
  unit: "op" | "ns";
  op: string;
  live_bytes: Bytes;
  by: Grouping;
  bytes: Bytes;
  count: number;
  groups: MomentGroup[];
}

/** First step, last step, highest peak, most in use just after, least in use just before, highest rise. */
export type Window = [firstStep: number, lastStep: number, peak: Bytes, current: Bytes, start: Bytes, rise: Bytes];

export interface DevicePeaks {
  device: string;
  source: string;
  before_bytes: Bytes | null;
  limit_bytes: Bytes | null;
  windows: Window[];
  /** Number, from 0, and first step of epochs; of many only some, and none where there are none. */
  epochs?: [number: number, firstStep: number][];
}

/** What was measured beside the training steps; for the host, its memory in them. */
export type BesidePeaks = DevicePeaks & { what: "evaluate" | "predict" | "host" };

/** What stays in use after a step, and grows until the last; of `calls` what is in use when one begins. */
export interface Leak {
  what: "train" | BesidePeaks["what"] | "calls";
  device: string;
  since_step: number;
  until_step: number;
  since_bytes: Bytes;
  until_bytes: Bytes;
  grown_bytes: Bytes;
  bytes_per_step: number;
  sentence: string;
}

export interface PeaksAnswer {
  devices: DevicePeaks[];
  beside: BesidePeaks[];
  leaks: Leak[];
}

/** One figure of several runs; `differences` are from the first. What a run does not have is null. */
export interface ComparedRow {
  name: string;
  values: (Bytes | null)[];
  differences: (Bytes | null)[];
}

/** Several runs side by side. */
export interface Compared {
  runs: {
    name: string;
    peak_bytes: Bytes | null;
    bytes_per_category: BytesPerCategory | null;
    measured_peak_bytes: Bytes | null;
    verdict: Verdict | null;
    /** That it ran out of memory, in a sentence. */
    crash: string | null;
  }[];
  facts: { name: string; values: (string | number | null)[]; differs: boolean }[];
  peaks: ComparedRow[];
  phases: ComparedRow[];
  categories: ComparedRow[];
  layers: ComparedRow[];
}
