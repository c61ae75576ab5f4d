"""Names of ops, as they stand in messages and profiles, cut down to what people know."""

from __future__ import annotations

import re

GRADIENT_SCOPE = "gradient_tape"

# Functions are inlined under the name of their call, which says nothing: "StatefulPartitionedCall/dense/MatMul",
# and with several steps per execution "while/body/_1/while/StatefulPartitionedCall/dense/MatMul".
_CALLS = re.compile(r"^.*\bStatefulPartitionedCall(?:_\d+)?/")
_COUNTER = re.compile(r"_\d+$")


def short_name(op: str) -> str:
    """An op's name without the calls it was inlined from."""
    return _CALLS.sub("", op) or op


def without_counter(name: str) -> str:
    """A name without the number that makes it unique: `"dense"` of `"dense_1"`."""
    return _COUNTER.sub("", name)
