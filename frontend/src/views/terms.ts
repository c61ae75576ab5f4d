import type { Category } from "../model/types";

/** What the tab's words mean, in a sentence or two, for those who meet them first here. */
export const TERMS = {
  "predicted peak":
    "The most memory that TensorFlow's allocator would have in use at once in a training step, found from the model's graph without running it.",
  "measured peak":
    "The most that TensorFlow's allocator really had in use at once in any measured training step, without the data pipeline's tensors.",
  limit:
    "The memory that the allocator may use. For a GPU's name: what an idle one leaves to TensorFlow, after the reserve that TensorFlow keeps free.",
  range: "The order in which ops run is not fixed and decides what is alive at once. The peak lies between these two.",
  build: "Making the variables. Initializers keep several copies of a large weight for a moment.",
  first_step: "The first training step: the optimizer's slots are made, and functions are traced or compiled.",
  step: "Any later training step, when all variables are there.",
  evaluate: "A batch of model.evaluate or of validation: the forward pass alone.",
  predict: "A batch of model.predict, and what it keeps of the batches before.",
  checkpoint: "Writing the model to disk.",
  graph:
    "Graph mode: the step is a graph of TensorFlow's own kernels, each with its output in memory (jit_compile=False).",
  xla: "XLA compiles the whole step and lays out its temporary memory as one block (jit_compile=True).",
  eager: "Eager mode: Python runs op after op, and tensors live as long as Python refers to them (run_eagerly=True).",
  growth: "The allocator's pool grows by regions that double. What is not split of a region counts as in use.",
  preallocated:
    "The allocator takes nearly the whole device at once, as TensorFlow does on GPUs unless memory growth is on.",
  slack:
    "TensorFlow's allocator hands out a free block as a whole unless it is twice as large as what was asked for, or 128 MiB larger. All of the block counts as in use.",
  layers:
    "What each layer holds at the highest moment of the phase. The rows add up to the peak; a group has the sum of what lies in it.",
  dominant: "The few variables and layers that hold most of the peak, each with everything that exists because of it.",
} as const;

export const CATEGORY_TERMS: Record<Category, string> = {
  weights: "The model's variables, trainable or not.",
  gradients: "What the backward pass found for each weight, until the optimizer has used it.",
  optimizer_slots: "What the optimizer keeps of each weight between steps: Adam's m and v, a momentum.",
  activations: "Outputs of the forward pass that the backward pass needs again.",
  inputs: "The batch: examples and targets.",
  temporaries: "Outputs of ops that are used up within the same pass, an optimizer's intermediate results among them.",
  workspace: "What a kernel allocates for itself while it runs, such as a convolution's scratch.",
  constants: "Values that are part of the graph.",
  unattributed: "Memory whose owner is not known.",
};

/** The parts of a step that belong to no layer, as their rows are named. */
const PART_TERMS: Record<string, string> = {
  "(step)": "What belongs to the step as a whole and to no layer: constants, counters, what joins its parts.",
  "(input)": "The batch itself: examples and targets.",
  "(loss)": "The loss and what computing it takes.",
  "(metrics)": "The metrics' variables and what updating them takes.",
  "(optimizer)": "What the optimizer has of its own: its count of steps, its learning rate, intermediate results.",
  "(before the profile)":
    "In use before the profile began, and of no known owner; the data pipeline's tensors among it.",
};

export type Term = keyof typeof TERMS;

/** What a word means; null for one that is not explained. */
export function meaning(word: string): string | null {
  return (
    (TERMS as Record<string, string | undefined>)[word] ??
    (CATEGORY_TERMS as Record<string, string | undefined>)[word] ??
    PART_TERMS[word] ??
    null
  );
}
