"""What variables hold between steps, and which of them share memory."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from tensorboard_plugin_memest.estimation.events import Buffer
from tensorboard_plugin_memest.estimation.graph import Value
from tensorboard_plugin_memest.estimation.variables import Variable

# Ops on parts of a variable, after which it shares its memory with nobody: `EnsureSparseVariableAccess` in
# `training_op_helpers.h`.
SPARSE = ("ResourceScatter", "ResourceGather", "ResourceStridedSliceAssign")


@dataclass
class VariableStore:
    """What variables hold between steps; changes with each.

    Attributes:
        buffers: their memory, some of them together; another one when an update has to copy.
        copied_on_read: those of which every read is a copy.
        values: what counters among them count, as far as it is known.
    """

    buffers: dict[Variable, Buffer] = field(default_factory=dict)
    copied_on_read: set[Variable] = field(default_factory=set)
    values: dict[Variable, Value] = field(default_factory=dict)
    _holders: dict[Buffer, deque[Variable]] | None = field(default=None, init=False, repr=False)

    def share(self, variable: Variable, buffer: Buffer) -> None:
        """`variable` holds what others may hold, too."""
        self.buffers[variable] = buffer
        self._holders = None

    def other_holder(self, buffer: Buffer, than: Variable) -> Variable | None:
        """The first other variable that holds `buffer`, asked when `than` is about to give it up."""
        if self._holders is None:
            # Slots with equal first values may be thousands, so nobody goes through all of them for each.
            self._holders = {}
            for variable, held in self.buffers.items():
                self._holders.setdefault(held, deque()).append(variable)
        holders = self._holders.get(buffer, deque())
        while holders and (holders[0] is than or self.buffers[holders[0]] is not buffer):
            holders.popleft()
        return holders[0] if holders else None

    @property
    def sharing(self) -> tuple[frozenset[Variable], frozenset[Variable]]:
        """Between steps: which variables share memory with others or with constants, and which never do."""
        shared = frozenset(variable for variable, buffer in self.buffers.items() if buffer.references > 1)
        return shared, frozenset(self.copied_on_read)
