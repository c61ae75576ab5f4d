"""What `predict` keeps of its batches until it ends.

Keras holds the outputs of all batches on the device, joins them there (one tensor for each output, while the parts are
still held), and copies the result to the host as NumPy arrays. It gives a batch up when it has the next one. Source:
`keras/src/backend/tensorflow/trainer.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import tensorflow as tf

from tensorboard_plugin_memest.estimation.events import ALLOCATE, FREE, RELABEL, Buffer, Event
from tensorboard_plugin_memest.estimation.tag import Tag
from tensorboard_plugin_memest.estimation.variables import STEP, size_in_bytes
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.errors import UsageError
from tensorboard_plugin_memest.memory.timeline import END_OF_STEP
from tensorboard_plugin_memest.memory.units import format_bytes

# More parts than so many are counted several at a time; only the gaps between them tell the difference.
MOST_PARTS = 100

# So many batches are played one after another; what earlier ones leave is there from the beginning.
PLAYED_BATCHES = 3


# Name, shape and dtype of a tensor.
_Kept = tuple[str, tuple[int, ...], str]


@dataclass(frozen=True)
class Accumulated:
    """The outputs of a prediction.

    Attributes:
        outputs: (name, shape, dtype) of each output of one batch.
        batch_size: examples in one batch.
        examples: examples in all.
        attached: the same of tensors that the outputs hold, and that are not joined.
    """

    outputs: Sequence[_Kept]
    batch_size: int
    examples: int
    attached: Sequence[_Kept] = ()

    @property
    def host_bytes(self) -> int:
        """Bytes of the arrays that `predict` returns."""
        return sum(self._bytes_of(shape, dtype, self.examples) for _, shape, dtype in self.outputs)

    @property
    def note(self) -> str:
        """What is counted, in words."""
        batches = math.ceil(self.examples / self.batch_size)
        if batches == 1:
            return (
                f"predict was estimated for one batch, whose outputs take {format_bytes(self.host_bytes)} of the "
                "host's memory. Those of more batches stay on the device until it ends, and are joined there: pass "
                "predict_examples= for how many examples it gets."
            )
        return (
            f"predict keeps the outputs of {self.examples:,} examples ({batches:,} batches) on the device until it "
            f"ends, joins them there, and copies the result, {format_bytes(self.host_bytes)}, to the host."
        )

    def around(self, step: Sequence[Event]) -> tuple[list[Event], int]:
        """The last batches of a prediction, what is left of those before them, and how it ends.

        Args:
            step: what predicting for one batch does; it gives its outputs up at its end.

        Returns:
            The events, and where among them the last step begins.
        """
        if self.examples <= self.batch_size:
            return list(step), 0
        played = min(self.examples // self.batch_size, PLAYED_BATCHES)
        parts = self._parts(self.examples - played * self.batch_size)
        events = [Event(ALLOCATE, buffer, tag.name, tag) for buffer, tag in parts]
        held, batch, begins = [buffer for buffer, _ in parts], list[Buffer](), 0
        for left in reversed(range(played)):
            begins = len(events)
            one = _again(step) if left else list(step)
            fed = [event.buffer for event in one if event.tag is not None and event.tag.category is Category.INPUTS]
            one = [event for event in one if event.kind != FREE or event.buffer not in fed]
            held += self._keep(one)
            there = 1 + max((place for place, event in enumerate(one) if event.buffer in fed), default=-1)
            events += [*one[:there], *(Event(FREE, buffer, one[0].op) for buffer in batch), *one[there:]]
            batch = fed
        joined = [
            (
                Buffer(self._bytes_of(shape, dtype, self.examples)),
                self._tag(f"{name} (joined)", "all outputs of predict", (self.examples, *shape[1:]), dtype),
            )
            for name, shape, dtype in self.outputs
        ]
        events += [Event(ALLOCATE, buffer, tag.name, tag) for buffer, tag in joined]
        events += [Event(FREE, buffer, END_OF_STEP) for buffer in [*held, *(buffer for buffer, _ in joined), *batch]]
        return events, begins

    def _keep(self, step: list[Event]) -> list[Buffer]:
        """Changes a step so that it keeps its outputs. Returns their buffers."""
        held = []
        inputs = {event.buffer for event in step if event.tag is not None and event.tag.category is Category.INPUTS}
        made = {event.buffer for event in step if event.kind == ALLOCATE} - inputs
        for part, tag in self._parts(self.batch_size):
            ends = (place for place in reversed(range(len(step))) if step[place].kind == FREE)
            place = next(
                (one for one in ends if step[one].buffer in made and step[one].buffer.bytes == part.bytes), None
            )
            if place is None:
                # Nothing of the step's is as large; the step has given it up, and it comes back.
                step.append(Event(ALLOCATE, part, tag.name, tag))
                held.append(part)
            else:
                held.append(step[place].buffer)
                step[place] = Event(RELABEL, held[-1], step[place].op, tag)
        return held

    def _parts(self, examples: int) -> list[tuple[Buffer, Tag]]:
        """The outputs of so many examples, batch by batch."""
        batches = math.ceil(examples / self.batch_size)
        at_a_time = max(1, math.ceil(batches / MOST_PARTS)) * self.batch_size
        parts = []
        for start in range(0, examples, at_a_time):
            count = min(at_a_time, examples - start)
            parts += [
                (
                    Buffer(self._bytes_of(shape, dtype, count)),
                    self._tag(f"{name} ({start} to {start + count})", "output of predict", (count, *shape[1:]), dtype),
                )
                for name, shape, dtype in (*self.outputs, *self.attached)
            ]
        return parts

    @staticmethod
    def _tag(name: str, role: str, shape: tuple[int, ...], dtype: str) -> Tag:
        return Tag(STEP, name, Category.TEMPORARIES, role, None, shape, dtype)

    def _bytes_of(self, shape: tuple[int, ...], dtype: str, examples: int) -> int:
        # An output without a batch dimension comes once a batch.
        of_batch = size_in_bytes(shape, dtype)
        if not shape or shape[0] != self.batch_size:
            return of_batch * math.ceil(examples / self.batch_size)
        return of_batch // self.batch_size * examples


def _again(step: Sequence[Event]) -> list[Event]:
    """The same once more, in memory of its own, but for what outlives the step and what that replaces."""
    made, freed = ({event.buffer for event in step if event.kind == kind} for kind in (ALLOCATE, FREE))
    fresh = {buffer: Buffer(buffer.bytes, is_scratch=buffer.is_scratch) for buffer in made & freed}
    return [replace(event, buffer=fresh[event.buffer]) for event in step if event.buffer in fresh]


def accumulated(outputs: Sequence[Any], batch_size: int, examples: int | None) -> Accumulated:
    """What is kept of `outputs`, which predicting for a batch returns, over `examples` examples.

    Args:
        outputs: symbolic tensors; those of unknown shape are left out.
        batch_size: examples in one batch.
        examples: examples in all; None for one batch.
    """
    attached = [tensor for output in outputs for tensor in _attached(output)]
    return Accumulated(_known(outputs), batch_size, max(examples or batch_size, 1), _known(attached))


def _known(tensors: Sequence[Any]) -> list[_Kept]:
    return [
        (tensor.op.name, tuple(tensor.shape), tensor.dtype.name)
        for tensor in tensors
        if tensor.shape.is_fully_defined() and size_in_bytes(tensor.shape, tensor.dtype)
    ]


def _attached(tensor: Any) -> Iterator[Any]:
    """What a tensor holds: in eager mode Keras attaches to what softmax and sigmoid give what they were given."""
    for value in vars(tensor).values():
        if tf.is_tensor(value):
            yield value
            yield from _attached(value)


def checked_predict_examples(examples: Any, predict_batch_size: Any) -> int | None:
    """The `predict_examples` of `estimate`.

    Raises:
        ValueError: it is no positive integer, or there is no prediction that it could be about.
    """
    if examples is None:
        return None
    if isinstance(examples, bool) or not isinstance(examples, int) or examples < 1:
        raise UsageError(f"predict_examples must be a positive integer, not {examples!r}.")
    if predict_batch_size is None:
        raise UsageError(
            f"predict_examples={examples} is about prediction, which was not asked for: pass predict_batch_size=, too."
        )
    return examples
