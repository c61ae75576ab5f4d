"""Arbitrary things of the vocabulary, for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from tensorboard_plugin_memest.memory.allocations import Allocations
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.estimate import Estimate, LayerInfo, Phase, Subject
from tensorboard_plugin_memest.memory.item import Item
from tensorboard_plugin_memest.memory.measured import MeasuredPeaks, MeasuredProfile, Window
from tensorboard_plugin_memest.memory.timeline import Span, Timeline

sizes = st.integers(0, 2**53 - 1)
names = st.text(max_size=20)
shapes = st.lists(st.integers(0, 2**31), max_size=4).map(tuple)

items = st.builds(
    Item,
    layer=names,
    name=names,
    category=st.sampled_from(Category),
    role=names,
    variable=st.none() | names,
    shape=st.none() | shapes,
    dtype=st.none() | names,
    requested_bytes=sizes,
    bytes=sizes,
)
allocations = st.lists(st.tuples(items, st.integers(0, 9), st.integers(0, 9)), max_size=4).map(Allocations.of)
item_tuples = st.lists(items, max_size=4).map(tuple)
spans = st.builds(Span, name=names, start=sizes, end=sizes)


@st.composite
def timelines(draw: st.DrawFn, max_size: int = 30) -> Timeline:
    """A timeline with rising ticks; any levels."""
    levels = draw(st.lists(sizes, max_size=max_size))
    ticks = sorted(draw(st.lists(sizes, min_size=len(levels), max_size=len(levels))))
    ops = draw(st.lists(names, min_size=1, max_size=4))
    used = st.integers(0, len(ops) - 1)
    return Timeline(
        unit=draw(st.sampled_from(["op", "ns"])),
        ticks=ticks,
        live_bytes=levels,
        op_index=draw(st.lists(used, min_size=len(levels), max_size=len(levels))),
        ops=ops,
        spans=draw(st.lists(spans, max_size=2)),
    )


def phases(name: str) -> st.SearchStrategy[Phase]:
    """A phase of that name."""
    return st.builds(
        Phase,
        name=st.just(name),
        peak_bytes=sizes,
        requested_peak_bytes=sizes,
        peak_without_scratch_bytes=sizes,
        peak_range=st.tuples(sizes, sizes),
        peak_op=names,
        live_at_peak=item_tuples,
        timeline=timelines(),
        pool_bytes=st.none() | sizes,
        allocations=st.none() | allocations,
    )


layer_infos = st.builds(
    LayerInfo,
    path=names,
    class_name=names,
    output_shape=st.none() | st.lists(st.none() | st.integers(0, 2**31), max_size=4).map(tuple),
    parameters=sizes,
)
subjects = st.builds(
    Subject,
    model_name=names,
    model_class=names,
    parameters=sizes,
    trainable_parameters=sizes,
    optimizer=st.none() | names,
    batch_size=st.integers(1, 2**31),
    mode=names,
    device=names,
    pool=names,
    versions=st.dictionaries(names, names, max_size=3),
)
estimates = st.builds(
    Estimate,
    subject=subjects,
    resident_bytes=sizes,
    phases=st.fixed_dictionaries(
        {"build": phases("build"), "first_step": phases("first_step"), "step": phases("step")}
    ),
    layer_infos=st.lists(layer_infos, max_size=3).map(tuple),
    assumptions=st.lists(names, max_size=3).map(tuple),
    limit_bytes=st.none() | sizes,
)
windows = st.builds(
    Window,
    first_step=sizes,
    last_step=sizes,
    peak_bytes=sizes,
    current_bytes=sizes,
    start_bytes=sizes,
    rise_bytes=sizes,
)
measured_peaks = st.builds(
    MeasuredPeaks,
    device=names,
    source=names,
    before_bytes=st.none() | sizes,
    limit_bytes=st.none() | sizes,
    windows=st.lists(windows, max_size=4).map(tuple),
    epochs=st.lists(st.tuples(sizes, sizes), max_size=3).map(tuple),
)
measured_profiles = st.builds(
    MeasuredProfile,
    allocator=names,
    host=names,
    started_at=names,
    steps=st.lists(spans, max_size=3).map(tuple),
    before_bytes=sizes,
    before=item_tuples,
    timeline=timelines(),
    live_at_peak=item_tuples,
)
