"""What an execution runs: a graph with the functions it calls, each tensor tagged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from tensorboard_plugin_memest.estimation.branches import SWITCHES
from tensorboard_plugin_memest.estimation.events import ALLOCATE, Buffer, Event
from tensorboard_plugin_memest.estimation.graph import StepGraph, Value
from tensorboard_plugin_memest.estimation.lists import LIST_OPS
from tensorboard_plugin_memest.estimation.plan import Plan, plan_of
from tensorboard_plugin_memest.estimation.tag import Tag
from tensorboard_plugin_memest.estimation.variables import Variable
from tensorboard_plugin_memest.estimation.workspace.kernel import Workspace

# Ops of which an execution knows more than where their outputs come from.
_SPECIAL = {"Const", "ReadVariableOp", "Merge"} | SWITCHES | LIST_OPS

# Of a node that makes one output at most, as most do: which output of all in the graph that is (None for none); the one
# whose buffer it has (None if its own); those whose buffers it may take over; its bytes; its tag.
Plain = tuple[int | None, int | None, tuple[int, ...], int, Tag | None]
_NOTHING: Plain = (None, None, (), 0, None)


@dataclass(frozen=True)
class Trial:
    """What a run of a program comes to.

    Attributes:
        ops: how many ops run.
        iterations: how often the bodies of loops run, by name; of one that runs several times, at most.
        undecided: names of loops of which the data decides that, which were counted once.
    """

    ops: int
    iterations: Mapping[str, int]
    undecided: frozenset[str]


@dataclass
class Program:
    """A graph, what its tensors are, and what its kernels keep; with those of the functions it calls.

    Attributes:
        graph: the graph.
        tags: for each node, what each of its outputs is.
        constants: the buffers of the graph's constants, by node, which outlive the step.
        called: for a node that calls a function which the runtime leaves where it is, its program.
        workspaces: what the kernels of some nodes allocate for themselves while they run.
        is_compiled: whether it is a function that XLA compiles.
        values: what variables hold before the first step, as far as it is known.
        trial: what a run of it comes to, once somebody asked (`trial_of`).
    """

    graph: StepGraph
    tags: Sequence[Sequence[Tag]]
    constants: dict[int, Buffer] = field(default_factory=dict)
    called: dict[int, Program] = field(default_factory=dict)
    workspaces: Mapping[int, Workspace] = field(default_factory=dict)
    is_compiled: bool = False
    values: Mapping[Variable, Value] = field(default_factory=dict)
    trial: Trial | None = None

    @cached_property
    def plan(self) -> Plan:
        """What every run of the graph has in common."""
        return plan_of(self.graph)

    @cached_property
    def plain(self) -> list[Plain | None]:
        """What there is to do for each node that only makes its output, if it has one; None for others."""
        plan = self.plan
        special = {*self.called, *self.workspaces, *self.graph.variable_of, *self.graph.arguments}
        special |= {*self.graph.held, *self.graph.fed, *plan.deciding, *plan.joining}
        found: list[Plain | None] = []
        for index, node in enumerate(self.graph.nodes):
            reads_handle = bool(node.inputs) and node.inputs[0][0] in self.graph.variable_of
            if index in special or len(node.outputs) > 1 or node.op in _SPECIAL or reads_handle:
                found.append(None)
            elif not node.outputs:
                found.append(_NOTHING)
            else:
                source, given = plan.sources[index][0], plan.given[index]
                alias = None if source.alias_of is None else given[source.alias_of]
                reuses = tuple(given[one] for one in source.reuses)
                found.append((plan.made[index][0], alias, reuses, node.outputs[0].bytes, self.tags[index][0]))
        return found

    @property
    def fed(self) -> list[Buffer]:
        """Of what outlives a step, the batch that it is called with."""
        return [self.constants[index] for index in sorted(self.graph.fed & self.constants.keys())]

    def constant_events(self) -> list[Event]:
        """What outlives a step comes to life, once: constants, of called functions too, what layers hold, what is fed.

        A fed batch is replaced by the next one, but in a loop there always is one.
        """
        outside = self.graph.held | self.graph.fed
        events = []
        for index, node in enumerate(self.graph.nodes):
            if (node.op == "Const" or index in outside) and node.outputs[0].bytes:
                self.constants[index] = Buffer(node.outputs[0].bytes, references=1, is_resident=True)
                events.append(Event(ALLOCATE, self.constants[index], node.name, self.tags[index][0]))
        for program in self.called.values():
            events += program.constant_events()
        return events
