"""The version of everything that is written down."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar, NoReturn, TypeVar

from tensorboard_plugin_memest.memory.errors import UsageError

FORMAT = 1

Self = TypeVar("Self", bound="AsJson")


class NewerFormatError(ValueError):
    """The data was written by a newer memest than this one."""


def check_format(what: str, found: int) -> None:
    """Refuses data of a newer format than this version reads.

    Raises:
        NewerFormatError: `found` is newer.
    """
    if found > FORMAT:
        raise NewerFormatError(
            f"This {what} has format {found}; this memest reads up to {FORMAT}. Upgrade memest where TensorBoard runs."
        )


def parse_json(text: str | bytes) -> Any:
    """`text` as JSON.

    Raises:
        ValueError: it is none. `NaN` and infinities, which Python would read and a browser would not, are none.
    """
    return json.loads(text, parse_constant=_refuse)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"It holds {constant}, which is no number.")


class AsJson:
    """What becomes JSON text with the format's version, and is read back equal.

    A class has `to_dict` and `from_dict`, and says as `called` what errors call it.
    """

    called: ClassVar[str]

    def to_dict(self) -> dict[str, Any]:
        raise NotImplementedError

    @classmethod
    def from_dict(cls: type[Self], data: Mapping[str, Any]) -> Self:
        raise NotImplementedError

    def to_json(self) -> str:
        """All of it as JSON text; `from_json` reads it back equal."""
        return json.dumps({"format": FORMAT, **self.to_dict()}, separators=(",", ":"))

    @classmethod
    def from_json(cls: type[Self], text: str | bytes) -> Self:
        """What `to_json` gave.

        Raises:
            NewerFormatError: a newer memest wrote it.
            ValueError: it is no JSON, or none that `to_json` gave.
        """
        data = parse_json(text)
        if not isinstance(data, dict) or "format" not in data:
            raise UsageError(f"This is no {cls.called} that memest wrote: {text[:60]!r}. Pass what to_json() gave.")
        check_format(cls.called, data.pop("format"))
        return cls.from_dict(data)
