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

/** `1 step`, `12 steps`. */
export function counted(count: number, noun: string): string {
  return `${count.toLocaleString("en-US")} ${noun}${count === 1 ? "" : "s"}`;
}

/** The end of a long op name: its last parts tell more than the first. */
export function shortened(op: string, length = 34): string {
  return op.length <= length ? op : `…${op.slice(1 - length)}`;
}
