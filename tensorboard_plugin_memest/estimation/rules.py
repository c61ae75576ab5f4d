"""Where each op's outputs come from: memory of their own, or an input's.

Source of the rules: the kernels in `tensorflow/core/kernels` (`forward_input_or_allocate_output`,
`set_output(i, input)`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tensorboard_plugin_memest.estimation.graph import Node, Output, StepGraph, constant_value

# The output is the input's buffer under another shape.
_ALIASES = {
    "Identity",
    "StopGradient",
    "PreventGradient",
    "Reshape",
    "Squeeze",
    "ExpandDims",
    "CheckNumerics",
    "EnsureShape",
    "PlaceholderWithDefault",
    "Bitcast",
    # Grappler makes a sum of several gradients one variable that lives within the step, and adds to it in place.
    "Assign",
    "AssignAdd",
    "AssignSub",
    "DestroyTemporaryVariable",
    # Into a loop and out of it, and on to the next iteration; of those that meet, only one comes.
    "Enter",
    "Exit",
    "NextIteration",
    "LoopCond",
    "Merge",
}

# The input goes to one of the outputs.
_SWITCHES = {"Switch", "_SwitchN"}

# The output is the input itself where the op has nothing to do: same element count and type.
_ALIASES_IF_UNCHANGED = {
    "Cast",
    "Pad",
    "PadV2",
    "Tile",
    "BroadcastTo",
    "Sum",
    "Mean",
    "Max",
    "Min",
    "Prod",
    "Transpose",
    "StridedSlice",
}

# The output is a part of the input's buffer where that is cut along its first dimension, at addresses fit for Eigen; by
# the op's type, the index of the input. Source: `split_op.cc`, `unpack_op.cc`, `slice_op.cc`, `strided_slice_op.cc`.
_CUTS = {"Split": 1, "SplitV": 0, "Unpack": 0, "Slice": 0, "StridedSlice": 0}
_ALIGNMENT = 64

# Ops of which the values of an input decide where their output lies: the order of a transpose, a slice's steps.
DECIDED_BY = {"Transpose": 1, "StridedSlice": 3}

_UNARY = {
    "Abs", "Neg", "Sign", "Square", "Sqrt", "Rsqrt", "Exp", "Expm1", "Log", "Log1p", "Sin", "Cos", "Tan", "Asin",
    "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "Tanh", "Sigmoid", "Erf", "Erfc", "Erfinv", "Lgamma",
    "Digamma", "Reciprocal", "Inv", "Floor", "Ceil", "Round", "Rint", "Relu", "Relu6", "LeakyRelu", "Elu", "Selu",
    "Softplus", "Softsign", "Softmax", "LogSoftmax", "LogicalNot", "BiasAdd", "ClipByValue", "Conj", "OnesLike",
    "ZerosLike", "Invert", "CollectiveReduceV2", "_UnaryOpsComposition", "Snapshot", "MatrixBandPart", "MatrixSetDiag",
    "MatrixSetDiagV2", "MatrixSetDiagV3", "TensorStridedSliceUpdate", "FakeQuantWithMinMaxArgs", "AdjustHue", "Dawsn",
    "Cholesky", "MatrixInverse", "BesselI0e", "BesselI1e", "Ndtri", "Expint", "Spence", "FresnelCos", "FresnelSin",
}  # fmt: skip

_BINARY = {
    "Add", "AddV2", "Sub", "Mul", "Div", "RealDiv", "FloorDiv", "TruncateDiv", "DivNoNan", "MulNoNan", "Xdivy", "Xlogy",
    "Xlog1py", "Maximum", "Minimum", "Pow", "SquaredDifference", "Mod", "FloorMod", "TruncateMod", "Atan2",
    "LogicalAnd", "LogicalOr", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "LeftShift", "RightShift", "ReluGrad",
    "Relu6Grad", "LeakyReluGrad", "EluGrad", "SeluGrad", "SoftplusGrad", "SoftsignGrad", "TanhGrad", "SigmoidGrad",
    "SqrtGrad", "RsqrtGrad", "ReciprocalGrad", "InvGrad", "NextAfter", "Betainc", "Igamma", "Igammac", "Polygamma",
    "Zeta", "Equal", "NotEqual",
}  # fmt: skip

# The logits' buffer may become the gradient, the second output.
_CROSS_ENTROPY = {"SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits"}


@dataclass(frozen=True)
class Source:
    """Where one output comes from.

    Attributes:
        alias_of: index of the input whose buffer it is, whoever else reads that; None if it is not.
        reuses: indices of inputs whose buffer it takes over if nobody else needs it any more, in order of preference.
    """

    alias_of: int | None = None
    reuses: tuple[int, ...] = ()


OWN = Source()


def source_in(graph: StepGraph, node: Node, output: int) -> Source:
    """Where output number `output` of a node of `graph` comes from."""
    inputs = [graph.nodes[source].outputs[number] for source, number in node.inputs]
    return source_of(node, output, inputs, _deciding(graph, node))


def source_of(node: Node, output: int, inputs: Sequence[Output], deciding: Sequence[int] | None = None) -> Source:
    """Where output number `output` of `node` comes from, given what its inputs are.

    Args:
        node: any.
        output: number of its output.
        inputs: what it reads.
        deciding: the values of the input that `DECIDED_BY` names; None where there is none or they are not known.
    """
    op = node.op.removeprefix("_Mkl").removeprefix("Native") if node.op.startswith("_Mkl") else node.op
    alias = alias_of(op, output, node.outputs[output], inputs, lambda name: node.attributes[name].i, deciding)
    if alias is not None:
        return Source(alias_of=alias)
    if op in _UNARY and output == 0:
        return Source(reuses=(0,))
    if op in _BINARY and output == 0:
        return Source(reuses=(0, 1))
    if op in ("Select", "SelectV2"):
        return Source(reuses=(1, 2))
    if op == "AddN":
        return Source(reuses=tuple(range(len(inputs))))
    if op == "_FusedConv2D" and b"Add" in node.attributes["fused_ops"].list.s:
        # What is added to the result is taken for it.
        return Source(reuses=(3,))
    if op in _CROSS_ENTROPY and output == 1:
        return Source(reuses=(0,))
    return OWN


def alias_of(
    op: str,
    output: int,
    made: Output,
    inputs: Sequence[Output],
    attribute: Callable[[str], int],
    deciding: Sequence[int] | None = None,
) -> int | None:
    """Which of its inputs' memory an output is, whoever else reads that; None if it has its own.

    Args:
        op: the op's type.
        output: the number of the output.
        made: the output.
        inputs: what the op is given.
        attribute: the value of a whole number among its attributes, by name.
        deciding: as for `source_of`.
    """
    if op == "IdentityN":
        return output
    if op in _SWITCHES:
        return 0
    if op == "StridedSlice" and (deciding is None or set(deciding) - {1}):
        # It leaves something out, or turns it around.
        return None
    if output == 0 and (op in _ALIASES or (op in _ALIASES_IF_UNCHANGED and _unchanged(op, made, inputs[0], deciding))):
        return 0
    if op == "Pack" and len(inputs) == 1:
        return 0
    if op in _CUTS and _is_cut(op, made, inputs[_CUTS[op]], attribute):
        return _CUTS[op]
    return None


def can_take_over(taken: Output, wanted: Output) -> bool:
    """Whether an input's buffer is fit to be an output: the same type and number of elements."""
    return taken.dtype == wanted.dtype and taken.bytes == wanted.bytes and wanted.shape is not None


def _deciding(graph: StepGraph, node: Node) -> list[int] | None:
    """The values of the input that decides, where it is a constant, also one from outside of a loop."""
    if node.op not in DECIDED_BY:
        return None
    given = graph.nodes[node.inputs[DECIDED_BY[node.op]][0]]
    while given.op in ("Enter", "Identity"):
        given = graph.nodes[given.inputs[0][0]]
    value = constant_value(given)
    return None if value is None else [int(one) for one in value]


def _unchanged(op: str, made: Output, given: Output, deciding: Sequence[int] | None) -> bool:
    if made.dtype != given.dtype or made.shape is None or made.bytes != given.bytes:
        return False
    if op == "Transpose":
        # Only dimensions of size 1 moved, so the order of the elements is the same.
        if given.shape is None or deciding is None:
            return False
        moved = [axis for axis in deciding if given.shape[axis] != 1]
        return moved == sorted(moved)
    return True


def _is_cut(op: str, made: Output, given: Output, attribute: Callable[[str], int]) -> bool:
    """Whether `made` is a stretch of `given` along its first dimension, and begins where Eigen wants it to."""
    if not given.shape or not given.bytes or made.shape is None or made.dtype != given.dtype:
        return False
    if given.bytes // given.shape[0] % _ALIGNMENT:
        return False
    if op == "Unpack":
        return attribute("axis") in (0, -len(given.shape))
    if op == "StridedSlice" and (attribute("new_axis_mask") or attribute("shrink_axis_mask") > 1):
        return False
    if op == "StridedSlice" and attribute("shrink_axis_mask"):
        return made.shape == given.shape[1:]
    return made.shape[1:] == given.shape[1:] and len(made.shape) == len(given.shape)
