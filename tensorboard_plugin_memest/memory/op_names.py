"""Names of ops, as they stand in messages and profiles, cut down to what people know."""

from __future__ import annotations

import re

# What stands where memory was asked for outside of any op.
NO_OP = "(no op)"

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


def plain_name(op: str) -> str:
    """A name without the number of its root scope, which depends on what was traced before in the process."""
    parts = op.split("/")
    root = 1 if parts[0] == GRADIENT_SCOPE and len(parts) > 1 else 0
    parts[root] = without_counter(parts[root])
    return "/".join(parts)
