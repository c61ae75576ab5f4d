"""What the text of an out-of-memory error says. No TensorFlow: a text may come from another machine."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace

from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.explanation import Explanation
from tensorboard_plugin_memest.memory.explanation_text import HOST
from tensorboard_plugin_memest.memory.item import Item
from tensorboard_plugin_memest.memory.units import parse_bytes

TENSORFLOW = "TensorFlow's allocator"
XLA = "XLA"
CUDNN = "cuDNN or another CUDA library"
COPY = "the copy to the device"
DRIVER = "the GPU's driver"
PYTORCH = "PyTorch's allocator"


# TensorFlow's messages name C++ types.
_DTYPES = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "long": "int64",
    "long long": "int64",
    "int": "int32",
    "short": "int16",
    "signed char": "int8",
    "unsigned char": "uint8",
}
_BYTES_OF = {"bool": 1, "complex64": 8, "complex128": 16, "bfloat16": 2}
_XLA_DTYPES = {"pred": "bool", "bf16": "bfloat16", "c64": "complex64", "c128": "complex128"}

_SIZE = r"([\d.]+) ?(bytes|[KMGT]i?B|B)\b"

# Keras writes some of its messages in bold.
_STYLE = re.compile(r"\x1b\[[\d;]*m")

# What a log tells beside, and says itself that nothing failed; and disks and messages, which are exhausted by the same
# name.
_NO_FAILURE = re.compile(
    r"^.*(?:indicates that this is not a failure|exceeds \d+% of (?:free )?system memory|This is benign"
    r"|No space left on device|Received message larger than max).*$",
    re.MULTILINE,
)

# Of TensorFlow itself, in its several wordings over the releases; the first ones told no type.
_TENSOR = re.compile(
    r"OOM when allocating tensor (?:with shape|of shape )\s*(\[[\d, ]*\])"
    r"(?: and type (\w+(?: \w+)??)(?: on (\S+))?(?: by allocator (\w+))?(?=[\s;:.,\]]|\[|$))?"
)
_EXHAUSTED = re.compile(
    r"Allocator \((\w+)\) ran out of memory trying to allocate " + _SIZE + r"(?: \(rounded to (\d+)\))?"
    r"(?: ?requested by op ([^\s:]+))?"
)
# Memory of the host that GPUs copy from.
_PINNED = re.compile(r"[Ff]ailed to alloc (\d+) bytes on host|could not allocate pinned host memory of size: (\d+)")
_PINNED_ALLOCATOR = re.compile(r"(?:cuda|gpu)_host_bfc")
_XLA_ASKED = re.compile(r"Out of memory (?:while trying to allocate|allocating) " + _SIZE)
_XLA_CONSTANT = re.compile(r"Failed to allocate (\d+) bytes for new constant")
# A TPU's, from the compiler and from the runtime.
_HBM_USED = re.compile(r"Ran out of memory in memory space \w+\. Used ([\d.]+)([KMGT]?) of ([\d.]+)([KMGT]?)")
_COMPILER = re.compile(r"Ran out of memory in memory space")
_HBM_ASKED = re.compile(r"Attempting to (?:allocate|reserve) ([\d.]+)([KMGT]?)[^.\d]*\. That was not possible")
_REQUEST = re.compile(r"[Ff]ailed to allocate (?:request for )?[\d.]+\w* \((\d+) ?(?:B|bytes)\)")
_ORDINAL = re.compile(r"device ordinal (\d+)")
_CUDNN = re.compile(
    r"CUDNN_STATUS_(?:ALLOC_FAILED|NOT_INITIALIZED|INTERNAL_ERROR\w*)|CUBLAS_STATUS_(?:ALLOC_FAILED|NOT_INITIALIZED)"
    r"|CUDNN failed to allocate|[Ff]ailed to allocate (?:the )?scratch|No algorithm worked"
    r"|Failed to get convolution algorithm|CUSOLVER_STATUS_ALLOC_FAILED|DNN library initialization failed"
    r"|[Ff]ailed to create cublas handle|Blas GEMM launch failed|without BLAS support"
    r"|Fail to find the dnn implementation|Failed to call (?:ThenRnn|DoRnn)\w+|NCCL WARN [^\n]*out of memory"
)
_COPY = re.compile(r"Dst tensor is not initialized|unable to allocate output tensor")
_DRIVER = re.compile(
    r"CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|hipErrorOutOfMemory|HIP_ERROR_OutOfMemory"
    r"|CUDA error: out of memory|failed\. Status: out of memory|kIOGPUCommandBufferCallbackErrorOutOfMemory"
)
_ASYNC = re.compile(
    r"(gpu_async_\w+) cuMemAllocAsync failed to allocate (\d+) bytes(?:.*?Free memory/Total memory: (\d+)/(\d+))?",
    re.DOTALL,
)
# A constant that the pool has no room for: `Tensor::FromProto` does not say why it failed, but the proto was
# TensorFlow's own.
_CONSTANT = re.compile(
    r"Cannot parse tensor from (?:tensor_)?proto:.*?dtype: DT_(\w+)\s+"
    r"tensor_shape \{((?:\s*dim \{\s*size: \d+\s*\})*)\s*\}",
    re.DOTALL,
)
_PYTORCH = re.compile(r"(?:CUDA|HIP|XPU|MPS backend) out of memory\. Tried to allocate " + _SIZE)
_PYTORCH_HOST = re.compile(
    r"DefaultCPUAllocator: (?:can't allocate memory: you tried|not enough memory: you tried) to "
    r"allocate (\d+) bytes"
)
_KERNEL = re.compile(r"failed to allocate memory\b")
_NUMPY = re.compile(r"Unable to allocate (?:" + _SIZE + r" for an )?array with shape \(([\d, ]*)\) and data type (\w+)")
# A batch that the data pipeline puts together or hands over lies in the host's memory (under the BFC allocator on a CPU
# in the device's).
_PIPELINE = re.compile(r"IteratorGetNext|GetNextAsOptional|\w*Batch\w*Dataset\w*")
_BATCH = re.compile(r"Failed to allocate memory for the batch of component \d+")
# The system ends a process that takes too much, and says so in its own log; a shell says only that it was ended.
_KILLED = re.compile(
    r"[Oo]ut of memory: Kill(?:ed)? process \d+(?: \([^)]*\))?(?:.*?anon-rss:(\d+)kB)?"
    r"|^(?:.*: line \d+: +)?(?:\[\d+\] +[-+]? *)?(?:\d+ +)?[Kk]illed\b(?:[: ].*)?$|exit code 137\b"
    r"|using all available RAM|\bOOMKilled\b|\boom-kill event",
    re.MULTILINE,
)
_HOST = re.compile(r"std::bad_alloc|MemoryError|Cannot allocate memory|cannot allocate memory|paging file is too small")
_ANY = re.compile(r"RESOURCE_EXHAUSTED|[Rr]esource exhausted|ResourceExhaustedError|\bOOM\b|[Oo]ut of memory")

# What TensorFlow's log, now and before, sets before a line.
_LOGGED = re.compile(
    r"^(?:[IWEF]\d{4} [\d:.]+ +\d+|\d{4}-\d\d-\d\d [\d:.]+: [IWEF]) \S+:\d+\] (?:OP_REQUIRES failed at \S+ : )?"
)

# Where it happened.
_NODE = re.compile(r"(?:\{\{node |\[\[[Nn]ode:? )([^\s}=\]]+)")
_OLD_NODE = re.compile(r"^Node: '([^']+)'|Detected at node '?([^\s']+)'?", re.MULTILINE)
_EAGER = re.compile(r"\[Op:(?!__)(\w+)\]")
_FUNCTION = re.compile(r"\[Op:__(?:inference|forward|backward)")
_WRAPPED = re.compile(r"function_node __wrapped__(\w+?)_device_")
_DEVICE = re.compile(r"(?:device:|task:\d+/)([A-Za-z_]+:\d+)")
_FRAME = re.compile(r"\bin (fit|evaluate|predict|train_step|test_step|predict_step)\s*$", re.MULTILINE)
# Keras names the class of the innermost layer that an error came out of, where it ran in Python.
_CALLED = re.compile(r"Exception encountered when calling (\w+)\.call\(\)")
_STATS = re.compile(r"^.*?\b(Limit|InUse|MaxInUse): +(\d+)\s*$", re.MULTILINE)

# XLA's own list of what its buffers are.
_BUFFER = re.compile(r"Buffer \d+:\s*\n(.*?)={5,}", re.DOTALL)
_BUFFER_SIZE = re.compile(r"Size: " + _SIZE)
_BUFFER_OP = re.compile(r'op_name="([^"]+)"')
_BUFFER_SHAPE = re.compile(r"(?:Shape|Subshape): (\w+)\[([\d,]*)\]")
_BUFFER_LABEL = re.compile(r"XLA Label: (\S+)")


def parse_message(text: str) -> Explanation | None:
    """What the text of an error, or of a log around it, says about the memory it lacked; None if it is about no memory.

    What no text can say (what had been expected, what to change) is left open. Of the layer it may be the class that
    the text tells.

    Args:
        text: a message of TensorFlow, XLA, cuDNN, a GPU's driver or Python, with whatever surrounds it. PyTorch's are
            known for what they are.
    """
    text = _NO_FAILURE.sub("", _STYLE.sub("", text))
    for pattern, read in _READERS:
        match = pattern.search(text)
        if match:
            return _completed(read(match, text), text, match.start())
    return None


def _tensor(match: re.Match[str], text: str) -> Explanation:
    shape = _dimensions(match[1])
    dtype = _DTYPES.get(match[2], match[2])
    return Explanation(
        _source_of(match[4]), _line(match, text), shape=shape, dtype=dtype,
        bytes=_size(shape, dtype) if dtype else None, allocator=match[4],
    )  # fmt: skip


def _constant(match: re.Match[str], text: str) -> Explanation:
    name = match[1].lower()
    dtype = _DTYPES.get(name, name)
    shape = _dimensions(match[2])
    return Explanation(TENSORFLOW, _line(match, text), shape=shape, dtype=dtype, bytes=_size(shape, dtype))


def _exhausted(match: re.Match[str], text: str) -> Explanation:
    size = int(match[4]) if match[4] else _bytes(match[2], match[3])
    return Explanation(_source_of(match[1]), _line(match, text), bytes=size, allocator=match[1], op=match[5])


def _pipeline(match: re.Match[str], text: str) -> Explanation:
    return Explanation(HOST, _line(match, text), device="CPU:0")


def _source_of(allocator: str | None) -> str:
    return HOST if allocator and _PINNED_ALLOCATOR.fullmatch(allocator) else TENSORFLOW


def _pinned(match: re.Match[str], text: str) -> Explanation:
    return Explanation(HOST, _line(match, text), bytes=int(match[1] or match[2]), device="CPU:0")


def _killed(match: re.Match[str], text: str) -> Explanation:
    held = int(match[1]) * 1024 if match[1] else None
    return Explanation(HOST, _line(match, text), device="CPU:0", in_use_bytes=held)


def _xla(match: re.Match[str], text: str) -> Explanation:
    exact = _REQUEST.search(text)
    size = int(exact[1]) if exact else _bytes(match[1], match[2])
    return Explanation(XLA, _line(match, text), bytes=size, live=_buffers(text), live_is_predicted=False)


def _xla_constant(match: re.Match[str], text: str) -> Explanation:
    return Explanation(XLA, _line(match, text), bytes=int(match[1]))


def _hbm_used(match: re.Match[str], text: str) -> Explanation:
    # What the whole program would have used, beside what there is.
    used, limit = _binary(match[1], match[2]), _binary(match[3], match[4])
    return Explanation(XLA, _line(match, text), bytes=used, limit_bytes=limit)


def _hbm_asked(match: re.Match[str], text: str) -> Explanation:
    return Explanation(XLA, _line(match, text), bytes=_binary(match[1], match[2]))


def _async(match: re.Match[str], text: str) -> Explanation:
    free, total = (int(number) if number else None for number in (match[3], match[4]))
    number = re.fullmatch(r"gpu_async_(\d+)", match[1])
    return Explanation(
        TENSORFLOW, _line(match, text), bytes=int(match[2]), allocator=match[1],
        device=f"GPU:{number[1]}" if number else None,
        in_use_bytes=total - free if total is not None and free is not None else None, limit_bytes=total,
    )  # fmt: skip


def _pytorch(match: re.Match[str], text: str) -> Explanation:
    gpu, total = re.search(r"GPU (\d+)\b", text), re.search(_SIZE + r" total capacity|total capacity of " + _SIZE, text)
    return Explanation(
        PYTORCH, _line(match, text), bytes=_bytes(match[1], match[2]), device=f"GPU:{gpu[1]}" if gpu else None,
        limit_bytes=_bytes(total[1] or total[3], total[2] or total[4]) if total else None,
    )  # fmt: skip


def _pytorch_host(match: re.Match[str], text: str) -> Explanation:
    return Explanation(PYTORCH, _line(match, text), bytes=int(match[1]), device="CPU:0")


def _request(match: re.Match[str], text: str) -> Explanation:
    ordinal = _ORDINAL.search(text, match.end())
    source = DRIVER if _DRIVER.search(text) else TENSORFLOW
    return Explanation(source, _line(match, text), bytes=int(match[1]), device=f"GPU:{ordinal[1]}" if ordinal else None)


def _copy(match: re.Match[str], text: str) -> Explanation:
    line = _line(match, text)
    to = re.search(r" to \S*device:(\w+:\d+)", line)
    return Explanation(COPY, line, device=to[1] if to else None)


def _numpy(match: re.Match[str], text: str) -> Explanation:
    shape = _dimensions(f"[{match[3]}]")
    return Explanation(
        HOST, _line(match, text), shape=shape, dtype=match[4],
        bytes=_size(shape, match[4]) or _bytes(match[1], match[2]), device="CPU:0",
    )  # fmt: skip


def _only(source: str) -> Callable[[re.Match[str], str], Explanation]:
    return lambda match, text: Explanation(source, _line(match, text))


_READERS: list[tuple[re.Pattern[str], Callable[[re.Match[str], str], Explanation]]] = [
    (_PYTORCH, _pytorch),
    (_PYTORCH_HOST, _pytorch_host),
    (_TENSOR, _tensor),
    (_ASYNC, _async),
    (_CONSTANT, _constant),
    (_CUDNN, _only(CUDNN)),
    (_XLA_ASKED, _xla),
    (_XLA_CONSTANT, _xla_constant),
    (_HBM_USED, _hbm_used),
    (_COMPILER, _only(XLA)),
    (_HBM_ASKED, _hbm_asked),
    (_EXHAUSTED, _exhausted),
    (_PINNED, _pinned),
    (_REQUEST, _request),
    (_COPY, _copy),
    (_NUMPY, _numpy),
    (_DRIVER, _only(DRIVER)),
    (_BATCH, _pipeline),
    (_KERNEL, _only(TENSORFLOW)),
    (_HOST, _only(HOST)),
    (_KILLED, _killed),
    (_ANY, _only(TENSORFLOW)),
]


def _completed(failure: Explanation, text: str, position: int) -> Explanation:
    """`failure` with what the text around it says: the op, the device, the allocator's statistics."""
    # With several errors in one text, the node that follows is this one's.
    node = _NODE.search(text, position) or _NODE.search(text)
    old = _OLD_NODE.search(text)
    eager = _EAGER.search(text) or _WRAPPED.search(text)
    asked = _EXHAUSTED.search(text)
    op = (
        failure.op
        or (node and node[1])
        or (old and (old[1] or old[2]))
        or (eager and eager[1])
        or (asked and asked[5])
        or None
    )
    device = _DEVICE.search(text, position) or _DEVICE.search(text)
    number = re.match(r"GPU_(\d+)_", failure.allocator or "")
    called = _CALLED.search(text)
    stats = {name: int(value) for name, value in _STATS.findall(text)}
    of_pipeline = op and device and _PIPELINE.fullmatch(op) and device[1].startswith("CPU")
    return replace(
        failure,
        source=HOST if of_pipeline and "bfc" not in str(failure.allocator) else failure.source,
        op=op,
        layer=called[1] if called else None,
        device=failure.device or (device and device[1].upper()) or (f"GPU:{number[1]}" if number else None),
        phase=_phase(text, op, in_function=bool(node or old or _FUNCTION.search(text))),
        in_use_bytes=stats.get("InUse", stats.get("MaxInUse", failure.in_use_bytes)),
        limit_bytes=stats.get("Limit", failure.limit_bytes),
    )


def _phase(text: str, op: str | None, in_function: bool) -> str | None:
    """Where in a run it happened, as far as the text tells."""
    frames = set(_FRAME.findall(text))
    if op and ("gradient_tape/" in op or re.search(r"(?:^|/)Assign\w*VariableOp", op)):
        return "step"
    for name, phase in (
        ("test_step", "evaluate"), ("predict_step", "predict"), ("train_step", "step"),
        ("evaluate", "evaluate"), ("predict", "predict"), ("fit", "step"),
    ):  # fmt: skip
        if name in frames:
            return phase
    # What draws random numbers by itself makes a weight's first value. A layer's call may do so, too, but Keras 3,
    # whose layers are named there and may be built in their calls, draws first values without a state.
    draws = not in_function and op is not None and "Random" in op
    return "build" if draws and ("Stateless" in str(op) or _CALLED.search(text) is None) else None


def _buffers(text: str) -> tuple[Item, ...]:
    items = []
    for (block,) in (match.groups() for match in _BUFFER.finditer(text)):
        size = _BUFFER_SIZE.search(block)
        if size is None:
            continue
        bytes_ = _bytes(size[1], size[2])
        op, shape, label = _BUFFER_OP.search(block), _BUFFER_SHAPE.search(block), _BUFFER_LABEL.search(block)
        dtype = _xla_dtype(shape[1]) if shape else None
        given = "Entry Parameter" in block
        items.append(
            Item(
                layer="(step)",
                name=op[1] if op else "",
                category=Category.UNATTRIBUTED if given else Category.TEMPORARIES,
                role="variable or input" if given else f"{label[1] if label else 'XLA'} output",
                variable=None,
                shape=_dimensions(f"[{shape[2]}]") if shape else None,
                dtype=dtype,
                requested_bytes=bytes_,
                bytes=bytes_,
            )
        )
    return tuple(sorted(items, key=lambda item: -item.bytes))


def _line(match: re.Match[str], text: str) -> str:
    """The line of `text` that `match` begins in, without what a log sets before it and TensorFlow's braces in it."""
    start = text.rfind("\n", 0, match.start()) + 1
    end = text.find("\n", match.start())
    line = text[start : end if end >= 0 else len(text)]
    line = _LOGGED.sub("", line)
    return re.sub(r"\{\{function_node [^}]*\}\} ?|\s*\[\[.*?\]\]|\s*\[Op:\w*\](?: name: ?)?", "", line).strip()


def _dimensions(text: str) -> tuple[int, ...]:
    return tuple(int(size) for size in re.findall(r"\d+", text))


def _bytes(number: str, unit: str) -> int:
    # XLA's "M" and "MiB" are both binary.
    return int(float(number)) if unit in ("bytes", "B") else parse_bytes(f"{number.rstrip('.')}{unit[0]}iB")


def _binary(number: str, unit: str) -> int:
    return parse_bytes(f"{number}{unit}iB") if unit else int(float(number))


def _size(shape: tuple[int, ...], dtype: str) -> int | None:
    """Bytes of a tensor; None for a type without a fixed size."""
    bits = re.fullmatch(r"u?(?:int|float)(\d+)(?:_\w+)?", dtype)
    each = _BYTES_OF.get(dtype) or (int(bits[1]) // 8 if bits else None)
    return None if each is None else math.prod(shape) * each


def _xla_dtype(name: str) -> str:
    number = re.fullmatch(r"([fsu])(\d+)", name)
    if number is None:
        return _XLA_DTYPES.get(name, name)
    return {"f": "float", "s": "int", "u": "uint"}[number[1]] + number[2]
