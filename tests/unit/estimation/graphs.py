"""Small graphs made by hand, and what happens to memory when they run, in short words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import tensorflow as tf
from tensorflow.core.framework.attr_value_pb2 import AttrValue

from tensorboard_plugin_memest.estimation.events import ALLOCATE, FREE, Buffer, Event
from tensorboard_plugin_memest.estimation.execution import Execution
from tensorboard_plugin_memest.estimation.graph import Node, Output, StepGraph
from tensorboard_plugin_memest.estimation.order import InlineOrder, Order
from tensorboard_plugin_memest.estimation.program import Program
from tensorboard_plugin_memest.estimation.tag import Tag
from tensorboard_plugin_memest.estimation.variable_store import VariableStore
from tensorboard_plugin_memest.estimation.variables import Variable
from tensorboard_plugin_memest.memory.category import Category

# Bytes of a float32 tensor of the shape that a test names by its number of elements.
F = 4


# A name, an op's type, inputs, what it makes, and attributes.
Written = tuple[str, str, Sequence[str], tuple[int, ...], Mapping[str, object]]


def node(name: str, op: str, inputs: Sequence[str] = (), *made: int, **attributes: object) -> Written:
    """A node that makes float32 vectors of `made` elements; inputs are names, `"name:1"`, or `"^name"` to wait only."""
    return name, op, inputs, made, attributes


def constant(name: str, value: object, inputs: Sequence[str] = ()) -> Written:
    """A constant of whole numbers or truths."""
    return node(name, "Const", inputs, 1, value=AttrValue(tensor=tf.make_tensor_proto(value)))


def graph(
    *nodes: Written,
    fetches: Sequence[str] = (),
    variables: Mapping[str, Variable] | None = None,
    arguments: Sequence[str] = (),
) -> StepGraph:
    """A graph of `nodes`, each before those that need it or after."""
    index = {name: number for number, (name, *_) in enumerate(nodes)}

    def source(text: str) -> tuple[int, int]:
        name, _, output = text.partition(":")
        return index[name], int(output or 0)

    return StepGraph(
        nodes=[
            Node(
                name=name,
                op=op,
                inputs=[source(text) for text in inputs if not text.startswith("^")],
                control_inputs=[index[text[1:]] for text in inputs if text.startswith("^")],
                outputs=[Output((size,), "float32", size * F) for size in made] or [Output(None, "resource", 0)],
                attributes=attributes,
            )
            for name, op, inputs, made, attributes in nodes
        ],
        variable_of={index[name]: variable for name, variable in (variables or {}).items()},
        fetches=[source(text) for text in fetches],
        unknown=[],
        arguments=[index[name] for name in arguments],
    )


def variable(name: str, size: int) -> Variable:
    """A weight of `size` float32 elements."""
    return Variable(name, name, Category.WEIGHTS, "weight", name, (size,), "float32", size * F, True)


def program(made: StepGraph) -> Program:
    """A program whose tags are the nodes' names."""
    return Program(
        made,
        [
            [Tag("", f"{one.name}:{n}", Category.TEMPORARIES, "", None, None, None) for n in range(len(one.outputs))]
            for one in made.nodes
        ],
    )


def store(*variables: Variable) -> VariableStore:
    """A store with a buffer for each of `variables`."""
    return VariableStore({one: Buffer(one.bytes, references=1, is_resident=True) for one in variables})


def happens(made: StepGraph | Program, held: VariableStore | None = None, order: Order | None = None) -> list[str]:
    """What running a graph does to memory, in short words.

    Returns:
        `"+400 a"` where a allocates, `"-400 b"` where something goes while b runs, and `"400 b"` where a buffer holds
        something else from b on.
    """
    runs = made if isinstance(made, Program) else program(made)
    events = Execution(runs, order or InlineOrder(), held or VariableStore()).run()
    return [in_words(event) for event in events]


def in_words(event: Event) -> str:
    sign = {ALLOCATE: "+", FREE: "-"}.get(event.kind, "")
    return f"{sign}{event.buffer.bytes} {event.op}"


def peak(words: Sequence[str]) -> int:
    """The highest sum of what `happens` told."""
    level = highest = 0
    for word in words:
        size = word.split()[0]
        level += int(size) if size[0] in "+-" else 0
        highest = max(highest, level)
    return highest
