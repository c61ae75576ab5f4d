"""A kernel about to run, and what it allocates for itself: the terms in which workspace is described."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from tensorboard_plugin_memest.estimation.device import Device
from tensorboard_plugin_memest.estimation.graph import Node, Output, StepGraph, constant_value

HALF_TYPES = {"float16", "bfloat16"}


@dataclass(frozen=True)
class Workspace:
    """Buffers that a kernel allocates from its device's allocator while it runs and frees when it ends.

    Attributes:
        before: bytes of each of those allocated before the kernel's outputs, in order.
        after: bytes of each of those allocated after them, in order.
        taken_over: an input whose memory serves as the first of `before` if nobody else needs it any more; None where
            there is no such input.
        becomes: an input whose memory becomes the kernel's output if nobody else needs it any more, where that is so on
            this device only; None where there is no such input.
    """

    before: Sequence[int] = ()
    after: Sequence[int] = ()
    taken_over: int | None = None
    becomes: int | None = None

    def __bool__(self) -> bool:
        return bool(self.before or self.after)


NONE = Workspace()


@dataclass(frozen=True)
class Kernel:
    """A node of the optimized graph, and the device that runs it.

    Attributes:
        graph: the graph.
        node: the node.
        device: the device.
    """

    graph: StepGraph
    node: Node
    device: Device

    @property
    def op(self) -> str:
        """The op's type; that of the op whose place it took where Grappler named a kernel of oneDNN's."""
        is_named = self.node.op.startswith("_Mkl")
        return self.node.op.removeprefix("_Mkl").removeprefix("Native") if is_named else self.node.op

    @property
    def by_onednn(self) -> bool:
        """Whether oneDNN computes it, where oneDNN has such a kernel at all."""
        # TensorFlow registers no oneDNN kernels of other types; float16 needs AVX-512 FP16 besides.
        return self.device.onednn and self.outputs[0].dtype in ("float32", "bfloat16")

    @cached_property
    def inputs(self) -> list[Output]:
        """What it reads."""
        return [self.graph.nodes[source].outputs[output] for source, output in self.node.inputs]

    @property
    def outputs(self) -> list[Output]:
        """What it makes."""
        return self.node.outputs

    @property
    def attributes(self) -> Mapping[str, Any]:
        """The attributes of the node."""
        return self.node.attributes

    @property
    def is_half(self) -> bool:
        """Whether it computes in a type of 16 bits."""
        return bool(self.outputs) and self.outputs[0].dtype in HALF_TYPES

    def value(self, position: int) -> npt.NDArray[Any] | None:
        """The value of the input at `position`, where it is a constant."""
        source, _ = self.node.inputs[position]
        found = constant_value(self.graph.nodes[source])
        return None if found is None else np.asarray(found)

    def text(self, name: str) -> str:
        """The value of a text attribute; empty where there is none."""
        return self.attributes[name].s.decode() if name in self.attributes else ""

    def integers(self, name: str) -> list[int]:
        """The value of an attribute that lists integers; empty where there is none."""
        return list(self.attributes[name].list.i) if name in self.attributes else []


def item_size(dtype: str) -> int:
    """Bytes of one element."""
    return int(tf.as_dtype(dtype).size)


def elements(output: Output) -> int:
    """Number of elements; 0 where the shape is not known."""
    return output.bytes // item_size(output.dtype) if output.shape is not None else 0
