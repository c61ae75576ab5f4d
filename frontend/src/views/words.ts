/** Names that the data uses, in words. */
const PHASES: Record<string, string> = {
  build: "Build",
  first_step: "First step",
  step: "Step",
  evaluate: "Evaluate",
  predict: "Predict",
  checkpoint: "Checkpoint",
};
const MODES: Record<string, string> = { graph: "graph mode", xla: "XLA", eager: "eager mode" };
const POOLS: Record<string, string> = { growth: "pool grows on demand", preallocated: "pool preallocated" };

export const phaseLabel = (name: string): string => PHASES[name] ?? name.replaceAll("_", " ");
export const modeLabel = (mode: string): string => MODES[mode] ?? mode;
export const poolLabel = (pool: string): string => POOLS[pool] ?? `pool: ${pool}`;

/** TensorFlow's ids of its allocators, as devices: `GPU:0` for `GPU_0_bfc`, `CPU` for what serves GPUs on a CPU. */
export function allocatorLabel(id: string): string {
  const gpu = /^GPU_(\d+)_bfc$/.exec(id);
  return gpu ? `GPU:${gpu[1]}` : /cpu/i.test(id) ? "CPU" : id;
}

/** The name of a profile's session as a time of day: `2026-01-31 15:45:31` for `2026_01_31_15_45_31`. */
export function sessionLabel(session: string): string {
  return session.replace(/^(\d{4})_(\d\d)_(\d\d)_(\d\d)_(\d\d)_(\d\d)$/, "$1-$2-$3 $4:$5:$6");
}

/** `1 step`, `12 steps`. */
export function counted(count: number, noun: string): string {
  return `${count.toLocaleString("en-US")} ${noun}${count === 1 ? "" : "s"}`;
}

/** The end of a long op name: its last parts tell more than the first. */
export function shortened(op: string, length = 34): string {
  return op.length <= length ? op : `…${op.slice(1 - length)}`;
}
