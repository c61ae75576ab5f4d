"""The changes worth trying on a model. What each does to its memory is not said here: that is estimated."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import keras

from tensorboard_plugin_memest.advise.blueprint import Blueprint, Part
from tensorboard_plugin_memest.advise.change import Change, dtype_policy
from tensorboard_plugin_memest.advise.optimizers import OPTIMIZERS
from tensorboard_plugin_memest.advise.remake import compiled_again, copied_optimizer, in_a_row, with_layer_replaced
from tensorboard_plugin_memest.estimation.mode import EAGER, GRAPH, XLA
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.estimate import Estimate
from tensorboard_plugin_memest.memory.units import format_bytes

# A layer with at least this share of all parameters, or of the peak, is worth changing.
WORTH_CHANGING = 0.1

_POOLING = {3: "1D", 4: "2D", 5: "3D"}


@dataclass(frozen=True)
class Proposal:
    """A change that may help.

    Attributes:
        name: short and unique.
        kind: what it changes; of two with the same kind only one makes sense at a time.
        title: what to do.
        change: the change.
        cost: what it costs.
        code: the code.
        effort: how much it asks for: 0 for a line that changes nothing about the result, 1 for one that needs tuning, 2
            for another model.
    """

    name: str
    kind: str
    title: str
    change: Change
    cost: str
    code: str
    effort: int


def proposals(blueprint: Blueprint, estimate: Estimate) -> Iterator[Proposal]:
    """Everything that can be changed about this model."""
    yield from _optimizers(blueprint)
    yield from _precision(blueprint)
    yield from _batch(blueprint, estimate)
    yield from _compiler(estimate)
    yield from _recomputation(blueprint, estimate)
    yield from _training_less(blueprint)
    if blueprint.layers_can_change:
        for part in blueprint.parts:
            if part.parameters < WORTH_CHANGING * blueprint.parameters:
                continue
            if part.class_name == "Dense":
                yield from _before_dense(blueprint, part)
                yield from _smaller_dense(blueprint, part)
            elif part.class_name == "Embedding":
                yield from _embedding(part)


def why_not(proposal: Proposal, estimate: Estimate, after: Estimate) -> str:
    """Why a change saves nothing, from what is alive at the peak."""
    held = estimate.peak_phase.categories
    fixed = sum(held.get(one, 0) for one in (Category.WEIGHTS, Category.GRADIENTS, Category.OPTIMIZER_SLOTS))
    activations = held.get(Category.ACTIVATIONS, 0)
    worse = _worse(estimate, after)
    peak = format_bytes(estimate.peak_bytes)
    if proposal.kind == "precision":
        return (
            f"weights, gradients and slots stay float32, {format_bytes(fixed)} of {peak}; only activations, "
            f"{format_bytes(activations)}, are halved, and each weight gets a half-precision copy while it is used."
            f"{worse}"
        )
    if proposal.kind in ("batch", "recomputation"):
        inputs = held.get(Category.INPUTS, 0)
        return (
            f"activations and the batch are only {format_bytes(activations + inputs)} of {peak}; weights, gradients "
            f"and slots are {format_bytes(fixed)} whatever the batch.{worse}"
        )
    if proposal.kind == "optimizer":
        slots = held.get(Category.OPTIMIZER_SLOTS, 0) - after.peak_phase.categories.get(Category.OPTIMIZER_SLOTS, 0)
        return f"it saves {format_bytes(max(0, slots))} of slots at a peak of {peak}.{worse}"
    return f"it touches little of what is alive at the peak of {peak}.{worse}"


def _worse(before: Estimate, after: Estimate) -> str:
    """Where a change needs more memory, and how much; nothing if it hardly does."""
    was, now = before.peak_phase.categories, after.peak_phase.categories
    grown = max(Category, key=lambda one: now.get(one, 0) - was.get(one, 0))
    more = now.get(grown, 0) - was.get(grown, 0)
    if more <= 0.01 * before.peak_bytes:
        return ""
    return f" It takes {format_bytes(more)} more of {grown.label}, so the peak is {format_bytes(after.peak_bytes)}."


def _optimizers(blueprint: Blueprint) -> Iterator[Proposal]:
    for choice in OPTIMIZERS:
        if not choice.is_like(blueprint.optimizer):
            title, code = f"Optimizer {choice.title}", f"optimizer = {choice.code}"
            yield Proposal(choice.name, "optimizer", title, Change(optimizer=choice.make), choice.cost, code, 1)


def _precision(blueprint: Blueprint) -> Iterator[Proposal]:
    if blueprint.dtype_policy != "float32":
        return
    for name in ("mixed_float16", "mixed_bfloat16"):
        gpus = "compute capability 7.0 on" if name == "mixed_float16" else "compute capability 8.0 on, TPUs and CPUs"
        yield Proposal(
            name,
            "precision",
            f"Precision {name}",
            Change(around=(functools.partial(dtype_policy, name),)),
            f"Faster on GPUs from {gpus}; outputs and losses should stay float32.",
            f'keras.config.set_dtype_policy("{name}")  # before the model is built',
            1,
        )


def _batch(blueprint: Blueprint, estimate: Estimate) -> Iterator[Proposal]:
    size = estimate.subject.batch_size
    if size < 2 or not _any_batch(estimate):
        return
    yield smaller_batch("half_batch", size // 2, size)
    steps = next((count for count in (4, 2, 3, 5) if size % count == 0), None)
    if blueprint.optimizer is None or steps is None or blueprint.optimizer.gradient_accumulation_steps:
        return
    accumulating = functools.partial(copied_optimizer, blueprint.optimizer, gradient_accumulation_steps=steps)
    yield Proposal(
        "accumulation",
        "batch",
        f"Gradients accumulated over {steps} batches of {size // steps}",
        Change(batch_size=size // steps, optimizer=accumulating),
        f"The same effective batch of {size} in {steps} steps; one more copy of the weights, and batch normalization "
        "sees the smaller batch.",
        f"optimizer = keras.optimizers.{type(blueprint.optimizer).__name__}(..., gradient_accumulation_steps={steps})\n"
        f"model.fit(..., batch_size={size // steps})",
        0,
    )


def smaller_batch(name: str, wanted: int, size: int) -> Proposal:
    """A batch of `wanted` examples instead of `size`."""
    return Proposal(
        name,
        "batch",
        f"Batch of {wanted} instead of {size}",
        Change(batch_size=wanted),
        "More steps an epoch and noisier gradients; the learning rate may have to be lowered with the batch.",
        f"model.fit(..., batch_size={wanted})",
        0,
    )


def _any_batch(estimate: Estimate) -> bool:
    return not any("fixes, " in note for note in estimate.assumptions)


def _compiler(estimate: Estimate) -> Iterator[Proposal]:
    if estimate.subject.mode == EAGER:
        yield Proposal(
            "graph",
            "compiler",
            "tf.function instead of eager steps",
            Change(mode=GRAPH),
            "The first step waits for the trace; Python code in the model runs while it is traced only.",
            "model.compile(..., run_eagerly=False)",
            0,
        )
    xla = estimate.subject.mode == XLA
    yield Proposal(
        "no_xla" if xla else "xla",
        "compiler",
        "Without XLA" if xla else "XLA",
        Change(mode=GRAPH if xla else XLA),
        "Slower steps, and no compiling before the first."
        if xla
        else "The first step waits for the compiler, and so does every new shape of a batch (drop_remainder=True).",
        f"model.compile(..., jit_compile={not xla})",
        0,
    )


def _recomputation(blueprint: Blueprint, estimate: Estimate) -> Iterator[Proposal]:
    own = {part.name for part in blueprint.parts}
    kept: dict[str, int] = {}
    for layer in estimate.layers:
        name = layer.path.partition("/")[0]
        if name in own:
            kept[name] = kept.get(name, 0) + layer.bytes_per_category.get(Category.ACTIVATIONS, 0)
    names = [name for name, held in kept.items() if held >= 0.01 * estimate.peak_bytes]
    if not names or not hasattr(keras, "RematScope"):
        return
    shown = names if len(names) <= 6 else [*names[:5], "..."]
    yield Proposal(
        "recomputation",
        "recomputation",
        f"Recompute {'the activations of ' + str(len(names)) + ' layers' if len(names) > 1 else names[0]}",
        Change(around=(functools.partial(keras.RematScope, mode="list_of_layers", layer_names=names),)),
        "These layers run again in the backward pass, about a third more time for a step; results stay the same.",
        f'with keras.RematScope(mode="list_of_layers", layer_names={shown}):\n    model = build_model()',
        0,
    )


def _training_less(blueprint: Blueprint) -> Iterator[Proposal]:
    weighted = [part for part in blueprint.parts if part.parameters]
    if len(weighted) < 2:
        return
    last = weighted[-1].name
    trained = weighted[-1].number

    def freeze(model: keras.Model) -> keras.Model:
        for number, layer in enumerate(model.layers):
            layer.trainable = number == trained
        return compiled_again(model)

    yield Proposal(
        "freeze",
        "training",
        f"Train only {last}",
        Change(edits=(freeze,)),
        "Only for a model whose other layers are trained already (transfer learning).",
        f'for layer in model.layers:\n    layer.trainable = layer.name == "{last}"\nmodel.compile(...)  # again',
        2,
    )
    large = [part for part in weighted if part.can_adapt and part.parameters >= WORTH_CHANGING * blueprint.parameters]
    if not large:
        return
    names = [part.name for part in large]

    def adapt(model: keras.Model) -> keras.Model:
        for part in large:
            model.layers[part.number].enable_lora(8)
        return compiled_again(model)

    yield Proposal(
        "lora",
        "training",
        f"Low-rank adapters (LoRA, rank 8) for {', '.join(names[:3])}{' ...' if len(names) > 3 else ''}",
        Change(edits=(adapt,)),
        "The kernels are frozen and only adapters are trained: for fine-tuning weights that are trained already.",
        f"for name in {names}:\n    model.get_layer(name).enable_lora(8)\nmodel.compile(...)  # again",
        2,
    )


def _before_dense(blueprint: Blueprint, dense: Part) -> Iterator[Proposal]:
    """What a Dense layer is fed, made smaller: the Flatten in front of it sees every position of an image."""
    flatten = next(
        (part for part in blueprint.parts if part.class_name == "Flatten" and dense.name in part.feeds), None
    )
    if flatten is None or flatten.input_rank not in _POOLING:
        return
    rank = _POOLING[flatten.input_rank]
    layers = keras.layers
    name = flatten.name

    def replaced(make: Callable[[str], keras.layers.Layer]) -> Change:
        return Change(edits=(lambda model: with_layer_replaced(model, flatten.number, lambda layer: make(layer.name)),))

    yield Proposal(
        "global_pooling",
        "architecture",
        f"Global average pooling instead of {name}, before {dense.name}",
        replaced(lambda name: getattr(layers, f"GlobalAveragePooling{rank}")(name=name)),
        "Another model: positions are averaged away, as in most modern image classifiers; it has to be trained anew.",
        f"layers.GlobalAveragePooling{rank}()  # instead of layers.Flatten()",
        2,
    )
    yield Proposal(
        "pooling",
        "architecture",
        f"Average pooling by 4 before {name}",
        replaced(
            lambda name: in_a_row(
                name, getattr(layers, f"AveragePooling{rank}")(4, padding="same"), layers.Flatten(name=f"{name}_inner")
            )
        ),
        "Another model: coarser positions, the rest as before; strides in the convolutions do the same and are faster.",
        f'layers.AveragePooling{rank}(4, padding="same")\nlayers.Flatten()',
        2,
    )
    if dense.config.get("units") and (flatten.channels or 0) > 2:
        yield Proposal(
            "bottleneck",
            "architecture",
            f"A 1x1 convolution to 2 channels before {name}",
            replaced(
                lambda name: in_a_row(
                    name, getattr(layers, f"Conv{rank}")(2, 1, activation="relu"), layers.Flatten(name=f"{name}_inner")
                )
            ),
            "Another model: fewer features at each position.",
            f'layers.Conv{rank}(2, 1, activation="relu")\nlayers.Flatten()',
            2,
        )


def _smaller_dense(blueprint: Blueprint, dense: Part) -> Iterator[Proposal]:
    units = dense.config.get("units", 0)
    # The last layer's units are what the model is asked for.
    if not dense.feeds or units < 2:
        return
    for divisor in (2, 8):
        if units // divisor < 1:
            continue
        smaller = units // divisor

        def shrink(model: keras.Model, smaller: int = smaller) -> keras.Model:
            def replacement(layer: keras.layers.Layer) -> keras.layers.Layer:
                return type(layer).from_config({**layer.get_config(), "units": smaller})

            return with_layer_replaced(model, dense.number, replacement)

        yield Proposal(
            f"smaller_dense_{smaller}",
            "units",
            f"A smaller Dense: {dense.name} with {smaller} units instead of {units}",
            Change(edits=(shrink,)),
            "Another model: less capacity, which a layer of this size seldom needs.",
            f"layers.Dense({smaller}, ...)  # {dense.name}",
            2,
        )


def _embedding(table: Part) -> Iterator[Proposal]:
    words, size = table.config.get("input_dim", 0), table.config.get("output_dim", 0)
    inner = max(4, size // 8)
    if inner < size:

        def factorize(model: keras.Model) -> keras.Model:
            def replacement(layer: keras.layers.Layer) -> keras.layers.Layer:
                config = {**layer.get_config(), "output_dim": inner, "name": f"{layer.name}_inner"}
                return in_a_row(layer.name, type(layer).from_config(config), keras.layers.Dense(size, use_bias=False))

            return with_layer_replaced(model, table.number, replacement)

        yield Proposal(
            "factorized_embedding",
            "embedding",
            f"Embedding {table.name} factorized: {inner} numbers a word, then a Dense to {size}",
            Change(edits=(factorize,)),
            "Another model, as in ALBERT: words share directions; it has to be trained anew.",
            f"layers.Embedding({words}, {inner})\nlayers.Dense({size}, use_bias=False)",
            2,
        )

    def hash_words(model: keras.Model) -> keras.Model:
        def replacement(layer: keras.layers.Layer) -> keras.layers.Layer:
            return type(layer).from_config({**layer.get_config(), "input_dim": max(1, words // 4)})

        return with_layer_replaced(model, table.number, replacement)

    yield Proposal(
        "smaller_vocabulary",
        "embedding",
        f"Embedding {table.name} for a quarter of the words, {words // 4:,}",
        Change(edits=(hash_words,)),
        "Rare words share a row (hash them, or map them to one unknown word).",
        f"layers.Hashing({words // 4}), then layers.Embedding({words // 4}, {size})",
        2,
    )
