import type { Api } from "../model/api";
import type {
  Advice,
  Aligned,
  AliveItem,
  Compared,
  ComparedRow,
  ChoiceOutcome,
  Crash,
  Curve,
  DevicePeaks,
  Estimate,
  Headline,
  HostEstimate,
  LayerRow,
  Leak,
  Lever,
  Measured,
  Moment,
  Overview,
  Timeline,
  WhatIf,
} from "../model/types";

/** Small answers for tests: what a test is not about has these values. */

export function headline(name: string, change: Partial<Headline> = {}): Headline {
  return {
    name,
    began: null,
    model: "sequential",
    optimizer: "Adam",
    batch_size: 1,
    mode: "graph",
    device: "CPU",
    peak_bytes: 3000,
    measured_peak_bytes: null,
    limit_bytes: null,
    crashed: false,
    problems: [],
    ...change,
  };
}

export function layer(path: string, weights: number, activations: number, change: Partial<LayerRow> = {}): LayerRow {
  return {
    path,
    class_name: "Dense",
    output_shape: [1, 8],
    parameters: weights / 4,
    bytes_per_category: { ...(weights ? { weights } : {}), ...(activations ? { activations } : {}) },
    bytes_at_peak: weights + activations,
    measured_bytes: null,
    difference_bytes: null,
    ...change,
  };
}

export function estimate(change: Partial<Estimate> = {}): Estimate {
  const phase = {
    requested_peak_bytes: 0,
    peak_without_scratch_bytes: 0,
    host_peak_bytes: 0,
    peak_op: "adam/Mul_1",
    peak_of: null,
  };
  const layers = [layer("net/a", 400, 100), layer("net/b", 0, 900), layer("net/c", 1600, 0)];
  const categories = { activations: 1000, weights: 2000 };
  return {
    subject: {
      model_name: "net",
      model_class: "Sequential",
      parameters: 500,
      trainable_parameters: 500,
      optimizer: "Adam",
      batch_size: 1,
      mode: "graph",
      device: "CPU",
      pool: "growth",
      versions: { memest: "0.1.0" },
    },
    peak_bytes: 3000,
    peak_phase: "step",
    resident_bytes: 2000,
    phases: [
      { ...phase, name: "build", peak_bytes: 2500, peak_range: [2500, 2500], categories: { weights: 2500 } },
      { ...phase, name: "step", peak_bytes: 3000, peak_range: [2900, 3600], categories },
    ],
    layers,
    groups: [],
    total: {
      parameters: 500,
      bytes_per_category: categories,
      bytes_at_peak: 3000,
      measured_bytes: null,
      difference_bytes: null,
    },
    dominant: [],
    assumptions: [],
    ...change,
  };
}

export function overview(name: string, change: Partial<Overview> = {}): Overview {
  return {
    name,
    estimate: estimate(),
    verdict: null,
    measured: measured(),
    crash: null,
    advice: null,
    problems: [],
    ...change,
  };
}

/** A third step that had no room for an update temporary of `net/a`. */
export function crash(change: Partial<Crash> = {}): Crash {
  return {
    sentence: "The run ran out of memory in step 2.",
    headline: "TensorFlow's allocator ran out in step 2 when asked for 400 B.",
    source: "TensorFlow's allocator",
    message: "OOM when allocating tensor with shape[100]",
    op: "adam/Mul_7",
    shape: [10, 10],
    dtype: "float32",
    bytes: 400,
    device: "GPU:0",
    allocator: "GPU_0_bfc",
    layer: "net/a",
    category: "temporaries",
    role: "update temporary",
    variable: "net/a/kernel",
    phase: "step",
    step: 2,
    in_use_bytes: 2900,
    limit_bytes: 3000,
    live: [
      {
        layer: "net/a",
        name: "net/a/kernel",
        category: "weights",
        role: "weight",
        variable: "net/a/kernel",
        shape: [10, 10],
        dtype: "float32",
        requested_bytes: 400,
        bytes: 512,
      },
    ],
    live_count: 3,
    live_bytes: 2900,
    live_categories: { weights: 400, activations: 2500 },
    free_bytes: 100,
    short_bytes: 300,
    live_is_predicted: true,
    predicted_peak_bytes: 3000,
    expectation: "The estimate had said 2.9 KiB for a step.",
    advice: ["Make net/a/kernel smaller.", "A smaller batch_size."],
    ...change,
  };
}

export function measured(change: Partial<Measured> = {}): Measured {
  return {
    peak_bytes: null,
    total_peak_bytes: null,
    pipeline_bytes: null,
    difference: null,
    phases: {},
    host: null,
    totals: [],
    devices: [],
    profiles: [],
    notes: [],
    ...change,
  };
}

/** Ten steps on the device of `peaks`, of which 50 bytes were the data pipeline's. */
export function measuredSteps(change: Partial<Measured> = {}): Measured {
  const { device, source, before_bytes, limit_bytes } = peaks();
  return measured({
    peak_bytes: 3050,
    total_peak_bytes: 3100,
    pipeline_bytes: 50,
    difference: -50 / 3050,
    phases: { first_step: 3050, step: 3000 },
    devices: [{ device, source, before_bytes, limit_bytes, peak_bytes: 3100, steps: 10 }],
    ...change,
  });
}

export function peaks(change: Partial<DevicePeaks> = {}): DevicePeaks {
  return {
    device: "CPU:0",
    source: "TensorFlow's BFC allocator",
    before_bytes: 2600,
    limit_bytes: null,
    windows: [
      [0, 0, 3100, 2000, 700, 1100],
      [1, 4, 2950, 2010, 1980, 960],
      [5, 9, 3050, 1990, 1970, 1050],
    ],
    ...change,
  };
}

/** What stays in use after a step of `peaks` grows by 100 bytes from step 2 to step 9. */
export function leak(change: Partial<Leak> = {}): Leak {
  return {
    what: "train",
    device: "CPU:0",
    since_step: 2,
    until_step: 9,
    since_bytes: 1890,
    until_bytes: 1990,
    grown_bytes: 100,
    bytes_per_step: 14.3,
    sentence: "CPU:0: what stays in use after a step grows.",
    ...change,
  };
}

/** A pipeline of 100 elements of 10 bytes, cached and shuffled. */
export function host(change: Partial<HostEstimate> = {}): HostEstimate {
  return {
    peak_bytes: 1300,
    startup_bytes: 1300,
    slack_bytes: 0,
    stages: [
      { name: "cache", bytes: 1000, elements: 100, element_bytes: 10, reason: "Every element stays in memory." },
      { name: "shuffle", bytes: 200, elements: 100, element_bytes: 10, reason: "The buffer holds 100 elements." },
      { name: "in use", bytes: 100, elements: 2, element_bytes: 50, reason: "The element in use and the next." },
    ],
    levers: [
      {
        name: "cache in a file",
        peak_bytes: 300,
        saving_bytes: 1000,
        cost: "reads",
        code: 'dataset.cache("file")',
        reason: null,
      },
      {
        name: "no cache",
        peak_bytes: 1300,
        saving_bytes: 0,
        cost: "computes",
        code: "leave it out",
        reason: "It is shared.",
      },
    ],
    assumptions: ["AUTOTUNE is taken to prefetch 2 elements."],
    ...change,
  };
}

/** Two changes, one of which makes it fit, and one that does not help. */
export function advice(change: Partial<Advice> = {}): Advice {
  const lever: Lever = {
    name: "sgd",
    title: "Optimizer SGD",
    peak_bytes: 500,
    needs_bytes: 600,
    saving_bytes: 500,
    saving_by_category: { optimizer_slots: 500 },
    fits: true,
    cost: "Needs a tuned learning rate.",
    code: "keras.optimizers.SGD()",
    reason: null,
  };
  return {
    limit_bytes: 700,
    peak_bytes: 1000,
    needs_bytes: 1000,
    fits: false,
    levers: [
      lever,
      {
        ...lever,
        name: "half_batch",
        title: "Batch of 1 instead of 2",
        peak_bytes: 900,
        needs_bytes: 1000,
        fits: false,
      },
    ],
    useless: [{ ...lever, name: "mixed_float16", title: "Precision mixed_float16", reason: "weights stay float32" }],
    combination: { names: ["sgd"], peak_bytes: 500, needs_bytes: 600 },
    batch_curve: [[2, 1000]],
    max_batch_size: 0,
    notes: [],
    ...change,
  };
}

/** A batch size, an optimizer and a mode to choose; one combination is left out. */
export function whatIf(change: Partial<WhatIf> = {}): WhatIf {
  const outcome = (batch_size: number, optimizer: string, mode: string, peak: number, high = peak): ChoiceOutcome => ({
    batch_size,
    optimizer,
    precision: "float32",
    mode,
    peak_bytes: peak,
    saving_bytes: 1000 - peak,
    phases: { build: [300, 300, 300], step: [peak, peak, high] },
    categories: { weights: 200, activations: peak - 200 },
  });
  return {
    base: { batch_size: 2, optimizer: "Adam", precision: "float32", mode: "graph" },
    batch_sizes: [1, 2, 4],
    optimizers: ["Adam", "SGD"],
    precisions: ["float32"],
    modes: ["graph", "xla"],
    outcomes: [
      outcome(2, "Adam", "graph", 1000),
      outcome(1, "Adam", "graph", 700),
      outcome(4, "Adam", "graph", 1600),
      outcome(2, "SGD", "graph", 500, 800),
      outcome(2, "Adam", "xla", 900),
    ],
    notes: ["7 of 12 combinations were left out, after 1 seconds."],
    ...change,
  };
}

/** Runs side by side, each 100 bytes more than the one before. */
export function compared(names: readonly string[]): Compared {
  const row = (name: string, first: number): ComparedRow => ({
    name,
    values: names.map((_, n) => first + 100 * n),
    differences: names.map((_, n) => 100 * n),
  });
  const same = (name: string, value: number): ComparedRow => ({
    name,
    values: names.map(() => value),
    differences: names.map(() => 0),
  });
  return {
    runs: names.map((name, n) => ({
      name,
      peak_bytes: 3000 + 100 * n,
      bytes_per_category: { weights: 2000, activations: 1000 + 100 * n },
      measured_peak_bytes: null,
      verdict: null,
      crash: null,
    })),
    facts: [
      { name: "optimizer", values: names.map(() => "Adam"), differs: false },
      { name: "batch_size", values: names.map((_, n) => n + 1), differs: names.length > 1 },
    ],
    peaks: [
      row("predicted", 3000),
      { name: "measured", values: names.map(() => null), differences: names.map(() => null) },
    ],
    phases: [same("build", 2500), row("step", 3000)],
    categories: [same("weights", 2000), row("activations", 1000)],
    layers: [row("net/b", 900), same("net/a", 500)],
  };
}

/** Five events of two ops, the peak of 900 bytes in the middle. */
export function curve(change: Partial<Timeline> = {}): Curve {
  return {
    peak_bytes: 900,
    events: 5,
    extent: [0, 4],
    peak: { position: 2, tick: 2, live_bytes: 900, op: "net/b/MatMul" },
    timeline: {
      unit: "op",
      ticks: [0, 1, 2, 3, 4],
      live_bytes: [400, 600, 900, 600, 400],
      op_index: [0, 1, 1, 0, 0],
      ops: ["(start)", "net/b/MatMul"],
      layers: [null, "net/b"],
      positions: [0, 1, 2, 3, 4],
      spans: [],
      ...change,
    },
  };
}

/** A measured step on the axis of `curve`: 50 bytes more all along, which were there before, and 30 more at one op. */
export function aligned(change: Partial<Aligned> = {}): Aligned {
  return {
    id: "p",
    phase: "step",
    step: { name: "step 3", start: 0, end: 99 },
    beside_bytes: 50,
    timeline: {
      unit: "op",
      ticks: [0.5, 1, 2, 3.5],
      live_bytes: [450, 650, 980, 450],
      op_index: [0, 0, 1, 0],
      ops: ["net/a/Relu", "net/b/MatMul"],
      positions: [10, 11, 12, 13],
      spans: [],
    },
    ops: { predicted: 2, measured: 3, matched: 2, in_order: 2 },
    differences: [
      {
        op: "net/b/MatMul",
        tick: 2,
        predicted_bytes: 300,
        measured_bytes: 330,
        predicted_live_bytes: 900,
        measured_live_bytes: 980,
      },
      {
        op: "net/b/Extra",
        tick: null,
        predicted_bytes: null,
        measured_bytes: 20,
        predicted_live_bytes: null,
        measured_live_bytes: 1000,
      },
    ],
    ...change,
  };
}

/** Two layers: a weight and two activations that are alike, and a gradient. */
export function moment(change: Partial<Moment> = {}): Moment {
  const item = { role: "weight", variable: null, shape: [10, 10], dtype: "float32", requested_bytes: 400, count: 1 };
  const weight: AliveItem = {
    ...item,
    layer: "net/a",
    name: "net/a/kernel",
    category: "weights",
    bytes: 400,
    all_bytes: 400,
  };
  const activation: AliveItem = {
    ...weight,
    name: "net/a/Relu",
    category: "activations",
    bytes: 100,
    all_bytes: 200,
    count: 2,
  };
  const gradient: AliveItem = { ...weight, layer: "net/b", name: "net/b/Grad", category: "gradients", all_bytes: 300 };
  return {
    position: 2,
    tick: 2,
    unit: "op",
    op: "net/b/MatMul",
    live_bytes: 900,
    by: "layer",
    bytes: 900,
    count: 4,
    groups: [
      {
        key: "net/a",
        bytes: 600,
        count: 3,
        categories: { weights: 400, activations: 200 },
        items: [weight, activation],
      },
      { key: "net/b", bytes: 300, count: 1, categories: { gradients: 300 }, items: [gradient] },
    ],
    ...change,
  };
}

/** An Api of two runs, `a` and `b`. */
export function api(change: Partial<Api> = {}): Api {
  return {
    runs: () => Promise.resolve([headline("a"), headline("b")]),
    gpus: () => Promise.resolve([]),
    compare: (run, others) => Promise.resolve(compared([run, ...others])),
    xprofSessions: () => Promise.resolve([]),
    overview: (run) => Promise.resolve(overview(run)),
    timeline: () => Promise.resolve(curve()),
    profile: () => Promise.resolve(curve({ unit: "ns" })),
    aligned: (_, id) => Promise.resolve(aligned({ id })),
    moment: () => Promise.resolve(moment()),
    peaks: () => Promise.resolve({ devices: [], beside: [], leaks: [] }),
    host: () => Promise.resolve({ host: null }),
    whatIf: () => Promise.resolve({ what_if: null }),
    ...change,
  };
}

/** A promise and the means to keep it later. */
export function deferred<T>(): { promise: Promise<T>; resolve: (value: T) => void; reject: (error: Error) => void } {
  let resolve!: (value: T) => void;
  let reject!: (error: Error) => void;
  const promise = new Promise<T>((keep, fail) => {
    resolve = keep;
    reject = fail;
  });
  return { promise, resolve, reject };
}
