"""What a data pipeline is made of, as plain data: ops of tf.data, their arguments and the elements they give."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

Scalar = int | str | bool


@dataclass(frozen=True)
class Component:
    """One tensor of an element.

    Attributes:
        dtype: `"float32"`; `"variant"` where nothing is known of what is inside.
        shape: dimensions, None where unknown; None for an unknown number of dimensions.
        ragged: its rows have different lengths.
        sparse: only some of its values are stored.
        dataset: for an element that is a dataset itself, such as a window: what that one's elements are.
    """

    dtype: str
    shape: tuple[int | None, ...] | None
    ragged: bool = False
    sparse: bool = False
    dataset: tuple[Component, ...] | None = None


@dataclass(frozen=True)
class Constant:
    """A tensor that the pipeline holds from the start, such as the data of `from_tensor_slices`.

    Attributes:
        bytes: its data; for text its characters and TensorFlow's string objects.
        rows: its first dimension; 1 for a scalar.
        key: the same for the same tensor.
        texts: for a vector of text, such as paths of files, its first values.
    """

    dtype: str
    bytes: int
    rows: int
    key: int
    texts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Body:
    """A function of the user's that an op calls for every element.

    Attributes:
        passes: for each output the number of the input it is, untouched; None for a new tensor.
        dataset: the dataset it returns, if it returns one.
        reads_files: it reads a file for each element.
        sees_bytes: it works on uint8 tensors, such as decoded images.
        largest_inside: bytes of the largest tensor inside it that does not leave it, of those of known shape.
    """

    passes: tuple[int | None, ...] = ()
    dataset: Op | None = None
    reads_files: bool = False
    sees_bytes: bool = False
    largest_inside: int = 0


@dataclass(frozen=True)
class Op:
    """One op of a pipeline.

    Attributes:
        kind: the op's name without `Dataset` and version: `"Shuffle"`, `"ParallelMap"`, `"TensorSlice"`.
        inputs: the datasets it takes its elements from.
        values: its scalar arguments and attributes by name, as TensorFlow calls them: `{"buffer_size": 1000}`.
        components: the tensors of each of its elements.
        constants: tensors it holds itself; those its function captured, too.
        body: its function.
        key: the same for the same dataset used twice.
    """

    kind: str
    inputs: tuple[Op, ...]
    values: Mapping[str, Scalar]
    components: tuple[Component, ...]
    constants: tuple[Constant, ...] = ()
    body: Body | None = None
    key: int = field(default=0, compare=False)

    def number(self, name: str) -> int | None:
        """The argument `name`, if it is a known number."""
        value = self.values.get(name)
        return int(value) if isinstance(value, int) else None


def walk(op: Op) -> Iterator[Op]:
    """`op` and everything before it, sources first; a dataset used twice comes twice."""
    for before in op.inputs:
        yield from walk(before)
    yield op


def rewrite(op: Op, change: Callable[[Op], Op | None]) -> Op:
    """A copy of the pipeline with every op that `change` gives another for replaced; sources first."""
    changed = replace(op, inputs=tuple(rewrite(before, change) for before in op.inputs))
    return change(changed) or changed
