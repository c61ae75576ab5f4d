"""Loops, conditionals and calls taken apart, as TensorFlow's runtime does it before Grappler sees a step.

A loop becomes a frame: each of its values goes through Enter, Merge and Switch into the body and from there through
NextIteration back to Merge, or through Exit out of it. A conditional becomes a Switch for each value that goes into its
branches and a Merge for each that comes out. What is called is put in the place of the call. Numbers in names follow
the order in which the runtime makes them, for Grappler's result depends on names. Source of the rules:
`lower_functional_ops.cc`, `lower_while_op.cc`, `lower_if_op.cc`, `lower_case_op.cc`, `inline_function_utils.cc`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import tensorflow as tf
from tensorflow.core.framework import function_pb2, graph_pb2, node_def_pb2, tensor_shape_pb2, types_pb2
from tensorflow.python.framework import function_def_to_graph

CONDITIONALS = {"If", "StatelessIf", "Case", "StatelessCase"}
LOOPS = {"While", "StatelessWhile"}
CALLS = {"PartitionedCall", "StatefulPartitionedCall"}

# Attributes of functions that the runtime leaves where they are called.
_NOT_INLINED = ("_noinline", "_XlaMustCompile")

Shapes = dict[str, Sequence[tensor_shape_pb2.TensorShapeProto]]


def lowered(definition: graph_pb2.GraphDef, numbered: int) -> tuple[graph_pb2.GraphDef, Shapes]:
    """`definition` without loops, conditionals and calls that can be taken apart.

    Args:
        definition: nodes, and the functions that they call.
        numbered: how many names have a number already.

    Returns:
        The graph, and by node what tracing found out about the shapes of what was inside functions.
    """
    library = {function.signature.name: function for function in definition.library.function}
    lowering = _Lowering(definition.node, library, numbered)
    made = graph_pb2.GraphDef(versions=definition.versions, library=definition.library)
    made.node.extend(lowering.run())
    return made, lowering.shapes


class _Lowering:
    """The nodes of a graph that is being taken apart.

    Nothing looks for the readers of what is replaced: what stands for a tensor or a node is noted, and told to all at
    the end.

    Attributes:
        shapes: by node, what tracing found out about the shapes of what was inside functions.
    """

    def __init__(
        self,
        nodes: Iterable[node_def_pb2.NodeDef],
        library: Mapping[str, function_pb2.FunctionDef],
        numbered: int,
    ) -> None:
        self._nodes = list(nodes)
        self._gone: set[int] = set()
        self._library = library
        self._bodies: dict[str, tuple[graph_pb2.GraphDef, Mapping[str, str]]] = {}
        self._number = numbered
        self._tensors: dict[str, str] = {}
        self._controls: dict[str, str] = {}
        self.shapes: Shapes = {}

    def run(self) -> list[node_def_pb2.NodeDef]:
        """Takes apart what can be, and what appears meanwhile; returns the nodes that are left."""
        position = 0
        while position < len(self._nodes):
            node = self._nodes[position]
            function = self._called_by(node)
            if function is not None:
                self._inline(node, function)
            elif node.op in LOOPS:
                self._lower_loop(node)
            elif node.op in CONDITIONALS:
                self._lower_conditional(node)
            else:
                position += 1
                continue
            self._gone.add(position)
            position += 1
        left = [node for position, node in enumerate(self._nodes) if position not in self._gone]
        for node in left:
            data = [self._tensor(name) for name in node.input if not name.startswith("^")]
            controls = sorted({f"^{self._control(name[1:])}" for name in node.input if name.startswith("^")})
            del node.input[:]
            node.input.extend([*data, *controls])
        return left

    def _called_by(self, node: node_def_pb2.NodeDef) -> function_pb2.FunctionDef | None:
        name = node.attr["f"].func.name if node.op in CALLS else node.op
        function = self._library.get(name)
        stays = function is not None and any(name in function.attr and function.attr[name].b for name in _NOT_INLINED)
        return None if stays else function

    def _inline(self, call: node_def_pb2.NodeDef, function: function_pb2.FunctionDef) -> None:
        body, flat = self._body(function)
        controls = [name for name in call.input if name.startswith("^")]
        before = [f"^{self._add(f'Func/{call.name}/input_control_node', 'NoOp', controls)}"] if controls else []
        inside: dict[str, str] = {}
        data = [name for name in call.input if not name.startswith("^")]
        for argument, source in zip(function.signature.input_arg, data, strict=True):
            inside[argument.name] = self._typed(f"Func/{call.name}/input", "Identity", [source, *before], argument.type)
        own = {node.name for node in body.node} - set(inside)

        def within(name: str) -> str:
            control, bare = ("^", name[1:]) if name.startswith("^") else ("", name)
            node, colon, output = bare.partition(":")
            if node in inside:
                return f"{control}{inside[node]}"
            return f"{control}{call.name}/{node}{colon}{output}"

        for node in body.node:
            if node.name not in own:
                continue
            copy = node_def_pb2.NodeDef()
            copy.CopyFrom(node)
            copy.name = f"{call.name}/{node.name}"
            if copy.attr["_output_shapes"].list.shape:
                self.shapes[copy.name] = list(copy.attr["_output_shapes"].list.shape)
            for attribute in ("_class", "_output_shapes"):
                copy.attr.pop(attribute, None)
            if "frame_name" in copy.attr:
                copy.attr["frame_name"].s = f"{call.name}/{copy.attr['frame_name'].s.decode()}".encode()
            del copy.input[:]
            copy.input.extend(within(name) for name in node.input)
            calls = node.op in CALLS or node.op in self._library
            if not node.input or (calls and not any(name.startswith("^") for name in node.input)):
                copy.input.extend(before)
            self._nodes.append(copy)
        outputs = [
            self._typed(f"Func/{call.name}/output", "Identity", [within(flat[function.ret[output.name]])], output.type)
            for output in function.signature.output_arg
        ]
        awaited = [within(f"^{name}") for name in function.control_ret.values()] or before
        done = self._add(f"Func/{call.name}/output_control_node", "NoOp", awaited)
        self._nodes.append(node_def_pb2.NodeDef(name=call.name, op="NoOp", input=[f"^{done}"]))
        self._replace(call.name, outputs, done)

    def _lower_loop(self, loop: node_def_pb2.NodeDef) -> None:
        types = list(loop.attr["T"].list.type)
        data = [self._tensor(name) for name in loop.input if not name.startswith("^")]
        controls = [name for name in loop.input if name.startswith("^")]
        condition, body = self._name(f"{loop.name}/cond"), self._name(f"{loop.name}/body")
        enters = []
        for source, dtype in zip(data, types, strict=True):
            enters.append(self._typed(f"{loop.name}/enter", "Enter", [source], dtype))
            made = self._nodes[-1]
            made.attr["frame_name"].s = loop.name.encode()
            made.attr["is_constant"].b = dtype == types_pb2.DT_RESOURCE
            made.attr["parallel_iterations"].i = loop.attr["parallel_iterations"].i or 10
        if controls:
            waiting = self._add(f"{loop.name}/LoopControlInputs", "NoOp", controls)
            for node in self._nodes[-1 - len(enters) : -1]:
                node.input.append(f"^{waiting}")
        # A handle is the same in all iterations, and goes around all of this.
        going = [position for position, dtype in enumerate(types) if dtype != types_pb2.DT_RESOURCE]
        values = dict(enumerate(enters))
        merges = {}
        for position in going:
            merges[position] = self._typed(
                f"{loop.name}/merge", "Merge", [enters[position]] * 2, types[position], outputs=2
            )
        merged = {position: self._nodes[len(self._nodes) - len(going) + n] for n, position in enumerate(going)}
        values.update(merges)
        inputs = [values[position] for position in range(len(types))]
        first = going[0]
        self._call(condition, loop.attr["cond"].func.name, [*inputs, f"^{merges[first]}"])
        decided = self._add(f"{loop.name}/LoopCond", "LoopCond", [condition])
        switches = {}
        for position in going:
            source = data[position].partition(":")[0]
            switches[position] = self._typed(
                f"{loop.name}/{source}_switch", "Switch", [merges[position], decided], types[position]
            )
        inputs = [f"{switches[n]}:1" if n in switches else enters[n] for n in range(len(types))]
        began = self._typed(f"{loop.name}/loop_body_control", "Identity", [f"{switches[first]}:1"], types[first])
        self._call(body, loop.attr["body"].func.name, [*inputs, f"^{began}"])
        exits = {
            position: self._typed(f"{loop.name}/exit", "Exit", [switches[position]], types[position])
            for position in going
        }
        done = self._add(f"{loop.name}/LoopExecuted", "NoOp", [f"^{name}" for name in exits.values()])
        self._nodes.append(node_def_pb2.NodeDef(name=loop.name, op="NoOp", input=[f"^{done}"]))
        for position in going:
            made = f"{body}:{position}" if position else body
            following = self._typed(f"{loop.name}/next_iteration", "NextIteration", [made, f"^{body}"], types[position])
            merged[position].input[1] = following
        self._replace(loop.name, [exits.get(n, data[n]) for n in range(len(types))], done)

    def _lower_conditional(self, node: node_def_pb2.NodeDef) -> None:
        is_if = "then_branch" in node.attr
        if is_if:
            # The first output of a Switch is for what is false.
            names = [("else", node.attr["else_branch"].func.name), ("then", node.attr["then_branch"].func.name)]
            pivots = ["pivot_f", "pivot_t"]
        else:
            names = [(f"branch{n}", branch.name) for n, branch in enumerate(node.attr["branches"].list.func)]
            pivots = [f"pivot_{n}" for n in range(len(names))]
        # What is true comes first where branches are called and where they meet.
        order = [1, 0] if is_if else list(range(len(names)))
        calls = {number: self._name(f"{node.name}/{names[number][0]}") for number in order}
        predicate, *data = (self._tensor(name) for name in node.input if not name.startswith("^"))
        controls = [name for name in node.input if name.startswith("^")]
        kind = node.attr["Tcond"].type if is_if else types_pb2.DT_INT32

        def switched(infix: str, source: str, dtype: int, *waiting: str) -> str:
            made = self._typed(
                f"{node.name}/{infix}", "Switch" if is_if else "_SwitchN", [source, predicate, *waiting], dtype
            )
            if not is_if:
                self._nodes[-1].attr["num_outs"].i = len(names)
            return made

        decided = switched("switch_pred", predicate, kind, *controls)
        branches = [
            self._typed(f"{node.name}/{pivot}", "Identity", [_output(decided, number)], kind)
            for number, pivot in enumerate(pivots)
        ]
        switches = [
            switched(source.partition(":")[0], source, dtype)
            for source, dtype in zip(data, node.attr["Tin"].list.type, strict=True)
        ]
        for number in order:
            inputs = [_output(switch, number) for switch in switches]
            self._call(calls[number], names[number][1], [*inputs, f"^{branches[number]}"])
        chosen = [calls[number] for number in order]
        merges = [
            self._typed(f"{node.name}/output", "Merge", [_output(call, number) for call in chosen], dtype, len(chosen))
            for number, dtype in enumerate(node.attr["Tout"].list.type)
        ]
        waiting = [*(branches[number] for number in order), *(f"^{call}" for call in chosen)]
        done = self._typed(f"{node.name}/branch_executed", "Merge", waiting, kind, len(chosen))
        self._nodes.append(node_def_pb2.NodeDef(name=node.name, op="NoOp", input=[f"^{done}"]))
        self._replace(node.name, merges, done)

    def _body(self, function: function_pb2.FunctionDef) -> tuple[graph_pb2.GraphDef, Mapping[str, str]]:
        name = function.signature.name
        if name not in self._bodies:
            known = graph_pb2.GraphDef()
            known.library.function.extend(self._library.values())
            with tf.Graph().as_default():
                # The functions that this one calls are looked up in the graph at hand; their own may be gone.
                tf.import_graph_def(known, name="")
                self._bodies[name] = function_def_to_graph.function_def_to_graph_def(function)
        return self._bodies[name]

    def _call(self, name: str, function: str, inputs: Sequence[str]) -> None:
        self._nodes.append(node_def_pb2.NodeDef(name=name, op=function, input=inputs))

    def _typed(self, infix: str, op: str, inputs: Sequence[str], dtype: int, outputs: int | None = None) -> str:
        name = self._add(infix, op, inputs)
        self._nodes[-1].attr["T"].type = dtype
        if outputs is not None:
            self._nodes[-1].attr["N"].i = outputs
        return name

    def _add(self, infix: str, op: str, inputs: Sequence[str]) -> str:
        name = self._name(infix)
        self._nodes.append(node_def_pb2.NodeDef(name=name, op=op, input=inputs))
        return name

    def _name(self, infix: str) -> str:
        self._number += 1
        return f"{infix}/_{self._number - 1}"

    def _replace(self, name: str, outputs: Sequence[str], done: str) -> None:
        for number, output in enumerate(outputs):
            self._tensors[_output(name, number)] = output
        self._controls[name] = done

    def _tensor(self, name: str) -> str:
        name = name.removesuffix(":0")
        while name in self._tensors:
            name = self._tensors[name].removesuffix(":0")
        return name

    def _control(self, name: str) -> str:
        while name in self._controls:
            name = self._controls[name]
        return name


def _output(name: str, number: int) -> str:
    return f"{name}:{number}" if number else name
