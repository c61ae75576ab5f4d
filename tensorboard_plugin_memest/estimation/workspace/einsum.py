"""Einsum on a CPU: inputs and result are transposed where their labels are in another order than a product needs.

Source: `einsum_op_impl.h` in `tensorflow/core/kernels`; the same in 36 measured equations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import IntEnum

from tensorboard_plugin_memest.estimation.workspace.kernel import NONE, Kernel, Workspace


class _Kind(IntEnum):
    """What becomes of a label, in the order in which a product of matrices takes them."""

    BROADCAST = 0
    BATCH = 1
    FREE = 2
    CONTRACTED = 3
    REDUCED = 4


# The same with the roles of free and contracted labels swapped: the product can take a matrix transposed.
_SWAPPED = {_Kind.BROADCAST: 0, _Kind.BATCH: 1, _Kind.CONTRACTED: 2, _Kind.FREE: 3, _Kind.REDUCED: 4}

# Labels for the dimensions of an ellipsis, which no equation uses.
_ELLIPSIS = "".join(chr(0x100 + position) for position in range(64))


def einsum(kernel: Kernel) -> Workspace:
    """The transposed copies of inputs, what is left of those that are summed up, and a product to be transposed."""
    terms, result = _labels(kernel)
    if not terms:
        return NONE
    # Labels count in the order in which they first come.
    number = {label: position for position, label in enumerate(dict.fromkeys("".join(terms) + result))}
    kinds = {label: _kind(label, terms, result) for label in number}
    copies = []
    ordered = []
    for term, given in zip(terms, kernel.inputs, strict=True):
        straight = [(kinds[label], number[label]) for label in term]
        swapped = [(_SWAPPED[kinds[label]], number[label]) for label in term]
        if straight != sorted(straight) and swapped != sorted(swapped):
            copies.append(given.bytes)
        summed = [size for label, size in zip(term, given.shape or (), strict=True) if kinds[label] is _Kind.REDUCED]
        if summed:
            copies.append(given.bytes // max(1, math.prod(summed)))
        ordered.append([label for _, label in sorted(zip(straight, term, strict=True))])
    if _product(ordered, kinds) == list(result):
        # What comes last is the result.
        return Workspace(before=copies if len(terms) > 1 else copies[:-1])
    product = [kernel.outputs[0].bytes] if len(terms) > 1 else []
    return Workspace(before=copies + product)


def _labels(kernel: Kernel) -> tuple[list[str], str]:
    """The labels of each input and of the result, with one label for each dimension of an ellipsis."""
    left, _, result = kernel.text("equation").replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(kernel.inputs) or any(given.shape is None for given in kernel.inputs):
        return [], ""
    ranks = [
        len(given.shape or ()) - len(term.replace("...", "")) for term, given in zip(terms, kernel.inputs, strict=True)
    ]
    # Dimensions of an ellipsis are aligned at its end.
    widest = _ELLIPSIS[: max(0, *ranks)]
    terms = [term.replace("...", widest[len(widest) - rank :]) for term, rank in zip(terms, ranks, strict=True)]
    return terms, result.replace("...", widest)


def _kind(label: str, terms: Sequence[str], result: str) -> _Kind:
    if label in _ELLIPSIS:
        return _Kind.BROADCAST
    is_everywhere = len(terms) > 1 and all(label in term for term in terms)
    if label in result:
        return _Kind.BATCH if is_everywhere or len(terms) == 1 else _Kind.FREE
    return _Kind.CONTRACTED if is_everywhere else _Kind.REDUCED


def _product(ordered: Sequence[Sequence[str]], kinds: dict[str, _Kind]) -> list[str]:
    """The labels that the product of the ordered inputs has."""
    widest = max(ordered, key=lambda term: sum(kinds[label] is _Kind.BROADCAST for label in term))
    shared = [label for label in widest if kinds[label] is _Kind.BROADCAST]
    shared += [label for label in ordered[0] if kinds[label] is _Kind.BATCH]
    return shared + [label for term in ordered for label in term if kinds[label] is _Kind.FREE]
