"""Bytes as people write and read them. Units are binary unless a decimal unit is written out."""

from __future__ import annotations

import re
from fractions import Fraction

from tensorboard_plugin_memest.memory.errors import UsageError

KIB = 2**10
MIB = 2**20
GIB = 2**30

_FACTORS = {
    "b": 1,
    "kib": KIB,
    "mib": MIB,
    "gib": GIB,
    "tib": 2**40,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    # As nvidia-smi, docker and people write it; what would be 3080 Ti is a device.
    "gi": GIB,
    "g": 10**9,
}
_SIZE = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-z]+)\s*", re.IGNORECASE)


def looks_like_bytes(text: str) -> bool:
    """Whether `text` is a number with a unit of memory, or only a number."""
    match = _SIZE.fullmatch(text)
    return text.strip().isdecimal() or (match is not None and match[2].lower() in _FACTORS)


def parse_bytes(size: int | str) -> int:
    """The number of bytes that `size` names.

    Args:
        size: bytes as an integer, or text such as `"9.29GiB"` (binary units KiB, MiB, GiB, TiB), `"24GB"`
            (decimal units kB, MB, GB, TB), `"24G"` (GB), `"24Gi"` (GiB) or `"4096 B"`.

    Returns:
        Whole bytes, rounded down.

    Raises:
        ValueError: the text is no size, has no unit, or the size is not positive.
        TypeError: `size` is neither an integer nor text.
    """
    if isinstance(size, bool) or not isinstance(size, (int, str)):
        raise TypeError(f"A memory size is an integer number of bytes or text such as '9.29GiB', not {size!r}.")
    if isinstance(size, int):
        number = size
    else:
        match = _SIZE.fullmatch(size)
        factor = _FACTORS.get(match[2].lower()) if match else None
        if match is None or factor is None:
            raise UsageError(
                f"{size!r} is not a memory size. Give bytes as an integer, or a number with a unit: "
                "'9.29GiB', '800 MiB' (binary) or '24GB' (decimal)."
            )
        number = int(Fraction(match[1].rstrip(".")) * factor)
    if number <= 0:
        raise UsageError(f"A memory size must be positive, not {size!r}.")
    return number


def format_bytes(number: int) -> str:
    """`number` bytes for people: `"17.22 GiB"`, `"185.0 MiB"`, `"3.1 KiB"`, `"12 B"`; a sign is kept.

    The frontend formats the same way; `tests/vectors/units.json` holds both to it.
    """
    sign = "-" if number < 0 else ""
    magnitude = abs(number)
    if magnitude >= GIB:
        return f"{sign}{_fixed(magnitude, GIB, 2)} GiB"
    if magnitude >= MIB:
        return f"{sign}{_fixed(magnitude, MIB, 1)} MiB"
    if magnitude >= KIB:
        return f"{sign}{_fixed(magnitude, KIB, 1)} KiB"
    return f"{sign}{magnitude} B"


def format_share(part: int, whole: int) -> str:
    """`part` of `whole` in percent with one decimal, `"16.7 %"`; `"–"` where `whole` is 0.

    What is not nothing does not read as nothing, `"<0.1 %"`, and what is not all not as all, `">99.9 %"`.
    """
    if whole == 0:
        return "–"
    percent = _fixed(part * 100, whole, 1)
    if percent == "0.0" and part > 0:
        return "<0.1 %"
    if percent == "100.0" and part < whole:
        return ">99.9 %"
    return f"{percent} %"


def _fixed(numerator: int, denominator: int, decimals: int) -> str:
    """Integer division to a fixed number of decimals, halves away from zero: the same on every platform."""
    scale = 10**decimals
    scaled = (2 * numerator * scale + denominator) // (2 * denominator)
    return f"{scaled // scale}.{scaled % scale:0{decimals}d}"
