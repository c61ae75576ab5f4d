"""One training under other choices, each estimated: what the tab's sliders move through. Plain data."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.errors import UsageError
from tensorboard_plugin_memest.memory.format import AsJson
from tensorboard_plugin_memest.memory.verdict import Verdict, judge
from tensorboard_plugin_memest.memory.what_if_text import as_text


@dataclass(frozen=True)
class Choices:
    """One choice of each kind.

    Attributes:
        batch_size: examples a step.
        optimizer: its name, such as `"Adam"` or `"SGD with momentum"`.
        precision: a dtype policy, such as `"mixed_float16"`.
        mode: `"graph"`, `"xla"` or `"eager"`.
    """

    batch_size: int
    optimizer: str
    precision: str
    mode: str

    def changes_from(self, other: Choices) -> int:
        """How many of the four differ."""
        return sum(value != vars(other)[name] for name, value in vars(self).items())


@dataclass(frozen=True)
class Outcome:
    """What the training was estimated to need with some choices. All numbers are bytes.

    Attributes:
        choices: the choices.
        peak_bytes: the highest peak of a training step.
        phases: phase to its peak and to the lowest and highest it can be.
        categories: what is alive at the peak; adds up to `peak_bytes`.
    """

    choices: Choices
    peak_bytes: int
    phases: Mapping[str, tuple[int, tuple[int, int]]]
    categories: Mapping[Category, int]

    def fits(self, limit_bytes: int) -> Verdict:
        """Whether every phase fits into `limit_bytes`."""
        return judge(self.phases, limit_bytes)

    def to_dict(self) -> dict[str, Any]:
        return {
            **vars(self.choices),
            "peak_bytes": self.peak_bytes,
            "phases": {name: [peak, *ends] for name, (peak, ends) in self.phases.items()},
            "categories": {str(category): size for category, size in self.categories.items()},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Outcome:
        return cls(
            choices=Choices(*(data[name] for name in ("batch_size", "optimizer", "precision", "mode"))),
            peak_bytes=data["peak_bytes"],
            phases={name: (peak, (low, high)) for name, (peak, low, high) in data["phases"].items()},
            categories={Category(category): size for category, size in data["categories"].items()},
        )


@dataclass(frozen=True)
class WhatIf(AsJson):
    """A training as it is and under other choices.

    Attributes:
        base: the choices as they are.
        batch_sizes: the sizes there are to choose from, ascending.
        optimizers: the optimizers, that of the training first.
        precisions: the dtype policies, that of the training first.
        modes: the modes, that of the training first.
        outcomes: the combinations that were estimated, those with fewest changes first; the first is the base.
        notes: what was left out, and why.
    """

    called = "record of choices"

    base: Choices
    batch_sizes: tuple[int, ...]
    optimizers: tuple[str, ...]
    precisions: tuple[str, ...]
    modes: tuple[str, ...]
    outcomes: tuple[Outcome, ...]
    notes: tuple[str, ...] = ()

    def __call__(self, **changes: Any) -> Outcome:
        """What the training needs with `changes`: `what_if(optimizer="SGD", batch_size=64)`.

        Raises:
            ValueError: there is no such choice, or the combination was not estimated; the text says what there is.
        """
        there = {
            "batch_size": self.batch_sizes,
            "optimizer": self.optimizers,
            "precision": self.precisions,
            "mode": self.modes,
        }
        for name, value in changes.items():
            if value not in there.get(name, ()):
                known = (
                    f"{name}={value!r} is none of {there[name]}" if name in there else f"there is no choice {name!r}"
                )
                raise UsageError(f"{known}. Choose batch_size, optimizer, precision and mode from {there}.")
        wanted = Choices(**{**vars(self.base), **changes})
        found = next((outcome for outcome in self.outcomes if outcome.choices == wanted), None)
        if found is None:
            raise UsageError(f"{wanted} was not estimated: {' '.join(self.notes)} Ask for more seconds.")
        return found

    def __str__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def to_dict(self) -> dict[str, Any]:
        return {
            "base": dict(vars(self.base)),
            "batch_sizes": list(self.batch_sizes),
            "optimizers": list(self.optimizers),
            "precisions": list(self.precisions),
            "modes": list(self.modes),
            "outcomes": [outcome.to_dict() for outcome in self.outcomes],
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> WhatIf:
        return cls(
            base=Choices(**data["base"]),
            batch_sizes=tuple(data["batch_sizes"]),
            optimizers=tuple(data["optimizers"]),
            precisions=tuple(data["precisions"]),
            modes=tuple(data["modes"]),
            outcomes=tuple(Outcome.from_dict(outcome) for outcome in data["outcomes"]),
            notes=tuple(data["notes"]),
        )
