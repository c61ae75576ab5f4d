from __future__ import annotations

from tensorboard_plugin_memest.estimation.executor_graph import ORDERED_EDGES, _ordered, edges_of, executor_edges
from tensorboard_plugin_memest.estimation.onednn import merge_bias_gradients, merged_bias_gradients
from tests.unit.estimation.graphs import graph, node


def test_followers_are_in_the_order_of_the_nodes_data_before_control():
    made = graph(node("a", "Placeholder", (), 1), node("b", "NoOp", ["^a"]), node("c", "Add", ["a", "a"], 1))
    edges = edges_of(made)
    assert edges.roots == [0]
    assert edges.followers == [[2, 2, 1], [], []]


def test_few_edges_stay_in_the_order_in_which_they_came():
    items = list(range(ORDERED_EDGES))
    assert _ordered(items, items, 4096) == items


def test_many_edges_are_in_the_order_of_a_table_of_their_addresses():
    items = list(range(9))
    # Eight places while the first six come, then sixteen. An edge has 32 bytes: those of 256 bytes want one place, and
    # who finds it taken looks 1, 3, 6 and 10 places on.
    assert _ordered(items, items, 0) == [0, 1, 8, 4, 6, 2, 3, 7, 5]
    assert _ordered(items, items, 256) == [3, 5, 0, 8, 1, 6, 4, 2, 7]
    # Where in its 256 bytes the first edge lies matters only to what crosses their end.
    assert _ordered(items, items, 16) == _ordered(items, items, 0)


def test_what_onednn_replaces_comes_last_and_so_ready_at_the_same_time_it_is_looked_at_last():
    made = graph(
        node("x", "Placeholder", (), 4),
        node("product", "MatMul", ["x", "x"], 4),
        node("sum", "Add", ["x", "x"], 4),
        node("after", "Mul", ["product", "sum"], 4),
    )
    assert executor_edges(made, onednn=False, seed=0).followers[0] == [1, 1, 2, 2]
    assert executor_edges(made, onednn=True, seed=0).followers[0] == [2, 2, 1, 1]


def test_the_same_seed_gives_the_same_edges():
    made = graph(*[node(f"n{number}", "Placeholder", (), 1) for number in range(40)])
    assert executor_edges(made, onednn=True, seed=3) == executor_edges(made, onednn=True, seed=3)
    orders = {tuple(executor_edges(made, onednn=True, seed=seed).roots) for seed in range(6)}
    assert len(orders) > 1
    assert all(sorted(order) == list(range(40)) for order in orders)


def _with_bias():
    return graph(
        node("x", "Placeholder", (), 8),
        node("sizes", "Placeholder", (), 4),
        node("dy", "Placeholder", (), 8),
        node("filter", "Conv2DBackpropFilter", ["x", "sizes", "dy"], 9),
        node("filter2", "Conv2DBackpropFilter", ["x", "sizes", "dy"], 9),
        node("bias", "BiasAddGrad", ["dy"], 2),
        node("alone", "BiasAddGrad", ["x"], 2),
        node("update", "Mul", ["bias", "bias"], 2),
    )


def test_a_bias_gradient_is_made_by_the_first_convolution_that_has_the_same_gradient():
    made = _with_bias()
    merge_bias_gradients(made)
    assert [output.bytes for output in made.nodes[3].outputs] == [36, 8]
    assert [output.bytes for output in made.nodes[4].outputs] == [36]
    assert (made.nodes[5].op, made.nodes[5].inputs) == ("Identity", [(3, 1)])
    assert made.nodes[6].op == "BiasAddGrad"
    assert list(merged_bias_gradients(made)) == [(5, 3)]


def test_merged_or_not_every_node_is_looked_at_as_often_as_it_waits():
    made = _with_bias()
    merge_bias_gradients(made)
    edges = executor_edges(made, onednn=True, seed=1)
    seen = sorted(follower for followers in edges.followers for follower in followers)
    assert seen == sorted(index for index, one in enumerate(made.nodes) for _ in one.inputs)
