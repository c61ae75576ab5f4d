import {
  CATEGORIES,
  type AliveItem,
  type BytesPerCategory,
  type Category,
  type Curve,
  type Headline,
  type LayerGroup,
  type LayerRow,
  type Moment,
  type MomentGroup,
  type Overview,
  type PeaksAnswer,
  type Phase,
  type Window,
} from "../src/model/types";
import { keyOf, type Answers } from "./recorded";

const NAME = "experiments/2026-11/backbone-large/with-a-rather-long-name";

/** Answers about a made-up model of `count` layers in nested blocks, to see how the tab bears its size; first of `runs`. */
export function hugeAnswers(count: number, runs: readonly Headline[]): Answers {
  const layers: LayerRow[] = [];
  const alive: MomentGroup[] = [];
  for (let n = 0; n < count; n++) {
    const path = `backbone/stage_${Math.floor(n / 500)}/block_${Math.floor(n / 10) % 50}/attention/layer_with_a_long_name_${n}`;
    const width = 256 * (1 + (n % 7));
    const weights = width * width * 4;
    const activations = 32 * 512 * width * 4;
    const bytes: BytesPerCategory = { weights, optimizer_slots: 2 * weights, activations };
    if (n % 11 === 0) {
      bytes.gradients = weights;
    }
    layers.push({
      path,
      class_name: n % 3 ? "Dense" : "EinsumDense",
      output_shape: [32, 512, width],
      parameters: width * width,
      bytes_per_category: bytes,
      bytes_at_peak: sum(bytes),
      measured_bytes: sum(bytes) + (n % 13 ? 0 : 4096 * n),
      difference_bytes: n % 13 ? 0 : 4096 * n,
    });
    const items = (Object.entries(bytes) as [Category, number][]).map(([category, held]): AliveItem => ({
      layer: path,
      name: `${path}/${category}`,
      category,
      role: category === "activations" ? "MatMul output" : category,
      variable: category === "activations" ? null : `${path}/kernel`,
      shape: [32, 512, width],
      dtype: "float32",
      requested_bytes: held,
      bytes: held,
      count: 1,
      all_bytes: held,
    }));
    alive.push({ key: path, bytes: sum(bytes), count: items.length, categories: bytes, items });
  }
  const rest: BytesPerCategory = {
    inputs: 67_108_864,
    temporaries: 805_306_368,
    constants: 4096,
    unattributed: 2_097_152,
  };
  layers.push({
    path: "(step)",
    class_name: "",
    output_shape: null,
    parameters: 0,
    bytes_per_category: rest,
    bytes_at_peak: sum(rest),
    measured_bytes: sum(rest),
    difference_bytes: 0,
  });
  alive.sort((a, b) => b.bytes - a.bytes);
  const categories = total(layers);
  const peak = sum(categories);
  const parameters = layers.reduce((all, layer) => all + layer.parameters, 0);
  const phase = (name: string, held: BytesPerCategory): Phase => ({
    name,
    peak_bytes: sum(held),
    requested_peak_bytes: sum(held),
    peak_without_scratch_bytes: sum(held),
    peak_range: [Math.round(sum(held) * 0.97), Math.round(sum(held) * 1.06)],
    host_peak_bytes: 0,
    peak_op: "gradient_tape/backbone/stage_5/block_49/attention/layer_with_a_long_name_2999/MatMul_1",
    peak_of: null,
    categories: held,
  });
  const phases = [
    phase("build", { weights: categories.weights ?? 0, temporaries: 201_326_592 }),
    phase("first_step", categories),
    phase("step", categories),
  ];
  const ticks = Array.from({ length: 2000 }, (_, n) => n * 20);
  const live = ticks.map((_, n) => Math.round(peak * (0.25 + 0.75 * Math.sin((Math.PI * n) / 1999) ** 2)));
  const position = live.indexOf(Math.max(...live));
  const ops = Array.from({ length: 40 }, (_, n) => `backbone/stage_0/block_${n}/attention/MatMul`);
  const highest = { position: 20 * position, tick: ticks[position]!, live_bytes: live[position]!, op: ops[0]! };
  const curve: Curve = {
    peak_bytes: peak,
    events: 40_000,
    extent: [0, ticks.at(-1)!],
    peak: highest,
    timeline: {
      unit: "op",
      ticks,
      live_bytes: live,
      op_index: ticks.map((_, n) => n % 40),
      ops,
      layers: ops.map(() => null),
      positions: ticks,
      spans: [
        { name: "forward", start: 0, end: 20_000 },
        { name: "backward", start: 20_000, end: 40_000 },
      ],
    },
  };
  const moment: Moment = {
    ...highest,
    unit: "op",
    by: "layer",
    bytes: sum(Object.fromEntries(alive.map(({ key, bytes }) => [key, bytes]))),
    count: alive.reduce((all, group) => all + group.count, 0),
    groups: alive,
  };
  const first = layers[0]!;
  const dominant = {
    name: first.path,
    layer: first.path,
    shape: null,
    bytes: first.bytes_at_peak,
    share: first.bytes_at_peak / peak,
    sentence: `The tensors of ${first.path} are 0.1 % of the peak.`,
    parts: Object.entries(first.bytes_per_category).map(([category, bytes]) => ({
      role: category,
      category: category as Category,
      count: 1,
      bytes,
      requested_bytes: bytes,
      share: bytes / peak,
    })),
  };
  const held = Math.round(peak * 0.3);
  const windows = Array.from({ length: 1000 }, (_, n): Window => {
    const highest = Math.round(peak * (0.98 + 0.03 * Math.abs(Math.sin(n))));
    return [n * 50, n * 50 + 49, highest, held, held, highest - held];
  });
  const measuredPeak = Math.max(...windows.map((window) => window[2]));
  const device = {
    device: "GPU:0",
    source: "TensorFlow's BFC allocator",
    before_bytes: null,
    limit_bytes: 85_899_345_920,
  };
  const headline: Headline = {
    name: NAME,
    began: null,
    model: "backbone",
    optimizer: "AdamW",
    batch_size: 32,
    mode: "xla",
    device: "GPU",
    peak_bytes: peak,
    measured_peak_bytes: measuredPeak,
    limit_bytes: null,
    crashed: false,
    problems: [],
  };
  const overview: Overview = {
    name: NAME,
    estimate: {
      subject: {
        model_name: "backbone",
        model_class: "Functional",
        parameters,
        trainable_parameters: parameters - 1_048_576,
        optimizer: "AdamW",
        batch_size: 32,
        mode: "xla",
        device: "GPU",
        pool: "preallocated",
        versions: { memest: "0.1.0" },
      },
      peak_bytes: peak,
      peak_phase: "step",
      resident_bytes: Math.round(peak * 0.3),
      phases,
      layers,
      groups: groupsOf(layers),
      total: {
        parameters,
        bytes_per_category: categories,
        bytes_at_peak: peak,
        measured_bytes: layers.reduce((all, layer) => all + layer.measured_bytes!, 0),
        difference_bytes: layers.reduce((all, layer) => all + layer.difference_bytes!, 0),
      },
      dominant: [dominant],
      assumptions: ["Generated by the development page."],
    },
    verdict: null,
    crash: null,
    advice: null,
    measured: {
      peak_bytes: measuredPeak,
      total_peak_bytes: measuredPeak,
      pipeline_bytes: 0,
      difference: (peak - measuredPeak) / measuredPeak,
      host: null,
      totals: [],
      phases: { step: measuredPeak },
      devices: [{ ...device, peak_bytes: measuredPeak, steps: 50_000 }],
      profiles: [],
      notes: [],
    },
    problems: [],
  };
  const peaks: PeaksAnswer = { devices: [{ ...device, windows }], beside: [], leaks: [] };
  const of = (route: string, parameters: Record<string, string> = {}): string =>
    keyOf(route, Object.entries({ run: NAME, ...parameters }));
  return {
    runs: { runs: [headline, ...runs] },
    [of("overview")]: overview,
    [of("peaks")]: peaks,
    [of("host")]: { host: null },
    [of("what_if")]: { what_if: null },
    ...(Object.fromEntries(
      phases.flatMap(({ name: phase }): [string, unknown][] => [
        [of("timeline", { phase }), curve],
        [of("moment", { phase, by: "layer" }), moment],
      ]),
    ) as Answers),
  };
}

function sum(categories: Readonly<Record<string, number>>): number {
  return Object.values(categories).reduce((all, bytes) => all + bytes, 0);
}

function total(layers: readonly LayerRow[]): BytesPerCategory {
  const sums: BytesPerCategory = {};
  for (const category of CATEGORIES) {
    const bytes = layers.reduce((all, layer) => all + (layer.bytes_per_category[category] ?? 0), 0);
    if (bytes) {
      sums[category] = bytes;
    }
  }
  return sums;
}

/** What the server makes of nested layers. */
function groupsOf(layers: readonly LayerRow[]): LayerGroup[] {
  const groups = new Map<string, LayerRow[]>();
  for (const layer of layers) {
    const parts = layer.path.split("/");
    for (let depth = 1; depth < parts.length; depth++) {
      const path = parts.slice(0, depth).join("/");
      const inside = groups.get(path);
      if (inside) {
        inside.push(layer);
      } else {
        groups.set(path, [layer]);
      }
    }
  }
  return [...groups].map(([path, inside]) => {
    const categories = total(inside);
    return {
      path,
      layers: inside.length,
      parameters: inside.reduce((all, layer) => all + layer.parameters, 0),
      bytes_per_category: categories,
      bytes_at_peak: sum(categories),
      measured_bytes: inside.reduce((all, layer) => all + layer.measured_bytes!, 0),
      difference_bytes: inside.reduce((all, layer) => all + layer.difference_bytes!, 0),
    };
  });
}
