"""Realistic small things of the vocabulary, made by hand: what a test needs when it is not about making them.

The numbers are those of the example that started the project, Dense 128 on 1491x257x1 with Adam, so many are above
2**31; some are no multiples of 256, as an allocator's would be, so that no rounding on the way goes unnoticed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tensorboard_plugin_memest.memory.advice import Advice, Combination, Lever
from tensorboard_plugin_memest.memory.allocations import Allocations
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.estimate import Estimate, LayerInfo, Phase, Subject
from tensorboard_plugin_memest.memory.host import HostEstimate, HostLever, Stage
from tensorboard_plugin_memest.memory.item import Item
from tensorboard_plugin_memest.memory.measured import MeasuredPeaks, MeasuredProfile, Window
from tensorboard_plugin_memest.memory.timeline import Span, Timeline
from tensorboard_plugin_memest.memory.what_if import Choices, Outcome, WhatIf
from tensorboard_plugin_memest.memory.whose import Whose

KERNEL = (6019376, 128)
KERNEL_BYTES = 3081920512
DENSE = "sequential/dense"
CONV = "sequential/conv2d"
PIPELINE_BYTES = 1_000_000


def kernel_item(role: str, category: Category, name: str = "sequential/dense/kernel") -> Item:
    """One copy of the Dense kernel."""
    return Item(DENSE, name, category, role, "sequential/dense/kernel", KERNEL, "float32", KERNEL_BYTES, KERNEL_BYTES)


def resident_items(optimizer: str = "Adam") -> list[Item]:
    """The variables that stay between steps."""
    items = [
        kernel_item("weight", Category.WEIGHTS),
        Item(
            CONV,
            "sequential/conv2d/kernel",
            Category.WEIGHTS,
            "weight",
            "sequential/conv2d/kernel",
            (3, 3, 1, 16),
            "float32",
            576,
            768,
        ),
    ]
    if optimizer == "Adam":
        items += [
            kernel_item("momentum", Category.OPTIMIZER_SLOTS, "adam/dense_kernel_momentum"),
            kernel_item("velocity", Category.OPTIMIZER_SLOTS, "adam/dense_kernel_velocity"),
        ]
    return items


def step_items(optimizer: str = "Adam", batch_size: int = 1) -> list[Item]:
    """Everything alive at the peak of a step."""
    activation = 1489 * 255 * 16 * 4 * batch_size
    items = [
        *resident_items(optimizer),
        kernel_item("gradient", Category.GRADIENTS, "gradient_tape/sequential/dense/MatMul_1"),
        Item(
            CONV,
            "sequential/conv2d/Relu",
            Category.ACTIVATIONS,
            "Relu output",
            None,
            (batch_size, 1489, 255, 16),
            "float32",
            activation,
            activation + 64,
        ),
        Item(CONV, "sequential/conv2d/Conv2D", Category.WORKSPACE, "Conv2D scratch", None, None, None, 999999, 1000003),
        Item(
            "(input)",
            "x",
            Category.INPUTS,
            "batch",
            None,
            (batch_size, 1491, 257, 1),
            "float32",
            1532748 * batch_size,
            1532928 * batch_size,
        ),
        Item("(step)", "Const_4", Category.CONSTANTS, "Const output", None, (), "int64", 8, 256),
    ]
    if optimizer == "Adam":
        items += [
            kernel_item("update temporary", Category.TEMPORARIES, "adam/Square_4"),
            kernel_item("update temporary", Category.TEMPORARIES, "adam/Mul_9"),
        ]
    return sorted(items, key=lambda item: -item.bytes)


def phase(name: str, items: Sequence[Item], resident: Sequence[Item] = (), spread: int = 4096) -> Phase:
    """A phase that allocates `items` one after the other on top of `resident` (which is among them), and frees them."""
    rest = [item for item in items if item not in resident]
    level = sum(item.bytes for item in resident)
    levels, ops, op_index = [level], ["start"], [0]
    for item in rest:
        level += item.bytes
        levels.append(level)
        ops.append(item.name)
        op_index.append(len(ops) - 1)
    for position, item in reversed(list(enumerate(rest, 1))):
        level -= item.bytes
        levels.append(level)
        op_index.append(position)
    peak = sum(item.bytes for item in items)
    buffers = [(item, 0, len(levels)) for item in resident]
    buffers += [(item, position, len(levels) - position) for position, item in enumerate(rest, 1)]
    middle = len(levels) // 2
    return Phase(
        name=name,
        peak_bytes=peak,
        requested_peak_bytes=sum(item.requested_bytes for item in items),
        peak_without_scratch_bytes=sum(i.bytes for i in items if i.category is not Category.WORKSPACE),
        peak_range=(peak - spread, peak + spread),
        peak_op=ops[-1],
        live_at_peak=tuple(items),
        timeline=Timeline(
            unit="op",
            ticks=list(range(len(levels))),
            live_bytes=levels,
            op_index=op_index,
            ops=ops,
            spans=[Span("forward", 0, middle), Span("backward", middle, len(levels) - 1)],
        ),
        owners={item.name: Whose(item.layer, item.category, item.role, item.variable) for item in rest[:1]},
        allocations=Allocations.of(buffers),
    )


def sample_estimate(
    *, model_name: str = "sequential", optimizer: str = "Adam", batch_size: int = 1, limit_bytes: int | None = None
) -> Estimate:
    """An estimate with all three phases, layers with and without bytes, and parts of the step that are no layer."""
    resident = resident_items(optimizer)
    step = step_items(optimizer, batch_size)
    build = [
        kernel_item("weight", Category.WEIGHTS),
        kernel_item("initializer temporary", Category.TEMPORARIES, "uniform/Mul"),
        kernel_item("initializer temporary", Category.TEMPORARIES, "uniform/AddV2"),
    ]
    return Estimate(
        subject=Subject(
            model_name=model_name,
            model_class="Sequential",
            parameters=770482865,
            trainable_parameters=770482865,
            optimizer=optimizer,
            batch_size=batch_size,
            mode="graph",
            device="CPU",
            pool="growth",
            versions={"memest": "0.1.0", "tensorflow": "2.21.0", "keras": "3.15.1"},
        ),
        resident_bytes=sum(item.bytes for item in resident),
        phases={
            "build": phase("build", build),
            "first_step": phase("first_step", step, resident),
            "step": phase("step", step, resident),
        },
        layer_infos=(
            LayerInfo(CONV, "Conv2D", (batch_size, 1489, 255, 16), 160),
            LayerInfo("sequential/flatten", "Flatten", (batch_size, 6019376), 0),
            LayerInfo(DENSE, "Dense", (batch_size, 128), 770480256),
        ),
        assumptions=("Every step sees a full batch.", "The loss is BinaryCrossentropy, as compiled."),
        limit_bytes=limit_bytes,
    )


def sample_advice() -> Advice:
    """Advice with a lever that helps, one that does not, and a set of one."""
    helps = Lever(
        name="sgd",
        title="Optimizer SGD",
        peak_bytes=6_384_800_000,
        needs_bytes=9_245_760_001,
        saving_bytes=12_107_541_248,
        saving_by_category={Category.OPTIMIZER_SLOTS: 6_163_841_024, Category.TEMPORARIES: 5_943_700_224},
        fits=True,
        cost="The learning rate has to be tuned.",
        code="optimizer = keras.optimizers.SGD(learning_rate=0.01)",
    )
    does_not = replace(helps, name="mixed_float16", saving_bytes=-7, saving_by_category={}, reason="ß: stays float32")
    return Advice(
        limit_bytes=9_975_061_544,
        peak_bytes=18_492_341_248,
        needs_bytes=18_492_341_248,
        fits=False,
        levers=(helps,),
        useless=(does_not,),
        combination=Combination(("sgd",), helps.peak_bytes, helps.needs_bytes),
        batch_curve=((1, 18_492_341_248),),
        max_batch_size=0,
        notes=("XLA could not be tried.",),
    )


def sample_what_if() -> WhatIf:
    """The sample's training with two batch sizes, two optimizers and two modes; one combination is left out."""

    def outcome(batch_size: int, optimizer: str, mode: str, peak: int, high: int | None = None) -> Outcome:
        return Outcome(
            choices=Choices(batch_size, optimizer, "float32", mode),
            peak_bytes=peak,
            phases={"build": (9_245_760_001, (9_245_760_001,) * 2), "step": (peak, (peak, high or peak))},
            categories={Category.WEIGHTS: 3_081_920_512, Category.ACTIVATIONS: peak - 3_081_920_512},
        )

    return WhatIf(
        base=Choices(1, "Adam", "float32", "graph"),
        batch_sizes=(1, 2),
        optimizers=("Adam", "SGD"),
        precisions=("float32",),
        modes=("graph", "xla"),
        outcomes=(
            outcome(1, "Adam", "graph", 18_492_341_248),
            outcome(2, "Adam", "graph", 18_592_341_249),
            outcome(1, "SGD", "graph", 6_384_800_000, 9_300_000_000),
            outcome(1, "Adam", "xla", 15_504_000_003),
            outcome(2, "SGD", "graph", 6_484_800_001, 9_400_000_000),
        ),
        notes=("3 of 8 combinations were left out, after 60 seconds.",),
    )


def sample_peaks(device: str = "CPU:0", *, steps: int = 5, peak_bytes: int = 18_400_000_001) -> MeasuredPeaks:
    """Peaks of `steps` steps, one window each; the highest, `peak_bytes`, is in the middle.

    Before step n, `PIPELINE_BYTES` + n are in use beyond the variables of `sample_estimate`, and after it 3 more.
    """
    middle = steps // 2
    started = [3 * KERNEL_BYTES + 768 + PIPELINE_BYTES + step for step in range(steps)]
    peaks = [peak_bytes - 7 * abs(step - middle) for step in range(steps)]
    return MeasuredPeaks(
        device=device,
        source="TensorFlow's BFC allocator",
        before_bytes=9_246_000_129,
        limit_bytes=25_769_803_776,
        windows=tuple(
            Window(step, step, peak, start + 3, start, peak - start - 3)
            for step, (peak, start) in enumerate(zip(peaks, started, strict=True))
        ),
    )


def sample_profile(*, started_at: str = "2026_01_01_00_00_00", events: int = 40, host: str = "host") -> MeasuredProfile:
    """A profile of two training steps; each takes `events // 2` events up and down again, over 9 GB held before."""
    before = (
        kernel_item("weight", Category.WEIGHTS),
        kernel_item("momentum", Category.OPTIMIZER_SLOTS, "adam/dense_kernel_momentum"),
        kernel_item("velocity", Category.OPTIMIZER_SLOTS, "adam/dense_kernel_velocity"),
        Item("(step)", "", Category.UNATTRIBUTED, "allocated before the profile", None, None, None, 1537, 1537),
    )
    held = sum(item.bytes for item in before)
    half = events // 2
    quarter = half // 2
    levels = [held + 100_000_007 * (min(n % half, half - n % half)) for n in range(events)]
    top = Item(DENSE, "MatMul", Category.TEMPORARIES, "MatMul output", None, None, "float32", 5, 100_000_007 * quarter)
    return MeasuredProfile(
        allocator="cpu_bfc",
        host=host,
        started_at=started_at,
        steps=(Span("step 3", 0, half * 1000), Span("step 4", half * 1000, events * 1000)),
        before_bytes=held,
        before=before,
        timeline=Timeline(
            unit="ns",
            ticks=[n * 1000 + 1 for n in range(events)],
            live_bytes=levels,
            op_index=[n % 3 for n in range(events)],
            ops=["MatMul", "adam/Square_4", "adam/Mul_9"],
        ),
        live_at_peak=(*before[:3], top, before[3]),
    )


def sample_host() -> HostEstimate:
    """The founding example's pipeline: 810 spectrograms, cached and shuffled."""
    each = 1491 * 257 * 4
    return HostEstimate(
        stages=(
            Stage("cache", 810 * each, 810, each + 72, "Every element stays in memory from the first epoch on."),
            Stage("shuffle", 810 * 24, 810, each + 72, "The buffer holds 810 elements. Their tensors are the cache's."),
            Stage("in use", 2 * each + 1, None, each, "The element in use and the next."),
        ),
        startup_bytes=820 * each,
        slack_bytes=5 * each,
        levers=(
            HostLever("images as uint8", 203 * each, 609 * each + 19441, "a cast more", "tf.cast(image, tf.uint8)"),
            HostLever(
                "cache in a file", 812 * each + 19441, 0, "reads from disk", 'dataset.cache("file")', "It is shared."
            ),
        ),
        assumptions=("AUTOTUNE is taken to prefetch 2 elements.",),
        versions={"tensorflow": "2.21.0"},
    )
