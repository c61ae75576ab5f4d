"""What to change after an out-of-memory error."""

from __future__ import annotations

import math
from itertools import pairwise

from tensorboard_plugin_memest.measure import oom_message
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.dominant import dominant
from tensorboard_plugin_memest.memory.estimate import Estimate
from tensorboard_plugin_memest.memory.explanation import Explanation
from tensorboard_plugin_memest.memory.explanation_text import HOST, what_changes_save
from tensorboard_plugin_memest.memory.item import by_category
from tensorboard_plugin_memest.memory.units import format_bytes, format_share

_OF_THE_BATCH = (Category.ACTIVATIONS, Category.INPUTS, Category.WORKSPACE)
# Types of few bytes that data may have.
_NARROWER = {"float32": 4, "uint8": 1}
# A last dimension so long hardly holds measured features.
_MANY_CLASSES = 1000
_OF_THE_WEIGHTS = (Category.WEIGHTS, Category.GRADIENTS, Category.OPTIMIZER_SLOTS)


def advice_for(explanation: Explanation, estimate: Estimate | None) -> tuple[str, ...]:
    """Sentences, most promising first.

    Numbers in them come from what was alive. What a change is worth in all, an estimate of the changed model says.
    """
    if explanation.source == HOST:
        return (
            "This is the host's memory, not the device's: read the data in parts (tf.data, a generator), and shrink "
            "what is cached or shuffled whole. memest.estimate_dataset(dataset or arrays) says what takes how much.",
            *_of_an_array(explanation),
        )
    if explanation.source == oom_message.PYTORCH:
        return (
            "This is PyTorch's error, and memest estimates and explains TensorFlow's memory. Where both run in one "
            "process, TensorFlow takes nearly all of a GPU for its pool at once: let it grow as needed "
            "(tf.config.experimental.set_memory_growth), or give it less (tf.config.set_logical_device_configuration).",
        )
    advice = []
    if _is_of_all_data(explanation):
        advice.append(
            "Where fit, predict or tf.constant gets arrays, all of an array is copied to the device at once: pass a "
            "tf.data.Dataset that is made under tf.device('CPU:0'), a keras.utils.PyDataset or a generator, which give "
            "it batches."
        )
    if _is_in_pieces(explanation):
        advice.append(
            "What was asked for would have fitted beside what was in use, but not in one piece. On a GPU "
            "TF_GPU_ALLOCATOR=cuda_malloc_async in the environment avoids that."
        )
    if explanation.source == oom_message.CUDNN:
        advice.append(
            "A CUDA library found no room for its own buffers. Leave it some: let TensorFlow's pool grow as needed "
            "(tf.config.experimental.set_memory_growth), or cap convolutions' scratch with "
            "TF_CUDNN_WORKSPACE_LIMIT_IN_MB in the environment."
        )
    if explanation.source in (oom_message.CUDNN, oom_message.COPY, oom_message.DRIVER):
        advice.append("See with nvidia-smi whether another process holds memory of this GPU.")
    if explanation.source == oom_message.DRIVER:
        advice.append(
            "TensorFlow takes nearly all of a GPU for its pool at once, whatever the model needs: where others use the "
            "GPU, too, let the pool grow as needed (tf.config.experimental.set_memory_growth), or give it less "
            "(tf.config.set_logical_device_configuration)."
        )
    if explanation.phase == "build":
        advice += _while_building(explanation)
    else:
        advice += _while_training(explanation, estimate)
    if estimate is not None and explanation.limit_bytes is not None:
        advice.append(what_changes_save(explanation.limit_bytes))
    return tuple(advice)


def _of_an_array(explanation: Explanation) -> list[str]:
    """What else an array of NumPy's could be."""
    shape, size = explanation.shape, explanation.bytes
    if not shape or not size or not explanation.dtype:
        return []
    if len(shape) <= 3 and shape[-1] >= _MANY_CLASSES:
        return [
            f"If most of its last dimension of {shape[-1]:,} is zeros, as in one-hot classes or counted words, keep "
            "numbers instead: integer classes with a sparse_categorical_crossentropy loss, an Embedding for words, or "
            "a tf.sparse.SparseTensor."
        ]
    elements = math.prod(shape)
    smaller = [
        f"{format_bytes(elements * each)} in {name}" for name, each in _NARROWER.items() if 2 * elements * each <= size
    ]
    return [f"The same array takes {' and '.join(smaller)}; that is enough for pixels."] if smaller else []


def _is_of_all_data(explanation: Explanation) -> bool:
    """Whether it was the user's data that found no room, as a whole: no op of a model has copied or gathered it."""
    gathered = explanation.op in ("GatherV2", "_EagerConst") and explanation.layer is None
    return gathered or explanation.source == oom_message.COPY


def _is_in_pieces(explanation: Explanation) -> bool:
    asked, used, limit = explanation.bytes, explanation.in_use_bytes, explanation.limit_bytes
    return asked is not None and used is not None and limit is not None and used + asked <= limit


def _while_building(explanation: Explanation) -> list[str]:
    held = [
        item for item in explanation.live if item.variable == explanation.variable and item.role != "weight"
    ] if explanation.variable else []  # fmt: skip
    large = [item for item in held if explanation.bytes and 2 * item.bytes >= explanation.bytes]
    name = explanation.variable or "the largest weight"
    copies = f" ({len(large)} copies of {name} at once)" if len(large) > 1 else ""
    return [
        f"Random initializers compute a weight in steps that are alive together{copies}. Create {name} with an "
        "initializer that does not, such as 'zeros', and load trained or precomputed values afterwards.",
        f"Make {name} smaller: it also needs a gradient and the optimizer's slots of its size in every step.",
    ]


def _while_training(explanation: Explanation, estimate: Estimate | None) -> list[str]:
    advice: list[str] = []
    held = by_category(explanation.live)
    total = sum(held.values())
    # Temporaries of a weight's initializer or update are as large as it; those of a layer grow with its batch.
    of_update = sum(item.bytes for item in explanation.live if item.category is Category.TEMPORARIES and item.variable)
    of_layers = held.get(Category.TEMPORARIES, 0) - of_update
    of_batch = sum(held.get(category, 0) for category in _OF_THE_BATCH) + of_layers
    of_weights = sum(held.get(category, 0) for category in _OF_THE_WEIGHTS) + of_update
    about_batch = [_smaller_batch(explanation, of_batch, total), *_less_kept(explanation, of_batch, total)]
    about_weights = _smaller_weights(explanation, estimate, of_weights, total)
    if total:
        weights_first = of_weights > of_batch
    else:
        weights_first = explanation.variable is not None or explanation.layer == "(optimizer)"
    advice += [*about_weights, *about_batch] if weights_first else [*about_batch, *about_weights]
    if total:
        # What hardly holds anything is no lever.
        low = about_batch if of_batch < 0.05 * total else about_weights if of_weights < 0.05 * total else []
        advice = [sentence for sentence in advice if sentence not in low]
    if explanation.phase in ("evaluate", "predict"):
        return [sentence for sentence in advice if sentence in about_batch] or advice
    return advice


def _smaller_batch(explanation: Explanation, of_batch: int, total: int) -> str:
    worth = f": what grows with it holds {format_bytes(of_batch)}, {format_share(of_batch, total)}" if of_batch else ""
    which = {
        "evaluate": "validation_batch_size in fit, or batch_size in evaluate",
        "predict": "batch_size in predict",
    }.get(explanation.phase or "", "batch_size")
    return f"A smaller {which}{worth}."


def _less_kept(explanation: Explanation, of_batch: int, total: int) -> list[str]:
    if explanation.phase in ("evaluate", "predict"):
        return []
    return [
        "Keep less for the backward pass: keras.mixed_precision.set_global_policy('mixed_float16') halves activations "
        "on a GPU, and tf.recompute_grad around a block computes them again instead of keeping them."
    ]


def _smaller_weights(explanation: Explanation, estimate: Estimate | None, of_weights: int, total: int) -> list[str]:
    advice = []
    largest = next((one for one in dominant(explanation.live) if one.shape), None) if explanation.live else None
    name = largest.name if largest else explanation.variable
    if name:
        how = _without_flatten(estimate, largest.layer if largest else explanation.layer)
        held = f" {largest.sentence}" if largest else ""
        advice.append(f"Make {name} smaller{how}.{held}")
    if estimate is not None and estimate.subject.mode == "graph" and explanation.source != oom_message.XLA:
        temporaries = sum(item.bytes for item in explanation.live if item.role == "update temporary" and item.variable)
        worth = f" They hold {format_bytes(temporaries)}." if temporaries else ""
        if temporaries or explanation.role == "update temporary":
            advice.append(
                f"model.compile(jit_compile=True): XLA fuses the optimizer's update, so its temporaries go.{worth}"
            )
    slots = by_category(explanation.live).get(Category.OPTIMIZER_SLOTS, 0)
    if slots:
        advice.append(
            f"An optimizer with fewer slots (SGD has none, Adafactor small ones): they hold {format_bytes(slots)}, "
            f"{format_share(slots, total)}."
        )
    elif not explanation.live and explanation.layer == "(optimizer)":
        advice.append("An optimizer with fewer slots: SGD has none, Adafactor small ones.")
    return advice


def _without_flatten(estimate: Estimate | None, layer: str | None) -> str:
    """What to do about a Dense layer after a Flatten, which is where most of these kernels come from."""
    infos = list(estimate.layer_infos) if estimate else []
    for before, info in pairwise(infos):
        if info.path == layer and info.class_name == "Dense" and before.class_name == "Flatten":
            return ", for example with a GlobalAveragePooling layer in place of Flatten, or fewer units"
    return ""
