"""The version of everything that is written down."""

from __future__ import annotations

FORMAT = 1


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
