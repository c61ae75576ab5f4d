"""Changes of a pipeline that may need less memory: each is made on the pipeline as read, and estimated anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tensorboard_plugin_memest.estimation.host.flow import INFINITE, Books, Flow
from tensorboard_plugin_memest.estimation.host.pipeline import Component, Constant, Op, rewrite, walk
from tensorboard_plugin_memest.estimation.host.rules import evaluate
from tensorboard_plugin_memest.memory.host import HostEstimate, HostLever
from tensorboard_plugin_memest.memory.units import format_bytes

_MAPS = ("Map", "ParallelMap")
_FEWER = 10  # A buffer of a tenth.
_GROUP = 1000  # Elements shuffled as one.
_FEW_CALLS = 2


@dataclass(frozen=True)
class Change:
    """A changed pipeline and what to say of it.

    Attributes:
        op: the end of the changed pipeline.
        rewritten: whether TensorFlow rewrites it; None: as before.
    """

    name: str
    op: Op
    cost: str
    code: str
    rewritten: bool | None = None


def levers(
    op: Op, now: HostEstimate, books: Books, estimate: Callable[[Op, Books], HostEstimate]
) -> tuple[HostLever, ...]:
    """Every change that can be made on the pipeline `op`, the most helpful first.

    Args:
        op: the pipeline.
        now: its estimate.
        books: those it was estimated with; they tell how to estimate.
        estimate: estimates a pipeline.
    """
    found = []
    for lever in _LEVERS:
        for change in lever(op, books):
            rewritten = books.rewritten if change.rewritten is None else change.rewritten
            then = estimate(change.op, _blank(books, rewritten))
            saving = now.peak_bytes - then.peak_bytes
            made = HostLever(change.name, then.peak_bytes, saving, change.cost, change.code)
            found.append(made if made.helps else replace(made, reason=_why_not(then)))
    return tuple(sorted(found, key=lambda lever: -lever.saving_bytes))


def _why_not(then: HostEstimate) -> str:
    largest = max(then.stages, key=lambda stage: stage.bytes)
    return f"What needs most then is {largest.name}, with {format_bytes(largest.bytes)}; this does not touch it."


def array_levers(now: HostEstimate) -> tuple[HostLever, ...]:
    """What to do instead of giving arrays to `fit`: what remains is the batches on their way."""
    then = sum(stage.bytes for stage in now.stages if stage.name == "fit: batches")
    saving = now.peak_bytes - then
    slices = (
        "class Slices(keras.utils.PyDataset):\n"
        "    def __len__(self): return len(x) // 32\n"
        "    def __getitem__(self, i): return x[32 * i : 32 * (i + 1)], y[32 * i : 32 * (i + 1)]\n"
        "model.fit(Slices())"
    )
    return (
        HostLever(
            "batches from a PyDataset that slices the arrays",
            then,
            saving,
            "batches are cut in Python, one after another; the arrays themselves stay in memory",
            slices,
        ),
        HostLever(
            "a tf.data pipeline from files",
            then,
            saving,
            "the data is written to files once, such as TFRecords; then not even the arrays need to be in memory",
            "model.fit(tf.data.TFRecordDataset(paths).map(parse, tf.data.AUTOTUNE).batch(32).prefetch(2))",
        ),
    )


def queue_levers(now: HostEstimate, workers: int) -> tuple[HostLever, ...]:
    """What to do about the batches that a `PyDataset` of so many workers has ready."""
    queue = next((stage for stage in now.stages if stage.name == "PyDataset: queue"), None)
    if queue is None or queue.elements is None or queue.elements <= workers:
        return ()
    saving = queue.bytes - queue.bytes * workers // queue.elements
    return (
        HostLever(
            "a queue of one batch for each worker",
            now.peak_bytes - saving,
            saving,
            "the training waits where batches come unevenly",
            f"super().__init__(workers={workers}, max_queue_size={workers})  # of the PyDataset",
        ),
    )


def _blank(books: Books, rewritten: bool) -> Books:
    return Books(books.cores, rewritten, books.unknown_elements)


def _flow(op: Op, books: Books) -> Flow:
    return evaluate(op, _blank(books, books.rewritten))


def _caches_in_memory(one: Op) -> bool:
    return one.kind == "Cache" and not one.values.get("filename")


def _file_cache(op: Op, books: Books) -> Iterator[Change]:
    def to_file(one: Op) -> Op | None:
        return replace(one, values={**one.values, "filename": "cache"}, key=0) if _caches_in_memory(one) else None

    changed = rewrite(op, to_file)
    if changed != op:
        yield Change(
            "cache in a file",
            changed,
            "every epoch reads from disk; the file is as large as the cache was",
            'dataset.cache("/path/of/a/file")',
        )


def _file_cache_and_small_buffer(op: Op, books: Books) -> Iterator[Change]:
    # Where the buffer holds what the cache held, neither change helps alone.
    for first in _file_cache(op, books):
        for second in _smaller_shuffle(first.op, books):
            yield Change(
                f"{first.name}, {second.name}",
                second.op,
                f"{first.cost}; {second.cost}",
                f"{first.code}, {second.code}",
            )


def _no_cache(op: Op, books: Books) -> Iterator[Change]:
    changed = rewrite(op, lambda one: one.inputs[0] if _caches_in_memory(one) else None)
    if changed != op:
        yield Change("no cache", changed, "leave .cache() out; every epoch computes the elements again", "")


def _smaller_shuffle(op: Op, books: Books) -> Iterator[Change]:
    sizes = [one.number("buffer_size") or 0 for one in walk(op) if one.kind == "Shuffle"]
    if not any(size == -1 or size > _FEWER for size in sizes):
        return

    def smaller(one: Op) -> Op | None:
        if one.kind != "Shuffle":
            return None
        size = one.number("buffer_size") or 0
        available = _flow(one.inputs[0], books).elements
        most = size if size > 0 else INFINITE
        if available is not None and available < INFINITE:
            most = min(most, available)
        return replace(one, values={**one.values, "buffer_size": max(1, most // _FEWER)}, key=0)

    yield Change(
        "a shuffle buffer of a tenth",
        rewrite(op, smaller),
        "elements are mixed only with those near them; shuffle the list of files as well",
        "dataset.shuffle(buffer_size // 10)",
    )


def _shuffle_before_map(op: Op, books: Books) -> Iterator[Change]:
    def moved(one: Op) -> Op | None:
        if one.kind != "Shuffle":
            return None
        between: list[Op] = []
        source = one.inputs[0]
        while source.kind in (*_MAPS, "Prefetch", "Filter") and len(source.inputs) == 1:
            between.append(source)
            source = source.inputs[0]
        if not any(step.kind in _MAPS for step in between):
            return None
        end = replace(one, inputs=(source,), components=source.components, key=0)
        for step in reversed(between):
            end = replace(step, inputs=(end,), key=0)
        return end

    changed = rewrite(op, moved)
    if changed != op:
        yield Change(
            "shuffle before map",
            changed,
            "none: the buffer holds what map is given, such as paths, instead of what it makes",
            "dataset.shuffle(n).map(decode)   # instead of dataset.map(decode).shuffle(n)",
        )


def _shuffle_before_batch(op: Op, books: Books) -> Iterator[Change]:
    def moved(one: Op) -> Op | None:
        if one.kind != "Shuffle" or one.inputs[0].kind not in ("Batch", "PaddedBatch"):
            return None
        batch = one.inputs[0]
        (source,) = batch.inputs
        return replace(batch, inputs=(replace(one, inputs=(source,), components=source.components, key=0),), key=0)

    changed = rewrite(op, moved)
    if changed != op:
        yield Change(
            "shuffle before batch",
            changed,
            "none: a buffer of as many elements as it had batches; examples are mixed instead of whole batches",
            "dataset.shuffle(n).batch(size)   # instead of dataset.batch(size).shuffle(n)",
        )


def _smaller_values(op: Op, books: Books) -> Iterator[Change]:
    def is_image(component: Component) -> bool:
        return component.dtype in ("float32", "float64") and component.shape is not None and len(component.shape) >= 3

    # From the maps that make images on, images are uint8; those that a source holds are what they are.
    makers = [one for one in walk(op) if one.kind in _MAPS and any(map(is_image, one.components))]
    if not any(one.body is not None and one.body.sees_bytes for one in makers):
        return

    def small(one: Op) -> Op | None:
        if one.kind not in (*_MAPS, "PaddedBatch"):
            return None
        return replace(
            one,
            components=tuple(replace(each, dtype="uint8") if is_image(each) else each for each in one.components),
            key=0,
        )

    yield Change(
        "images as uint8",
        rewrite(op, small),
        "the cast to float32 moves behind the batch or into the model; only for data that came as 8 bits",
        "tf.io.decode_image(data, dtype=tf.uint8) in map, keras.layers.Rescaling(1 / 255) in the model",
    )


def _groups(op: Op, books: Books) -> Iterator[Change]:
    def grouped(one: Op) -> Op | None:
        if one.kind != "Shuffle":
            return None
        before = _flow(one.inputs[0], books)
        data = sum(piece.data for piece in before.pieces)
        size = one.number("buffer_size") or 0
        if before.own_bytes < 2 * data or 0 < size < 2 * _GROUP:
            return None
        components = tuple(
            replace(each, shape=None if each.shape is None else (None, *each.shape)) for each in one.components
        )
        batch = Op("Batch", one.inputs, {"batch_size": _GROUP, "drop_remainder": False}, components)
        kept = -(-size // _GROUP) if size > 0 else size
        shuffle = replace(
            one, inputs=(batch,), values={**one.values, "buffer_size": kept}, components=components, key=0
        )
        return Op("Unbatch", (shuffle,), {}, one.components)

    changed = rewrite(op, grouped)
    if changed != op:
        yield Change(
            f"batch before shuffle, {_GROUP} elements in one",
            changed,
            f"{_GROUP} neighbours stay together; shuffle a little once more behind unbatch",
            f"dataset.batch({_GROUP}).shuffle(n // {_GROUP}).unbatch()",
        )


def _shuffle_numbers(op: Op, books: Books) -> Iterator[Change]:
    def numbered(one: Op) -> Op | None:
        if one.kind != "Shuffle" or one.inputs[0].kind != "TensorSlice" or not one.inputs[0].constants:
            return None
        source = one.inputs[0]
        rows = source.constants[0].rows
        numbers = Op("TensorSlice", (), {}, (Component("int64", ()),), (Constant("int64", 8 * rows, rows, -1),))
        return Op("Map", (numbers,), {}, source.components, source.constants)

    changed = rewrite(op, numbered)
    if changed != op:
        yield Change(
            "shuffle numbers instead of elements",
            changed,
            "the order is drawn when the dataset is made; make it anew for another order in each epoch",
            "numbers = tf.random.shuffle(tf.range(n)); "
            "tf.data.Dataset.from_tensor_slices(numbers).map(lambda i: tf.gather(x, i))",
        )


def _batch_before_map(op: Op, books: Books) -> Iterator[Change]:
    def swapped(one: Op) -> Op | None:
        if one.kind != "Batch" or one.inputs[0].kind not in _MAPS:
            return None
        step = one.inputs[0]
        if any(each.dataset is not None for each in step.components) or (step.body and step.body.reads_files):
            return None
        source = step.inputs[0]
        batched = tuple(
            replace(each, shape=None if each.shape is None else (None, *each.shape)) for each in source.components
        )
        return replace(
            step, inputs=(replace(one, inputs=(source,), components=batched, key=0),), components=one.components, key=0
        )

    changed = rewrite(op, swapped)
    if changed != op:
        yield Change(
            "batch before map",
            changed,
            "the function gets whole batches and must work on them; it is also faster",
            "dataset.batch(n).map(function)   # instead of dataset.map(function).batch(n)",
        )


def _fewer_calls(op: Op, books: Books) -> Iterator[Change]:
    def fewer(one: Op) -> Op | None:
        calls = one.number("num_parallel_calls")
        if calls is None or (calls == -1 and books.cores <= _FEW_CALLS) or 0 <= calls <= _FEW_CALLS:
            return None
        return replace(one, values={**one.values, "num_parallel_calls": _FEW_CALLS}, key=0)

    changed = rewrite(op, fewer)
    if changed != op:
        yield Change(
            f"{_FEW_CALLS} parallel calls",
            changed,
            "data may come more slowly than the training takes it",
            f"dataset.map(function, num_parallel_calls={_FEW_CALLS})",
        )


def _prefetch_one(op: Op, books: Books) -> Iterator[Change]:
    def one_ahead(one: Op) -> Op | None:
        if one.kind != "Prefetch" or one.number("buffer_size") in (0, 1):
            return None
        return replace(one, values={**one.values, "buffer_size": 1}, key=0)

    changed = rewrite(op, one_ahead)
    if changed != op:
        yield Change(
            "prefetch one element",
            changed,
            "the training waits where one element takes longer to make than a step lasts",
            "dataset.prefetch(1)",
        )


def _no_rewriting(op: Op, books: Books) -> Iterator[Change]:
    if books.rewritten and any(constant.bytes for one in walk(op) for constant in one.constants):
        yield Change(
            "no default optimizations",
            op,
            "ops are no longer fused or run side by side of tf.data's own accord",
            "options = tf.data.Options(); options.experimental_optimization.apply_default_optimizations = False; "
            "dataset = dataset.with_options(options)",
            rewritten=False,
        )


_LEVERS = (
    _file_cache,
    _file_cache_and_small_buffer,
    _no_cache,
    _shuffle_before_map,
    _shuffle_before_batch,
    _smaller_shuffle,
    _smaller_values,
    _groups,
    _shuffle_numbers,
    _batch_before_map,
    _fewer_calls,
    _prefetch_one,
    _no_rewriting,
)
