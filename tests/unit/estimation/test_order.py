"""The order of execution on small graphs, worked by hand."""

from __future__ import annotations

import pytest

from tensorboard_plugin_memest.estimation.order import INEXPENSIVE, InlineOrder, Learnt, PoolOrder


class Graph:
    """A graph that notes what happens: nodes are numbered in its order, `waits_for[n]` is what node n waits for."""

    def __init__(self, *waits_for: set[int]) -> None:
        self._pending = [set(waits) for waits in waits_for]
        self._waits_for = waits_for
        self.happened: list[str] = []

    @property
    def roots(self) -> list[int]:
        return [node for node, waits in enumerate(self._waits_for) if not waits]

    def start(self, node: int) -> None:
        assert not self._pending[node], f"{node} began before {self._pending[node]}"
        self.happened.append(f"{node}")

    def finish(self, node: int) -> list[int]:
        self.happened.append(f"{node}.")
        ready = []
        for other, pending in enumerate(self._pending):
            if node in pending:
                pending.remove(node)
                if not pending:
                    ready.append(other)
        return ready

    @property
    def started(self) -> list[int]:
        return [int(what) for what in self.happened if not what.endswith(".")]


# 0 readies 1 and 2, 1 readies 3 and 4, 2 readies 5; 6 waits for all.
TREE = (set(), {0}, {0}, {1}, {1}, {2}, {3, 4, 5})


def pool(threads: int, ops: list[str], seconds: list[float] | None = None) -> PoolOrder:
    return PoolOrder(threads, ops.__getitem__, (seconds or [1.0] * len(ops)).__getitem__)


def run(order: InlineOrder | PoolOrder, *waits_for: set[int]) -> Graph:
    graph = Graph(*waits_for)
    order.run(graph)
    return graph


def test_inline_runs_first_in_first_out():
    graph = run(InlineOrder(), *TREE)
    assert graph.started == [0, 1, 2, 3, 4, 5, 6]
    assert graph.happened[:4] == ["0", "0.", "1", "1."], "each is done before the next begins"


def test_inline_begins_with_all_roots_in_the_graphs_order():
    assert run(InlineOrder(), set(), {2}, set(), {0}).started == [0, 2, 3, 1]


def test_one_thread_runs_inexpensive_nodes_in_line():
    assert run(pool(1, ["Identity"] * 7), *TREE).started == [0, 1, 2, 3, 4, 5, 6]


def test_one_thread_goes_on_with_the_last_expensive_node_that_was_readied_and_then_its_newest_task():
    # 0 readies 1 and 2: 2 goes on at once, 1 becomes a task. 2 readies 5, which goes on. Then the task 1 follows, which
    # readies 3 and 4: 4 goes on, 3 becomes a task.
    assert run(pool(1, ["MatMul"] * 7), *TREE).started == [0, 2, 5, 1, 4, 3, 6]


def test_inexpensive_nodes_go_before_the_expensive_one_that_was_readied_with_them():
    # 1 is cheap and in line, so the expensive 2 has to become a task.
    ops = ["MatMul", "Identity", "MatMul", "Identity", "Identity", "MatMul", "MatMul"]
    assert run(pool(1, ops), *TREE).started == [0, 1, 3, 4, 2, 5, 6]


def test_one_node_readies_all_roots_so_the_last_expensive_one_goes_first_and_cheap_ones_before_any():
    assert run(pool(1, ["MatMul"] * 4), set(), set(), {0}, {2}).started == [1, 0, 2, 3]
    # Handles are cheap and all there before any of their readers, of which the last to become ready goes first.
    ops = ["VarHandleOp", "VarHandleOp", "VarHandleOp", "ReadVariableOp", "ReadVariableOp", "ReadVariableOp"]
    assert run(pool(1, ops), set(), set(), set(), {0}, {1}, {2}).started == [0, 1, 2, 5, 4, 3]


def test_two_threads_share_the_roots_and_run_side_by_side():
    graph = run(pool(2, ["MatMul"] * 2), set(), set())
    assert sorted(graph.happened[:2]) == ["0", "1"], "both begin before one ends"


def test_an_idle_thread_takes_the_oldest_task_of_the_other():
    # 0 readies 1, 2 and 3: 3 goes on at the same thread, 1 and 2 are tasks, the older one is 1.
    graph = run(pool(2, ["MatMul"] * 5, [1, 5, 1, 1, 1]), set(), {0}, {0}, {0}, {3})
    assert graph.happened[:2] == ["0", "0."]
    assert graph.started == [0, 3, 1, 4, 2]


def test_how_long_kernels_run_decides_between_threads():
    # Two chains, 0-2 and 1-3: the faster one is ahead.
    chains = (set(), set(), {0}, {1})
    assert run(pool(2, ["MatMul"] * 4, [1, 3, 1, 1]), *chains).happened == ["1", "0", "0.", "2", "2.", "1.", "3", "3."]
    assert run(pool(2, ["MatMul"] * 4, [3, 1, 1, 1]), *chains).happened == ["1", "0", "1.", "3", "3.", "0.", "2", "2."]


def test_the_batch_comes_when_the_pool_has_nothing_else_to_do():
    graph = run(pool(1, ["IteratorGetNext", "MatMul", "MatMul", "MatMul"]), set(), set(), {1}, {0})
    assert graph.started == [1, 2, 0, 3]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_node_runs_once_after_all_it_waits_for(threads):
    # A lattice: each node waits for its left and its upper neighbour.
    side = 6
    waits = [
        ({node - side} if node >= side else set()) | ({node - 1} if node % side else set())
        for node in range(side * side)
    ]
    ops = ["MatMul" if node % 3 else "Identity" for node in range(side * side)]
    graph = run(pool(threads, ops, [1 + node % 4 for node in range(side * side)]), *waits)
    assert sorted(graph.started) == list(range(side * side))


def test_a_kernel_that_is_quick_is_known_to_be_after_some_ninety_runs():
    learnt = Learnt(lambda node: 1_000.0 if node == 0 else 50_000.0)
    runs = 0
    while not learnt.cheap:
        learnt.ran(0)
        learnt.ran(1)
        runs += 1
    assert 85 < runs < 100
    assert learnt.cheap == {0}


def test_steps_that_are_alike_teach_as_much_as_if_they_had_run():
    seen, told = (Learnt(lambda node: 1_000.0) for _ in range(2))
    for _ in range(7 * 20):
        seen.ran(0)
    for _ in range(20):
        told.ran(0)
    for _ in range(2):
        told.again()
    assert not told.cheap
    for _ in range(4):
        told.again()
    assert told.cheap == seen.cheap == {0}


def test_reading_a_list_is_an_expensive_kernel_until_it_is_known_to_be_none():
    assert not {"TensorListGetItem", "TensorListReserve"} & INEXPENSIVE


def test_what_has_become_cheap_runs_in_line_with_what_always_was():
    def order_of(learnt):
        started = []

        class Fan:
            roots = (0,)

            def start(self, node):
                started.append(node)

            def finish(self, node):
                return (1, 2, 3) if node == 0 else ()

        PoolOrder(1, lambda node: "MatMul", lambda node: 1.0, learnt).of_many(4, ()).run(Fan())
        return started

    learnt = Learnt(lambda node: 10.0)
    # Of several expensive ones the last goes on in line, and the thread takes its newest task first.
    assert order_of(learnt) == [0, 3, 2, 1]
    for _ in range(100):
        for node in range(4):
            learnt.ran(node)
    assert order_of(learnt) == [0, 1, 2, 3]
