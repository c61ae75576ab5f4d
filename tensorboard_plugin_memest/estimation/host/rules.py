"""What each op of tf.data keeps in memory: one small rule an op, after its kernel in `tensorflow/core/kernels/data`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from tensorboard_plugin_memest.estimation.host import files
from tensorboard_plugin_memest.estimation.host.flow import INFINITE, Books, Flow, Piece, data_bytes, fresh
from tensorboard_plugin_memest.estimation.host.pipeline import Op
from tensorboard_plugin_memest.estimation.host.sizes import ALIGNMENT, shared_tensor_bytes, tensor_bytes, vector_bytes
from tensorboard_plugin_memest.memory.units import format_bytes

AUTOTUNE = -1
# `buffer_size` of prefetch under AUTOTUNE: it starts at one element, and grows where the consumer finds it empty.
AUTOTUNED_PREFETCH = 2
# A shuffle fused with repeat fills its buffer from at most so many epochs (`kMaxEpochsInBuffer`).
_EPOCHS_IN_BUFFER = 3
# Elements leave a shuffle buffer in any order. The holes of those that left are a little too small for others of their
# size, since aligning takes more room while it is done. glibc 2.36 held up to 0.83 of a buffer so, with one arena.
_HOLES = 0.8
_GROUP = 32  # What a group of unknown size is taken for.
_DEFAULT_READER_BUFFER = 256 * 1024

Rule = Callable[[Op, Sequence[Flow], Books], Flow]


def evaluate(op: Op, books: Books, argument: Flow | None = None) -> Flow:
    """What flows out of `op`; everything that it and the ops before it keep is entered into `books`.

    Args:
        op: the end of the pipeline.
        books: where stages and assumptions go.
        argument: what flows out of the dataset that a function got as its argument, where `op` is inside one.
    """
    if op.key and op.key in books.counted:
        # The same dataset twice has two iterators, but one set of constants and one cache.
        shared = books.counted[op.key]
        if op.kind in ("TensorSlice", "Tensor", "Cache"):
            return shared
    if op.kind == "Repeat" and op.inputs and op.inputs[0].kind == "Shuffle" and books.rewritten:
        # The default optimizations make one op of the two.
        shuffle, count = op.inputs[0], op.number("count")
        before = [evaluate(one, books, argument) for one in shuffle.inputs]
        epochs = _EPOCHS_IN_BUFFER if count is None or count < 0 else count
        return _repeat(op, [_shuffle(shuffle, before, books, epochs)], books)
    # The first input of a DirectedInterleave only says which of the others is next.
    inputs = op.inputs[1:] if op.kind == "DirectedInterleave" else op.inputs
    given = [evaluate(before, books, argument) for before in inputs]
    if not given and argument is not None and op.kind not in _SOURCES:
        given = [argument]
    flow = _RULES.get(op.kind, _other)(op, given, books)
    if op.key:
        books.counted[op.key] = flow
    return flow


def hold_constants(op: Op, books: Books, name: str, what: str) -> int:
    """Enters the tensors that `op` holds, those not entered yet, and gives their bytes."""
    new = [constant for constant in op.constants if constant.key not in books.constants]
    books.constants.update(constant.key for constant in new)
    data = sum(constant.bytes for constant in new)
    if data == 0:
        return 0
    held = 2 * data if books.rewritten else data
    reason = f"{what} {format_bytes(data)}"
    if books.rewritten:
        reason += (
            ", and once more from the first iteration on: the default optimizations write the pipeline down as a "
            "graph, its constants too"
        )
    books.enter(name, held, None, Flow(None, (), 0), reason + ".")
    return held


def _tensor_slice(op: Op, given: Sequence[Flow], books: Books) -> Flow:
    hold_constants(op, books, "from_tensor_slices", "The pipeline's own copy of the data:")
    pieces = []
    for component, constant in zip(op.components, op.constants, strict=False):
        size = (
            constant.bytes // max(constant.rows, 1) if constant.bytes else data_bytes(component, None, "a slice", books)
        )
        # A slice that begins at a multiple of 64 bytes refers to the data; any other is copied.
        shared = math.gcd(size, ALIGNMENT) / ALIGNMENT if size and component.dtype != "string" else 0
        own = round(shared * shared_tensor_bytes() + (1 - shared) * tensor_bytes(size))
        pieces.append(Piece(size, own))
    elements = op.constants[0].rows if op.constants else None
    flow = Flow(elements, tuple(pieces), 0)
    return replace(flow, making=flow.own_bytes)


def _tensor(op: Op, given: Sequence[Flow], books: Books) -> Flow:
    hold_constants(op, books, "from_tensors", "The pipeline's own copy of the data:")
    sizes = [constant.bytes for constant in op.constants]
    for component, constant in zip(op.components, op.constants, strict=False):
        if not constant.bytes:
            sizes[op.constants.index(constant)] = data_bytes(component, None, "from_tensors", books)
    return Flow(1, tuple(Piece(size, 0) for size in sizes), vector_bytes(len(sizes)))


def _range(op: Op, given: Sequence[Flow], books: Books) -> Flow:
    start, stop, step = (op.number(name) for name in ("start", "stop", "step"))
    known = start is not None and stop is not None and step
    elements = max(0, -(-(stop - start) // step)) if known else None  # type: ignore[operator]
    return _made(op, min(elements, INFINITE) if elements is not None else None, None, "range", books)


def _endless(op: Op, given: Sequence[Flow], books: Books) -> Flow:
    return _made(op, INFINITE, None, "random numbers", books)


def _generator(op: Op, given: Sequence[Flow], books: Books) -> Flow:
    flow = _made(op, None, None, "from_generator", books)
    data = sum(piece.data for piece in flow.pieces)
    books.note("What the Python generator itself keeps is not known, and not counted.")
    # The NumPy array that the generator yields is copied into the tensor.
    return replace(flow, making=flow.own_bytes + data)


def _records(op: Op, given: Sequence[Flow], books: Books) -> Flow:
    paths = [text for constant in op.constants for text in constant.texts]
    buffer = op.number("buffer_size")
    buffer = _DEFAULT_READER_BUFFER if buffer is None or buffer < 0 else buffer
    found = files.records(op.kind, paths, op.number("record_bytes"), str(op.values.get("compression_type", "")))
    name = {"TFRecord": "TFRecordDataset", "TextLine": "TextLineDataset"}.get(op.kind, "FixedLengthRecordDataset")
    if found is None:
        books.note(f"How many records {name} reads and how long they are is not known from here.")
        elements, size = None, data_bytes(op.components[0], None, name, books) if op.components else 0
    else:
        elements, size = found.count, found.bytes_each
        if found.assumption:
            books.note(found.assumption)
    flow = Flow(elements, fresh([size + 24 if size > 22 else 24]), 0)
    books.enter(name, buffer, None, flow, f"The buffer it reads a file through: {format_bytes(buffer)}.")
    return replace(flow, making=flow.own_bytes)


def _map(op: Op, given: Sequence[Flow], books: Books) -> Flow:
    before = given[0] if given else Flow(None, (), 0)
    hold_constants(op, books, "map", "What its function refers to:")
    passes = op.body.passes if op.body else ()
    pieces = []
    for number, component in enumerate(op.components):
        source = passes[number] if number < len(passes) else None
        if source is not None and source < len(before.pieces):
            pieces.append(before.pieces[source])
        elif component.dataset is not None:
            pieces.append(Piece(0, 0))
        else:
            pieces += fresh([data_bytes(component, before.rows, "map", books)])
    rows = before.rows if any(one.shape and one.shape[0] in (None, before.rows) for one in op.components) else None
    flow = Flow(before.elements, tuple(pieces), 0, rows, before.inner)
    within = op.body.largest_inside if op.body else 0
    flow = replace(flow, making=max(before.making, before.own_bytes + within + flow.own_bytes))
    calls = op.number("num_parallel_calls")
    if op.kind == "Map" or calls is None:
        return flow
    return _side_by_side(flow, books, "map", calls, before, within)


def _side_by_side(flow: Flow, books: Books, name: str, calls: int, before: Flow, within: int = 0) -> Flow:
    """An op that makes several elements at once and keeps finished ones until they are asked for."""
    if calls == AUTOTUNE:
        books.note(f"AUTOTUNE is taken to run {books.cores} calls of {name} side by side, one a core.")
        calls = books.cores
    reason = f"{calls} calls side by side, each with an element in the making or waiting to be taken."
    # Of the calls as many work at a time as there are cores; the results of the others wait.
    held = calls * flow.own_bytes + min(calls, books.cores) * within
    books.enter(f"{name}, parallel", held, calls, flow, reason)
    return replace(flow, making=flow.own_bytes + before.making)


def _cache(op: Op, given: Sequence[Flow], books: Books) -> Flow:
    before = given[0]
    if op.values.get("filename"):
        size = before.element_bytes
        books.enter("cache", 0, None, before, f"It is kept in files ({op.values['filename']}), not in memory.")
        return replace(before, pieces=fresh([piece.data for piece in before.pieces]), making=before.making + size)
    elements = books.count(before, "cache")
    held = elements * before.own_bytes
    after = replace(before, pieces=tuple(Piece(piece.data, 0) for piece in before.pieces))
    reason = "Every element stays in memory from the first epoch on."
    if not any(piece.own for piece in before.pieces):
        reason = "It keeps every element, whose tensors are in memory anyway."
    books.enter("cache", held, elements, before, reason)
    return replace(after, making=max(before.making, after.own_bytes))


def _shuffle(op: Op, given: Sequence[Flow], books: Books, epochs: int = 1) -> Flow:
    before = given[0]
    asked = op.number("buffer_size")
    if asked is None or asked < 0:
        asked = INFINITE
    available = before.elements
    if available is not None and available < INFINITE:
        available *= min(epochs, _EPOCHS_IN_BUFFER)
    if asked == INFINITE and (available is None or available == INFINITE):
        available = books.count(before, "shuffle")
    kept = asked if available is None else min(asked, available)
    if available is None:
        books.note(f"The input of shuffle is of unknown length; its buffer is taken to fill up to {kept:,} elements.")
    shared = not any(piece.own for piece in before.pieces)
    reason = f"The buffer holds {kept:,} elements"
    if kept < asked < INFINITE:
        reason += f", not the {asked:,} asked for: there are no more"
    if epochs > 1 and available is not None and before.elements and kept > before.elements:
        reason += f" of {before.elements:,}, since shuffle and repeat in one keep up to {_EPOCHS_IN_BUFFER} epochs"
    if shared:
        reason += ". Their tensors are those that a stage before it keeps anyway, so they cost next to nothing here"
    elif before.own_bytes > 2 * sum(piece.data for piece in before.pieces):
        data = sum(piece.data for piece in before.pieces)
        reason += f". Each is {data} bytes of data and {before.own_bytes - data} of what tensors cost"
    books.enter("shuffle", kept * before.own_bytes, kept, before, reason + ".")
    if not shared and (available is None or available > kept):
        books.slack += round(_HOLES * kept * before.own_bytes)
    return before


def _batch(op: Op, given: Sequence[Flow], books: Books) -> Flow:
    before = given[0]
    size = op.number("batch_size")
    if size is None:
        books.note("A batch size that is not a constant is taken for 32.")
        size = 32
    if before.elements is not None:
        size = min(size, max(before.elements, 1))
    sizes = []
    for number, piece in enumerate(before.pieces):
        component = op.components[number] if number < len(op.components) else None
        shape = component.shape if component is not None else None
        padded = op.kind == "PaddedBatch" and shape and None not in shape[1:]
        if padded and shape and component is not None and component.dtype != "string":
            sizes.append(data_bytes(replace(component, shape=(size, *shape[1:])), None, "padded_batch", books))
        else:
            sizes.append(size * piece.data)
    if op.kind == "PaddedBatch" and any(one.shape and None in one.shape[1:] for one in op.components):
        books.note("padded_batch pads to the longest element of each batch; it is taken for as long as all others.")
    rest = op.values.get("drop_remainder") is True
    elements = before.elements
    if elements is not None and elements < INFINITE:
        elements = elements // size if rest else -(-elements // size)
    flow = Flow(elements, fresh(sizes), 0, size)
    gathered = size * before.own_bytes
    flow = replace(flow, making=max(gathered - before.own_bytes + before.making, gathered + flow.own_bytes))
    calls = op.number("num_parallel_calls")
    if op.kind == "ParallelBatch" and calls is not None:
        return _side_by_side(flow, books, "batch", calls, before)
    return flow


def _map_and_batch(op: Op, given: Sequence[Flow], books: Books) -> Flow:
    before = given[0]
    size = op.number("batch_size") or 32
    elements = before.elements
    if elements is not None and elements < INFINITE:
        elements = -(-elements // size)
    sizes = [data_bytes(one, size, "map_and_batch", books) for one in op.components]
    flow = Flow(elements, fresh(sizes), before.making, size)
    calls = op.number("num_parallel_calls") or AUTOTUNE
    # The calls write straight into the batch they are for.
    batches = math.ceil(books.cores if calls == AUTOTUNE else calls / size)
    return _side_by_side(flow, books, "map_and_batch", batches, before)


def _group(op: Op, given: Sequence[Flow], books: Books) -> Flow:
    """group_by_window and bucket_by_sequence_length: elements wait until their group is full."""
    before = given[0]
    rows = _GROUP
    books.note(f"Each group of group_by_window is taken for {rows} elements, and one group at a time to be incomplete.")
    held = rows * before.own_bytes
    books.enter("group_by_window", held, rows, before, "Elements wait until their group is full.")
    elements = before.elements
    if elements is not None and elements < INFINITE:
        elements = -(-elements // rows)
    flow = Flow(elements, fresh([rows * piece.data for piece in before.pieces]), 0, rows)
    return replace(flow, making=flow.own_bytes)


def _load(op: Op, given: Sequence[Flow], books: Books) -> Flow:
    return _made(op, op.number("cardinality"), None, "load", books)


def _prefetch(op: Op, given: Sequence[Flow], books: Books) -> Flow:
    before = given[0]
    asked = op.number("buffer_size")
    kept = AUTOTUNED_PREFETCH if asked is None or asked == AUTOTUNE else asked
    if kept == 0:
        return before
    if asked == AUTOTUNE:
        books.note(
            f"AUTOTUNE is taken to prefetch {AUTOTUNED_PREFETCH} elements; where the training waits for data it takes "
            "more, within half of the memory that is free (tf.data.Options().autotune.ram_budget)."
        )
    if before.elements is not None:
        kept = min(kept, before.elements)
    shared = not any(piece.own for piece in before.pieces)
    # The thread that fills the buffer waits for room before it makes the next element.
    held = max(kept * before.own_bytes, max(kept - 1, 0) * before.own_bytes + before.making)
    reason = f"{_counted(kept)} here for the training to take"
    reason += ", the last of them in the making." if kept > 1 and before.making > before.own_bytes else "."
    if shared:
        reason = f"{_counted(kept)} here; what they are made of is kept by a stage before it anyway."
    books.enter("prefetch", held, kept, before, reason)
    # What is handed on was made before, and is counted here.
    return replace(before, making=0)


def _counted(elements: int) -> str:
    return "1 element waits" if elements == 1 else f"{elements:,} elements wait"


def _interleave(op: Op, given: Sequence[Flow], books: Books) -> Flow:
    before = given[0] if given else Flow(None, (), 0)
    hold_constants(op, books, op.kind.lower(), "What its function refers to:")
    name = "flat_map" if op.kind == "FlatMap" else "interleave"
    calls = op.number("num_parallel_calls")
    if op.kind == "ParallelInterleave" and calls is None:
        calls = op.number("cycle_length")
    cycle = 1 if op.kind == "FlatMap" else op.number("cycle_length")
    if cycle is None or cycle < 1:
        cycle = calls if calls and calls > 0 else math.ceil(books.cores / 3) if calls else books.cores
    open_at_once = cycle
    waiting = 0
    if op.kind == "ParallelInterleave":
        ahead = op.number("prefetch_input_elements")
        each = op.number("buffer_output_elements")
        block = op.number("block_length") or 1
        open_at_once += 2 * cycle if ahead is None or ahead < 0 else ahead
        waiting = 2 * block + 1 if each is None or each < 0 else each
    if before.elements is not None:
        open_at_once = min(open_at_once, before.elements)
    inside = Books(books.cores, books.rewritten, books.unknown_elements, notes=books.notes, constants=books.constants)
    if op.body and op.body.dataset is not None:
        inner = evaluate(_with_paths(op), inside, before.inner)
    else:
        inner = Flow(None, fresh([data_bytes(one, None, name, books) for one in op.components]), 0)
    for stage in inside.stages:
        reason = (
            f"{stage.reason[:-1]}, in each of {open_at_once:,} datasets open at once."
            if open_at_once > 1
            else stage.reason
        )
        books.stages.append(
            replace(stage, name=f"{name}: {stage.name}", bytes=open_at_once * stage.bytes, reason=reason)
        )
    elements = None
    if before.elements is not None and inner.elements is not None:
        elements = min(INFINITE, before.elements * inner.elements)
    flow = Flow(elements, inner.pieces, before.making + inner.making, inner.rows, inner.inner)
    if waiting:
        kept = open_at_once * (waiting if inner.elements is None else min(waiting, inner.elements))
        ahead = open_at_once - cycle
        reason = f"{cycle} datasets in turn and {ahead} opened ahead, each with up to {waiting} elements waiting."
        books.enter(f"{name}, parallel", kept * flow.own_bytes, kept, flow, reason)
    return flow


def _with_paths(op: Op) -> Op:
    """The dataset that `op`'s function makes, readers in it given one of the paths that flow into `op`."""
    assert op.body is not None
    assert op.body.dataset is not None
    source = next((constant for before in op.inputs for constant in _texts(before)), None)

    def fill(inner: Op) -> Op:
        changed = replace(inner, inputs=tuple(fill(one) for one in inner.inputs))
        if changed.body and changed.body.dataset is not None:
            changed = replace(changed, body=replace(changed.body, dataset=fill(changed.body.dataset)))
        if source is not None and inner.kind in _READERS and not any(one.texts for one in inner.constants):
            middle = sorted(source, key=files.size_of)[len(source) // 2]
            changed = replace(changed, constants=tuple(replace(one, texts=(middle,)) for one in inner.constants))
        return changed

    return fill(op.body.dataset)


def _texts(op: Op) -> list[tuple[str, ...]]:
    found = [constant.texts for constant in op.constants if constant.texts]
    return found + [texts for before in op.inputs for texts in _texts(before)]


def _window(op: Op, given: Sequence[Flow], books: Books) -> Flow:
    before = given[0]
    size = op.number("size") or 1
    shift = op.number("shift") or size
    stride = op.number("stride") or 1
    if before.elements is not None:
        size = min(size, max(before.elements, 1))
    kept = max(size * stride, 1)
    elements = before.elements
    if elements is not None and elements < INFINITE:
        whole = max(0, (elements - (size - 1) * stride - 1) // shift + 1)
        elements = whole if op.values.get("drop_remainder") is True else -(-elements // shift)
    books.enter(
        "window", kept * before.own_bytes, kept, before, f"A window keeps its {size:,} elements until they are used."
    )
    inner = replace(before, elements=size, pieces=tuple(Piece(one.data, 0) for one in before.pieces), making=0)
    pieces = tuple(Piece(0, 0) for _ in before.pieces)
    return Flow(elements, pieces, before.making, None, inner)


def _repeat(op: Op, given: Sequence[Flow], books: Books) -> Flow:
    before = given[0]
    count = op.number("count")
    if count is None or count < 0:
        return replace(before, elements=INFINITE)
    return replace(before, elements=None if before.elements is None else min(INFINITE, before.elements * count))


def _take(op: Op, given: Sequence[Flow], books: Books) -> Flow:
    count = op.number("count")
    if count is None or count < 0:
        return given[0]
    return replace(given[0], elements=count if given[0].elements is None else min(count, given[0].elements))


def _skip(op: Op, given: Sequence[Flow], books: Books) -> Flow:
    before, count = given[0], op.number("count") or 0
    known = before.elements is not None and before.elements < INFINITE
    return replace(before, elements=max(0, before.elements - count)) if known else before  # type: ignore[operator]


def _shard(op: Op, given: Sequence[Flow], books: Books) -> Flow:
    before, shards = given[0], op.number("num_shards") or 1
    known = before.elements is not None and before.elements < INFINITE
    return replace(before, elements=-(-before.elements // shards)) if known else before  # type: ignore[operator]


def _cardinality(op: Op, given: Sequence[Flow], books: Books) -> Flow:
    told = op.number("cardinality")
    return given[0] if told is None else replace(given[0], elements=INFINITE if told < 0 else told)


def _zip(op: Op, given: Sequence[Flow], books: Books) -> Flow:
    lengths = [flow.elements for flow in given if flow.elements is not None]
    rows = next((flow.rows for flow in given if flow.rows is not None), None)
    pieces = tuple(piece for flow in given for piece in flow.pieces)
    return Flow(min(lengths) if lengths else None, pieces, sum(flow.making for flow in given), rows)


def _concatenate(op: Op, given: Sequence[Flow], books: Books) -> Flow:
    lengths = [flow.elements for flow in given]
    total = None if None in lengths else min(INFINITE, sum(length for length in lengths if length is not None))
    largest = max(given, key=lambda flow: flow.own_bytes)
    return replace(largest, elements=total, making=max(flow.making for flow in given))


def _filter(op: Op, given: Sequence[Flow], books: Books) -> Flow:
    if given[0].elements is not None:
        books.note("filter is taken to let every element through.")
    return given[0]


def _unbatch(op: Op, given: Sequence[Flow], books: Books) -> Flow:
    before = given[0]
    rows = before.rows or 1
    if before.rows is None:
        books.note("How many examples unbatch takes out of an element is not known; one is taken for it.")
    elements = before.elements
    if elements is not None and elements < INFINITE:
        elements *= rows
    flow = Flow(elements, fresh([piece.data // rows for piece in before.pieces]), 0)
    # The batch stays until its last row is out.
    return replace(flow, making=before.making + flow.own_bytes)


def _rebatch(op: Op, given: Sequence[Flow], books: Books) -> Flow:
    """Batches of another size from batches; a vector of several sizes counts with the old one."""
    before = given[0]
    size = op.number("batch_sizes")
    if size is None or before.rows is None:
        return before
    total = before.elements
    if total is not None and total < INFINITE:
        total = -(-total * before.rows // size)
    flow = Flow(total, fresh([piece.data * size // before.rows for piece in before.pieces]), 0, size)
    return replace(flow, making=before.making + flow.own_bytes)


def _snapshot(op: Op, given: Sequence[Flow], books: Books) -> Flow:
    books.enter("snapshot", 0, None, given[0], f"It is kept in files ({op.values.get('path', '')}), not in memory.")
    return replace(given[0], pieces=fresh([piece.data for piece in given[0].pieces]))


def _pass(op: Op, given: Sequence[Flow], books: Books) -> Flow:
    return given[0] if given else _other(op, given, books)


def _other(op: Op, given: Sequence[Flow], books: Books) -> Flow:
    """An op without a rule of its own: new tensors, nothing kept."""
    books.note(f"memest has no rule for the op {op.kind} of tf.data; it is taken to keep nothing.")
    elements = given[0].elements if given else None
    rows = given[0].rows if given else None
    flow = _made(op, elements, rows, op.kind, books)
    return replace(flow, making=flow.own_bytes + sum(one.making for one in given))


def _made(op: Op, elements: int | None, rows: int | None, name: str, books: Books) -> Flow:
    flow = Flow(elements, fresh([data_bytes(one, rows, name, books) for one in op.components]), 0, rows)
    return replace(flow, making=flow.own_bytes)


_READERS = {"TFRecord", "TextLine", "FixedLengthRecord"}
_SOURCES = _READERS | {"TensorSlice", "Tensor", "Range", "Random", "Generator", "Load", "SparseTensorSlice"}

_RULES: dict[str, Rule] = {
    "TensorSlice": _tensor_slice,
    "Tensor": _tensor,
    "Range": _range,
    "Random": _endless,
    "Generator": _generator,
    **dict.fromkeys(_READERS, _records),
    "Map": _map,
    "ParallelMap": _map,
    "Scan": _map,
    "Cache": _cache,
    "Shuffle": _shuffle,
    "Batch": _batch,
    "ParallelBatch": _batch,
    "PaddedBatch": _batch,
    "Prefetch": _prefetch,
    "Interleave": _interleave,
    "ParallelInterleave": _interleave,
    "LegacyParallelInterleave": _interleave,
    "FlatMap": _interleave,
    "Window": _window,
    "Repeat": _repeat,
    "Take": _take,
    "Skip": _skip,
    "Shard": _shard,
    "AssertCardinality": _cardinality,
    "Zip": _zip,
    "Concatenate": _concatenate,
    "DirectedInterleave": _concatenate,
    "Filter": _filter,
    "ParallelFilter": _filter,
    "TakeWhile": _filter,
    "Unique": _filter,
    "Unbatch": _unbatch,
    "MapAndBatch": _map_and_batch,
    "GroupByWindow": _group,
    "Load": _load,
    "Snapshot": _snapshot,
    "Rebatch": _rebatch,
    **dict.fromkeys(
        ("Options", "Restructured", "Model", "Optimize", "IgnoreErrors", "MaxIntraOpParallelism", "PrivateThreadPool",
         "AutoShard", "Save", "CopyToDevice", "AssertNext", "Finalize", "GlobalShuffle", "NonSerializable"), _pass),
}  # fmt: skip
