"""The changes worth trying on a training. What each does to its memory is not said here: that is estimated."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import keras

from tensorboard_plugin_memest.advise.activations import narrower, smaller_inputs
from tensorboard_plugin_memest.advise.architecture import architecture, undistributed
from tensorboard_plugin_memest.advise.blueprint import Blueprint
from tensorboard_plugin_memest.advise.callbacks import callback_changes
from tensorboard_plugin_memest.advise.change import Change, dtype_policy
from tensorboard_plugin_memest.advise.optimizers import OPTIMIZERS
from tensorboard_plugin_memest.advise.proposal import WORTH_CHANGING, Proposal
from tensorboard_plugin_memest.advise.recomputed import recomputed
from tensorboard_plugin_memest.advise.remake import compiled_like
from tensorboard_plugin_memest.advise.vocabulary import vocabulary
from tensorboard_plugin_memest.advise.written import compiling, source_of
from tensorboard_plugin_memest.estimation.mode import EAGER, GRAPH, XLA
from tensorboard_plugin_memest.estimation.optimizers import copied_optimizer
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.estimate import Estimate


def proposals(
    blueprint: Blueprint,
    estimate: Estimate,
    validation_batch_size: int | None = None,
    callbacks: Sequence[Any] = (),
) -> Iterator[Proposal]:
    """Everything that can be changed about a training.

    Args:
        blueprint: what its model is made of.
        estimate: the training as it is.
        validation_batch_size: examples a step of its evaluation; None without one.
        callbacks: what `fit` gets.
    """
    names: set[str] = set()
    for proposal in _all(blueprint, estimate, validation_batch_size, callbacks):
        if proposal.name not in names:
            names.add(proposal.name)
            yield proposal


def _all(
    blueprint: Blueprint, estimate: Estimate, validation_batch_size: int | None, callbacks: Sequence[Any]
) -> Iterator[Proposal]:
    # What the peak is made of decides what goes first, in case there is not time for all.
    of_weights = sum(item.bytes for item in estimate.items if item.variable) / estimate.peak_bytes
    yield from batch_changes(estimate)
    yield from _validation(estimate, validation_batch_size)
    if blueprint.layers_can_change:
        yield from undistributed(blueprint)
    changes = [_weights(blueprint, estimate, of_weights), _activations(blueprint, estimate, 1 - of_weights)]
    for some in changes if of_weights > 1 / 2 else reversed(changes):
        yield from some
    yield from _accumulation(blueprint, estimate)
    yield from _compiler(estimate)
    yield from _training_less(blueprint)
    yield from callback_changes(callbacks)


def _weights(blueprint: Blueprint, estimate: Estimate, share: float) -> Iterator[Proposal]:
    """Changes to weights and what exists because of them, which are `share` of the peak."""
    yield from optimizer_changes(blueprint.optimizer)
    if blueprint.layers_can_change and share >= WORTH_CHANGING:
        yield from architecture(blueprint)


def _activations(blueprint: Blueprint, estimate: Estimate, share: float) -> Iterator[Proposal]:
    """Changes to what is computed of a batch, which is `share` of the peak."""
    if blueprint.layers_can_change:
        yield from vocabulary(blueprint, estimate)
        yield from smaller_inputs(blueprint)
    yield from _precision(blueprint)
    yield from _recomputation(blueprint, estimate)
    if blueprint.layers_can_change and share >= WORTH_CHANGING:
        yield from narrower(blueprint)


def optimizer_changes(optimizer: Any) -> Iterator[Proposal]:
    """Optimizers to train with instead of `optimizer`."""
    for choice in OPTIMIZERS:
        if not choice.is_like(optimizer):
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


def batch_changes(estimate: Estimate) -> Iterator[Proposal]:
    """A smaller batch, where the model takes one."""
    size = estimate.subject.batch_size
    if size >= 2 and _any_batch(estimate):
        yield smaller_batch("half_batch", size // 2, size)


def _accumulation(blueprint: Blueprint, estimate: Estimate) -> Iterator[Proposal]:
    size = estimate.subject.batch_size
    if size < 2 or not _any_batch(estimate):
        return
    steps = next((count for count in (4, 2, 3, 5) if size % count == 0), None)
    if blueprint.optimizer is None or steps is None or blueprint.optimizer.gradient_accumulation_steps:
        return
    # What scales the loss is put around the optimizer again.
    scaled = "model.optimizer" + ".inner_optimizer" * (blueprint.dtype_policy == "mixed_float16")
    accumulating = functools.partial(copied_optimizer, blueprint.optimizer, gradient_accumulation_steps=steps)
    yield Proposal(
        "accumulation",
        "batch",
        f"Gradients accumulated over {steps} batches of {size // steps}",
        Change(batch_size=size // steps, optimizer=accumulating),
        f"The same effective batch of {size} in {steps} steps; one more copy of the weights, and batch normalization "
        "sees the smaller batch.",
        f"config = {{**{scaled}.get_config(), 'gradient_accumulation_steps': {steps}}}\n"
        f"optimizer = type({scaled}).from_config(config)\n"
        f"{compiling(optimizer='optimizer')}\n"
        f"model.fit(x, y, batch_size={size // steps})",
        0,
    )


def _validation(estimate: Estimate, validation_batch_size: int | None) -> Iterator[Proposal]:
    size = min(estimate.subject.batch_size, (validation_batch_size or 1) // 2)
    if validation_batch_size is None or validation_batch_size < 2 or not _any_batch(estimate):
        return
    yield Proposal(
        "validation_batch",
        "validation",
        f"Validation in batches of {size} instead of {validation_batch_size}",
        Change(validation_batch_size=size),
        "Validation takes more steps; its results stay the same.",
        f"model.fit(x, y, validation_data=validation_data, validation_batch_size={size})",
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
        f"model.fit(x, y, batch_size={wanted})",
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
            compiling(optimizer="model.optimizer", run_eagerly="False"),
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
        compiling(optimizer="model.optimizer", jit_compile=str(not xla)),
        0,
    )


def _recomputation(blueprint: Blueprint, estimate: Estimate) -> Iterator[Proposal]:
    kept: dict[str, int] = {}
    for layer in estimate.layers:
        name = layer.path.partition("/")[0]
        kept[name] = kept.get(name, 0) + layer.bytes_per_category.get(Category.ACTIVATIONS, 0)
    parts = [
        part for part in blueprint.parts if part.can_recompute and kept.get(part.name, 0) >= 0.01 * estimate.peak_bytes
    ]
    if not parts:
        return

    def recompute(model: keras.Model) -> keras.Model:
        for part in parts:
            layer = model.layers[part.number]
            layer.call = recomputed(layer.call)
        return compiled_like(model, model)

    names = ", ".join(part.name for part in parts)
    yield Proposal(
        "recomputation",
        "recomputation",
        f"Recompute {f'the activations of {len(parts)} layers' if len(parts) > 1 else names}",
        Change(edits=(recompute,)),
        "These layers run again in the backward pass, about a third more time for a step; results stay the same.",
        f"{source_of(recomputed)}\n\n"
        f"for number in {[part.number for part in parts]}:  # {names}\n"
        f"    model.layers[number].call = recomputed(model.layers[number].call)\n{compiling()}",
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
        return compiled_like(model, model)

    yield Proposal(
        "freeze",
        "training",
        f"Train only {last}",
        Change(edits=(freeze,)),
        "Only for a model whose other layers are trained already (transfer learning).",
        "for number, layer in enumerate(model.layers):\n"
        f"    layer.trainable = number == {trained}  # {last}\n{compiling()}",
        2,
    )
    large = [part for part in weighted if part.can_adapt and part.parameters >= WORTH_CHANGING * blueprint.parameters]
    if not large:
        return
    names = [part.name for part in large]

    def adapt(model: keras.Model) -> keras.Model:
        for part in large:
            model.layers[part.number].enable_lora(8)
        return compiled_like(model, model)

    yield Proposal(
        "lora",
        "training",
        f"Low-rank adapters (LoRA, rank 8) for {', '.join(names[:3])}{' ...' if len(names) > 3 else ''}",
        Change(edits=(adapt,)),
        "The kernels are frozen and only adapters are trained: for fine-tuning weights that are trained already.",
        f"for number in {[part.number for part in large]}:  # {', '.join(names)}\n"
        f"    model.layers[number].enable_lora(8)\n{compiling()}",
        2,
    )
