"""The limit that an estimate was last logged with, for each run of this process.

A later estimate of a run replaces the earlier one. So a callback that is given no limit has to take over the one that
`log_model` was given before, or the run would lose it.
"""

from __future__ import annotations

_limits: dict[str, int] = {}


def keep_limit(logdir: str, limit_bytes: int | None) -> None:
    """Notes what the estimate just logged to `logdir` (as `resolve_logdir` has it) is judged by, in bytes; None where
    nobody gave a limit."""
    if limit_bytes is None:
        _limits.pop(logdir, None)
    else:
        _limits[logdir] = limit_bytes


def kept_limit(logdir: str) -> int | None:
    """The limit in bytes that this process last logged an estimate to `logdir` with; None if it was given none."""
    return _limits.get(logdir)
