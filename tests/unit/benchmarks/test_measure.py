import numpy as np

from benchmarks.measure import scratch
from tensorboard_plugin_memest.measure.xplane import MemoryEvents


def test_scratch_is_what_kernels_take_for_themselves_and_no_copy_of_a_variable():
    texts = ["", "output", "temp", "dense/MatMul", "adam/AssignSubVariableOp_3"]
    # An output, scratch of the same op, a variable's copy; the scratch goes first.
    rows = [
        (True, 100, 1, 3, 1),
        (True, 40, 2, 3, 2),
        (True, 70, 3, 4, 2),
        (False, 40, 2, 0, 0),
        (False, 100, 1, 0, 0),
    ]
    allocates, size, address, op, region = (np.array(column) for column in zip(*rows, strict=True))
    nothing = np.zeros(len(rows), np.int64)
    events = MemoryEvents(
        allocator="cpu",
        time_ns=np.arange(len(rows)),
        allocates=allocates,
        bytes=size,
        requested_bytes=size,
        in_use=np.cumsum(np.where(allocates, size, -size)),
        address=address,
        op=op,
        region=region,
        shape=nothing,
        thread=nothing,
        dtype=nothing,
        texts=texts,
    )
    assert scratch(events).tolist() == [0, 40, 40, 0, 0]
