"""Constants that the runtime computes once, on small graphs worked by hand."""

from __future__ import annotations

from tensorboard_plugin_memest.estimation.folding import LARGEST, fold_constants, is_folded, is_made_once
from tensorboard_plugin_memest.estimation.graph import ASKED
from tests.unit.estimation.graphs import graph, node

MILLION = 10**6


def _mean_gradient(size: int = MILLION, *more):
    """The gradient of a mean: one number, repeated, then scaled, and multiplied with what depends on the batch."""
    return graph(
        node("x", "Placeholder", (), size),
        node("one", "Const", (), 1),
        node("times", "Const", (), 4),
        node("tile", "Tile", ["one", "times"], size),
        node("scaled", "Mul", ["tile", "one"], size),
        node("gradient", "Mul", ["x", "scaled"], size),
        *more,
    )


def _ops(made):
    return {one.name: one.op for one in made.nodes}


def test_what_depends_on_constants_alone_is_one_constant():
    made = _mean_gradient()
    fold_constants(made)
    constant = made.nodes[-1]
    assert (constant.op, constant.outputs[0].bytes) == ("Const", 4 * MILLION)
    assert is_folded(constant)
    assert constant.name.startswith("scaled/")
    gradient = next(one for one in made.nodes if one.name == "gradient")
    assert [made.nodes[source].name for source, _ in gradient.inputs] == ["x", constant.name]
    # Nobody needs what it was computed from.
    assert {_ops(made)[name] for name in ("one", "times", "tile", "scaled")} == {"NoOp"}


def test_an_op_that_another_waits_for_still_runs():
    # As Grappler leaves it: a constant of its own waits for the op that has become one.
    made = _mean_gradient(
        MILLION, node("two", "Const", ["^scaled"], 1), node("end", "Mul", ["gradient", "two"], MILLION)
    )
    fold_constants(made)
    ops = _ops(made)
    assert (ops["tile"], ops["scaled"], ops["one"]) == ("Tile", "Mul", "Const")
    gradient = next(one for one in made.nodes if one.name == "gradient")
    assert is_folded(made.nodes[gradient.inputs[1][0]])


def test_large_results_and_chance_are_left_to_the_run():
    large = _mean_gradient(LARGEST // 4 + 1)
    fold_constants(large)
    assert _ops(large)["scaled"] == "Mul"
    chance = graph(
        node("x", "Placeholder", (), 8),
        node("shape", "Const", (), 1),
        node("drawn", "RandomUniform", ["shape"], 8),
        node("sum", "AddV2", ["x", "drawn"], 8),
    )
    fold_constants(chance)
    assert _ops(chance)["drawn"] == "RandomUniform"
    assert len(chance.nodes) == 4


def test_what_the_step_returns_may_be_a_constant():
    made = _mean_gradient()
    made.fetches[:] = [(4, 0)]
    fold_constants(made)
    assert all(is_folded(made.nodes[index]) for index, _ in made.fetches)


def test_zeros_like_a_variable_are_made_in_every_step():
    made = graph(
        node("handle", "VarHandleOp", (), 0),
        node("shape", "VariableShape", ["handle"], 2, **{ASKED: b"handle"}),
        node("zero", "Const", (), 1),
        node("zeros", "Fill", ["shape", "zero"], MILLION),
        node("x", "Placeholder", (), MILLION),
        node("sum", "AddV2", ["x", "zeros"], MILLION),
    )
    fold_constants(made)
    assert _ops(made)["zeros"] == "Fill"
    assert not any(is_folded(one) for one in made.nodes)


def test_a_list_that_begins_alike_in_every_step_is_made_once():
    made = graph(
        node("shape", "Const", (), 1),
        node("most", "Const", (), 1),
        node("x", "Placeholder", (), 1),
        node("empty", "EmptyTensorList", ["shape", "most"], 0),
        node("reserved", "TensorListReserve", ["shape", "x"], 0),
        node("of tensors", "TensorListFromTensor", ["x", "shape"], 0),
    )
    assert [one.name for one in made.nodes if is_made_once(made, one)] == ["empty"]
