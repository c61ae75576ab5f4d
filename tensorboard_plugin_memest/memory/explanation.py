"""Why a run ran out of memory: what was asked for, whose it was, what was there already, and what to change."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.explanation_text import as_text, headline, sentence
from tensorboard_plugin_memest.memory.item import Item


@dataclass(frozen=True)
class Explanation:
    """An out-of-memory error, explained. What is not known is None; all sizes are bytes.

    Attributes:
        source: who ran out, in words: `"TensorFlow's allocator"`, `"XLA"`, `"cuDNN"`, `"the host"`.
        message: the sentence of the error that says so.
        op: name of the op that failed; for an op that ran eagerly its type.
        shape: dimensions of the tensor that was asked for.
        dtype: `"float32"`.
        bytes: bytes that were asked for. Where the error tells them rounded, as XLA's may, so are these.
        device: `"GPU:0"`, `"CPU:0"`.
        allocator: the allocator's id, such as `"GPU_0_bfc"`.
        layer: path of the layer that the tensor belongs to, or a part of the step such as `"(optimizer)"`.
        category: what the tensor is for.
        role: the same in words, such as `"update temporary"`.
        variable: path of the weight that the tensor is there for.
        phase: `"build"`, `"first_step"`, `"step"`, `"evaluate"` or `"predict"`.
        step: number of the step that failed, 0 for the first.
        in_use_bytes: what was in use when it failed; where only that is known, the most that was until then.
        limit_bytes: what the allocator may use.
        live: what was alive, largest first.
        live_is_predicted: whether `live` is what the estimate says is alive at the peak of that phase, rather than what
            was seen.
        predicted_peak_bytes: what the estimate had said of that phase.
        expectation: what the estimate had said, in a sentence.
        advice: what to change, most promising first, one sentence or two each.
    """

    source: str
    message: str
    op: str | None = None
    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    bytes: int | None = None
    device: str | None = None
    allocator: str | None = None
    layer: str | None = None
    category: Category | None = None
    role: str | None = None
    variable: str | None = None
    phase: str | None = None
    step: int | None = None
    in_use_bytes: int | None = None
    limit_bytes: int | None = None
    live: tuple[Item, ...] = ()
    live_is_predicted: bool = True
    predicted_peak_bytes: int | None = None
    expectation: str | None = None
    advice: tuple[str, ...] = ()

    @property
    def headline(self) -> str:
        """What happened, in one sentence."""
        return headline(self)

    @property
    def sentence(self) -> str:
        """That the run ran out of memory and in which phase; for where there is room for no more."""
        return sentence(self)

    def __str__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.__dict__,
            "shape": None if self.shape is None else list(self.shape),
            "category": None if self.category is None else self.category.value,
            "live": [item.to_dict() for item in self.live],
            "advice": list(self.advice),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Explanation:
        return cls(
            **{
                **data,
                "shape": None if data["shape"] is None else tuple(data["shape"]),
                "category": None if data["category"] is None else Category(data["category"]),
                "live": tuple(Item.from_dict(item) for item in data["live"]),
                "advice": tuple(data["advice"]),
            }
        )
