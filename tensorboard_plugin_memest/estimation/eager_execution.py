"""Runs an eager step on paper: which buffer exists when, and what its variables hold afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tensorboard_plugin_memest.estimation.attribution import BACKWARD, FORWARD, UPDATE
from tensorboard_plugin_memest.estimation.births import birth_events
from tensorboard_plugin_memest.estimation.cost import UPDATES
from tensorboard_plugin_memest.estimation.eager_step import READ, EagerStep
from tensorboard_plugin_memest.estimation.events import ALLOCATE, FREE, RELABEL, Buffer, Event
from tensorboard_plugin_memest.estimation.tag import Tag, variable_tag, workspace_tag
from tensorboard_plugin_memest.estimation.trace import GRADIENT_SCOPE
from tensorboard_plugin_memest.estimation.variable_store import SPARSE, VariableStore
from tensorboard_plugin_memest.estimation.variables import INPUT, OPTIMIZER, Variable, Variables, size_in_bytes
from tensorboard_plugin_memest.estimation.workspace.kernel import NONE, Workspace
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.timeline import END_OF_STEP


class EagerPlan:
    """What does not change from run to run of an eager step.

    Args:
        step: the step.
        variables: those it may use.
        workspaces: what the kernels of some ops allocate for themselves, by the op's name.
    """

    def __init__(self, step: EagerStep, variables: Variables, workspaces: Mapping[str, Workspace]) -> None:
        self.step = step
        self.variables = variables
        self.workspaces = workspaces
        parts = [_part(step, name) for name in step.names]
        kept = _kept(step, parts)
        weights = [variable for variable in variables.all if variable.category is Category.WEIGHTS]
        self.tags = [_tag(step, number, parts[number], number in kept, weights) for number in range(len(step.names))]


class EagerExecution:
    """One run of an eager step.

    Args:
        plan: the step.
        store: what its variables hold; changed by it.
        left: by op, what an earlier step left behind that something still holds; afterwards what this one leaves.
        is_first: whether what comes to be in the first step does.
        handles: whether the handles of variables lie in the device's memory, too.
    """

    def __init__(
        self,
        plan: EagerPlan,
        store: VariableStore,
        left: dict[str, Buffer],
        *,
        is_first: bool = False,
        handles: bool = False,
    ) -> None:
        self._plan = plan
        self._store = store
        self._left = left
        self._births = plan.step.births if is_first else ()
        self._handles = handles
        self._events: list[Event] = []
        self._held: dict[int, Buffer] = {}  # by the number of a tensor
        self._op = "(start)"

    def run(self) -> list[Event]:
        """Everything that happens, in order."""
        step = self._plan.step
        fed = []
        for name, shape, dtype in step.batch:
            fed.append(Buffer(size_in_bytes(shape, dtype)))
            tag = Tag(INPUT, name, Category.INPUTS, "batch", None, shape, dtype)
            self._events.append(Event(ALLOCATE, fed[-1], name, tag))
        changes = iter(step.changes)
        change = next(changes, None)
        for position, happens in enumerate([*step.run.steps, None]):
            while change is not None and change.position <= position:
                self._change(change.kind, change.handle, change.value)
                change = next(changes, None)
            born = [birth for place, birth in self._births if place == position]
            self._events += birth_events(born, self._store, handles=self._handles)
            if happens is not None:
                number, is_made = happens
                if is_made:
                    self._make(number)
                else:
                    self._release(self._held.pop(number))
        self._op = END_OF_STEP
        kept = {number: self._held.pop(number) for number in step.held & self._held.keys()}
        for buffer in [*self._held.values(), *fed, *self._left.values()]:
            self._release(buffer)
        self._left.clear()
        self._left.update({step.names[number]: buffer for number, buffer in kept.items()})
        return self._events if step.accumulated is None else step.accumulated.around(self._events)[0]

    def _make(self, number: int) -> None:
        plan, step = self._plan, self._plan.step
        variable = self._variable(step.reads.get(number))
        if variable is not None and variable not in self._store.copied_on_read:
            # What a read gives is the variable's own memory.
            self._held[number] = self._store.buffers[variable]
            self._held[number].references += 1
            return
        before, self._op = self._op, step.names[number]
        # An op's tensors are made one after another: its workspace is there while the first one is.
        scratch = plan.workspaces.get(self._op, NONE) if before != self._op else NONE
        first, second = ([Buffer(size, is_scratch=True) for size in sizes] for sizes in (scratch.before, scratch.after))
        used = workspace_tag(plan.tags[number])
        self._events += [Event(ALLOCATE, buffer, self._op, used) for buffer in first]
        self._held[number] = Buffer(step.run.made[number].bytes, references=1)
        self._events.append(Event(ALLOCATE, self._held[number], self._op, plan.tags[number]))
        self._events += [Event(ALLOCATE, buffer, self._op, used) for buffer in second]
        self._events += [Event(FREE, buffer, self._op) for buffer in (*first, *second)]
        if number in step.held and self._op in self._left:
            # What held the one of the step before gets this one.
            self._release(self._left.pop(self._op))

    def _change(self, kind: str, handle: Any, value: int | None) -> None:
        """A variable is changed, as `execution` has it for graphs."""
        variable = self._variable(handle)
        if variable is None:
            return
        held = self._store.buffers[variable]
        copies = variable in self._store.copied_on_read
        if kind == "AssignVariableOp" and not copies:
            given = None if value is None else self._held.get(value)
            if given is not None and given is not held:
                # The value's memory is the variable's from now on, whoever holds it too.
                given.references += 1
                self._hold(variable, given)
        elif kind in UPDATES or kind == "AssignVariableOp":
            if copies or held.references != 1:
                self._copy(variable)
        elif kind.startswith(SPARSE):
            self._store.copied_on_read.add(variable)
            if not copies and held.references != 1:
                self._copy(variable)

    def _copy(self, variable: Variable) -> None:
        copy = Buffer(variable.bytes, references=1)
        self._events.append(Event(ALLOCATE, copy, self._op, variable_tag(variable)))
        self._hold(variable, copy)

    def _hold(self, variable: Variable, buffer: Buffer) -> None:
        old = self._store.buffers[variable]
        if old.references > 1:
            # What is still read of the old value is no weight any more.
            old.is_resident = False
            stale = replace(variable_tag(variable), category=Category.TEMPORARIES, role="old value, still read")
            self._events.append(Event(RELABEL, old, self._op, stale))
        buffer.is_resident = True
        self._store.buffers[variable] = buffer
        self._events.append(Event(RELABEL, buffer, self._op, variable_tag(variable)))
        self._release(old)

    def _release(self, buffer: Buffer) -> None:
        buffer.references -= 1
        if buffer.references <= 0:
            self._events.append(Event(FREE, buffer, self._op))

    def _variable(self, handle: Any) -> Variable | None:
        variable = None if handle is None else self._plan.variables.of_handle(handle)
        return variable if variable in self._store.buffers else None


def _part(step: EagerStep, name: str) -> str:
    if step.owners.find(name).is_update:
        return UPDATE
    return BACKWARD if GRADIENT_SCOPE in name else FORWARD


def _kept(step: EagerStep, parts: Sequence[str]) -> set[int]:
    """The forward tensors that are there when a backward pass begins; a step may have several."""
    alive: set[int] = set()
    kept: set[int] = set()
    before = FORWARD
    for number, is_made in step.run.steps:
        part = parts[number]
        if is_made:
            if part == BACKWARD != before:
                kept |= alive
            before = part
        if part == FORWARD:
            (alive.add if is_made else alive.discard)(number)
    return kept


def _tag(step: EagerStep, number: int, part: str, is_kept: bool, weights: Sequence[Variable]) -> Tag:
    made, name = step.run.made[number], step.names[number]
    layer, variable = step.owners.find(name).layer, None
    role = f"{made.op} output"
    category = Category.ACTIVATIONS if is_kept else Category.TEMPORARIES
    if made.op == READ:
        category, role = Category.TEMPORARIES, "copy of a variable, made to read it"
    elif part == UPDATE:
        layer, category, role = OPTIMIZER, Category.TEMPORARIES, "update temporary"
    elif part == BACKWARD:
        fit = [one for one in weights if one.layer == layer and one.shape == made.shape and one.trainable]
        category, role = Category.TEMPORARIES, f"{role}, backward"
        if len(fit) == 1:
            category, role, variable = Category.GRADIENTS, "gradient", fit[0].weight
    return Tag(layer, name, category, role, variable, made.shape, made.dtype)
