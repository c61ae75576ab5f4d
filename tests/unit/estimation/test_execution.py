"""Buffers of small graphs, worked by hand: who allocates, who takes over, who frees, and when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from tensorflow.core.framework.attr_value_pb2 import AttrValue

from tensorboard_plugin_memest.estimation.events import RELABEL, Buffer
from tensorboard_plugin_memest.estimation.execution import Execution
from tensorboard_plugin_memest.estimation.order import InlineOrder
from tensorboard_plugin_memest.estimation.program import Program
from tensorboard_plugin_memest.estimation.trial import trial_of
from tensorboard_plugin_memest.estimation.variable_store import VariableStore
from tensorboard_plugin_memest.estimation.variables import Variable
from tensorboard_plugin_memest.estimation.workspace.kernel import Workspace
from tensorboard_plugin_memest.memory.category import Category
from tests.unit.estimation.graphs import (
    Written,
    constant,
    graph,
    happens,
    node,
    peak,
    program,
    store,
    variable,
)


def test_outputs_come_when_a_node_starts_and_inputs_go_when_their_last_reader_ends():
    words = happens(
        graph(
            node("a", "MatMul", [], 100),
            node("b", "MatMul", ["a"], 50),
            node("c", "MatMul", ["a", "b"], 25),
            fetches=["c"],
        )
    )
    assert words == ["+400 a", "+200 b", "+100 c", "-400 c", "-200 c", "-100 c"]


def test_what_nobody_reads_goes_at_once():
    assert happens(graph(node("a", "Unique", [], 10, 20), node("b", "MatMul", ["a:1"], 5))) == [
        "+40 a",
        "+80 a",
        "-40 a",
        "+20 b",
        "-20 b",
        "-80 b",
    ]


def test_a_fetched_output_stays_to_the_end():
    words = happens(graph(node("a", "MatMul", [], 100), node("b", "MatMul", ["a"], 50), fetches=["a", "b"]))
    assert words == ["+400 a", "+200 b", "-400 b", "-200 b"]


def test_reshape_shares_its_inputs_memory_until_both_are_read():
    words = happens(
        graph(
            node("a", "MatMul", [], 100),
            node("same", "Reshape", ["a"], 100),
            node("early", "MatMul", ["a"], 1),
            node("late", "MatMul", ["same", "early"], 1),
        )
    )
    assert words == ["+400 a", "+4 early", "+4 late", "-4 late", "-400 late", "-4 late"]


def test_an_elementwise_op_takes_over_what_only_it_reads():
    words = happens(graph(node("a", "MatMul", [], 100), node("b", "Relu", ["a"], 100), fetches=["b"]))
    assert words == ["+400 a", "400 b", "-400 b"]


def test_it_allocates_where_somebody_else_still_reads_its_input():
    # In this order b runs before c, so a is still needed then.
    words = happens(
        graph(
            node("a", "MatMul", [], 100),
            node("b", "Relu", ["a"], 100),
            node("c", "MatMul", ["a", "b"], 1),
        )
    )
    assert words == ["+400 a", "+400 b", "+4 c", "-4 c", "-400 c", "-400 c"]


def test_the_last_reader_takes_over_although_there_were_others():
    words = happens(
        graph(
            node("a", "MatMul", [], 100),
            node("other", "MatMul", ["a"], 1),
            node("b", "Relu", ["a", "^other"], 100),
        )
    )
    assert words[:4] == ["+400 a", "+4 other", "-4 other", "400 b"]


def test_a_binary_op_takes_over_its_second_input_if_the_first_will_not_do():
    words = happens(
        graph(
            node("scalar", "MatMul", [], 1),
            node("a", "MatMul", [], 100),
            node("b", "Mul", ["scalar", "a"], 100),
            fetches=["b"],
        )
    )
    assert words == ["+4 scalar", "+400 a", "400 b", "-4 b", "-400 b"]


def test_two_inputs_that_are_one_buffer_are_two_references():
    words = happens(graph(node("a", "MatMul", [], 100), node("b", "Mul", ["a", "a"], 100)))
    assert words == ["+400 a", "+400 b", "-400 b", "-400 b"]


def test_a_constant_outlives_the_step_and_is_never_taken_over():
    made = program(graph(node("c", "Const", [], 100), node("b", "Relu", ["c"], 100)))
    assert [(event.buffer.bytes, event.op) for event in made.constant_events()] == [(400, "c")]
    assert happens(made) == ["+400 b", "-400 b"]
    assert happens(made) == ["+400 b", "-400 b"], "and again in the next step"


def test_what_a_layer_keeps_as_a_tensor_is_a_constant_too():
    made = graph(node("kept", "Placeholder", [], 100), node("b", "Relu", ["kept"], 100))
    made.held.add(0)
    runs = program(made)
    assert [(event.buffer.bytes, event.op) for event in runs.constant_events()] == [(400, "kept")]
    assert happens(runs) == ["+400 b", "-400 b"]


W = variable("w", 100)


def update(*between: tuple, op: str = "AssignSubVariableOp", value: str = "delta", size: int = 100) -> list:
    """A read of w, and an assignment to it of a value of its own."""
    return [
        node("handle", "VarHandleOp"),
        node("read", "ReadVariableOp", ["handle"], 100),
        node("delta", "MatMul", [], size),
        *between,
        node("assign", op, ["handle", value, "^read"]),
    ]


def test_reading_a_variable_costs_nothing():
    words = happens(
        graph(node("handle", "VarHandleOp"), node("read", "ReadVariableOp", ["handle"], 100), variables={"handle": W}),
        store(W),
    )
    assert words == []


def test_a_read_is_never_taken_over():
    made = graph(
        node("handle", "VarHandleOp"),
        node("read", "ReadVariableOp", ["handle"], 100),
        node("b", "Relu", ["read"], 100),
        variables={"handle": W},
    )
    assert happens(made, store(W)) == ["+400 b", "-400 b"]


@pytest.mark.parametrize("op", ["AssignSubVariableOp", "AssignAddVariableOp"])
def test_an_update_in_place_costs_nothing(op):
    held = store(W)
    buffer = held.buffers[W]
    assert happens(graph(*update(op=op), variables={"handle": W}), held) == ["+400 delta", "-400 assign"]
    assert held.buffers[W] is buffer


@pytest.mark.parametrize("op", ["AssignSubVariableOp", "AssignAddVariableOp"])
def test_an_update_while_the_old_value_is_read_copies_it_and_there_is_one_weight_at_a_time(op):
    held = store(W)
    before = held.buffers[W]
    made = graph(*update(op=op), node("late", "MatMul", ["read", "^assign"], 1), variables={"handle": W})
    events = Execution(program(made), InlineOrder(), held).run()
    words = [f"{event.kind} {event.buffer.bytes} {event.op}" for event in events]
    assert words == [
        "allocate 400 delta",
        "relabel 400 assign",
        "allocate 400 assign",
        "relabel 400 assign",
        "free 400 assign",
        "allocate 4 late",
        "free 4 late",
        "free 400 late",
    ]
    after = held.buffers[W]
    assert after is not before
    assert (after.references, after.is_resident) == (1, True)
    old = [event for event in events if event.kind == RELABEL and event.buffer is before]
    assert [(event.tag.category, event.tag.role) for event in old] == [(Category.TEMPORARIES, "old value, still read")]


def test_an_assigned_value_of_its_own_becomes_the_variables_memory():
    held = store(W)
    words = happens(graph(*update(op="AssignVariableOp"), variables={"handle": W}), held)
    # The old value goes with the assignment, and the new one stays after the step.
    assert words == ["+400 delta", "400 assign", "-400 assign"]
    assert (held.buffers[W].references, held.buffers[W].is_resident) == (1, True)


def test_an_assigned_value_that_somebody_else_reads_is_the_variables_memory_all_the_same():
    held = store(W)
    late = node("late", "MatMul", ["delta", "^assign"], 1)
    made = graph(*update(op="AssignVariableOp"), late, variables={"handle": W})
    assert happens(made, held) == ["+400 delta", "400 assign", "-400 assign", "+4 late", "-4 late"]
    assert (held.buffers[W].references, held.buffers[W].is_resident) == (1, True)


def test_variables_that_one_value_was_assigned_to_share_it_until_one_is_changed():
    # As measured: a variable of 4 MB to which another's value, or a constant, is assigned has no memory of its own.
    other = variable("other", 100)
    assigning = graph(
        node("handle", "VarHandleOp"),
        node("source", "VarHandleOp"),
        node("read", "ReadVariableOp", ["source"], 100),
        node("assign", "AssignVariableOp", ["handle", "read"]),
        variables={"handle": W, "source": other},
    )
    held = store(W, other)
    assert happens(assigning, held) == ["-400 assign"]
    assert held.buffers[W] is held.buffers[other]
    assert held.sharing == (frozenset([W, other]), frozenset())
    assert happens(graph(*update(), variables={"handle": W}), held) == [
        "+400 delta",
        "400 assign",
        "+400 assign",
        "400 assign",
        "-400 assign",
    ]
    assert held.sharing == (frozenset(), frozenset())


class Together:
    """Everything that is ready starts before any of it ends, as if each op had a thread of its own."""

    def run(self, steps):
        ready = list(steps.roots)
        while ready:
            for number in ready:
                steps.start(number)
            ready = [follower for number in ready for follower in steps.finish(number)]


def test_who_else_holds_a_value_is_the_first_variable_that_still_does():
    first, second, third = (variable(name, 10) for name in ("first", "second", "third"))
    held = store(first, second, third)
    shared = held.buffers[first]
    assert held.other_holder(shared, than=first) is None
    held.share(second, shared)
    held.share(third, shared)
    assert held.other_holder(shared, than=third) is first
    for gone, left in ((first, second), (second, third), (third, None)):
        assert held.other_holder(shared, than=gone) is left
        held.buffers[gone] = Buffer(gone.bytes)


@pytest.mark.parametrize(("order", "copies"), [(InlineOrder(), 1), (Together(), 2)])
def test_a_value_that_two_variables_share_is_copied_for_both_where_they_are_updated_at_once(order, copies):
    # As measured with two threads: the first step of Adam, whose slots of a weight begin as one tensor of zeros.
    other = variable("other", 100)
    read = node("read", "ReadVariableOp", ["source"], 100)
    handles = node("handle", "VarHandleOp"), node("source", "VarHandleOp")
    assigning = graph(
        *handles,
        read,
        node("assign", "AssignVariableOp", ["handle", "read"]),
        variables={"handle": W, "source": other},
    )
    held = store(W, other)
    happens(assigning, held)
    updates = [node(f"update_{name}", "AssignAddVariableOp", [name, f"delta_{name}"]) for name in ("handle", "source")]
    deltas = [node(f"delta_{name}", "MatMul", [], 100) for name in ("handle", "source")]
    words = happens(graph(*handles, *deltas, *updates, variables={"handle": W, "source": other}), held, order)
    assert sum(word.startswith("+400 update") for word in words) == copies
    assert held.buffers[W] is not held.buffers[other]
    assert [held.buffers[one].references for one in (W, other)] == [1, 1]


def test_a_variable_that_is_set_to_a_constant_has_its_memory():
    made = program(
        graph(
            node("handle", "VarHandleOp"),
            node("zeros", "Const", [], 100),
            node("assign", "AssignVariableOp", ["handle", "zeros"]),
            variables={"handle": W},
        )
    )
    made.constant_events()
    held = store(W)
    assert happens(made, held) == ["-400 assign"]
    assert happens(made, held) == []
    words = happens(graph(*update(), variables={"handle": W}), held)
    assert words.count("+400 assign") == 1, "the constant is not changed"


@pytest.mark.parametrize("op", ["AssignSubVariableOp", "AssignAddVariableOp", "AssignVariableOp"])
@pytest.mark.parametrize("rows", ["ResourceScatterAdd", "ResourceGather"])
def test_a_variable_whose_rows_were_looked_up_or_changed_is_copied_by_every_update(op, rows):
    # As measured: the peak is 4.2 MB higher for a variable of 4 MB, with any of these.
    held = store(W)
    made = graph(
        node("handle", "VarHandleOp"),
        node("row", "MatMul", [], 10),
        node("rows", rows, ["handle", "row"], 10),
        variables={"handle": W},
    )
    happens(made, held)
    words = happens(
        graph(
            node("handle", "VarHandleOp"),
            node("delta", "MatMul", [], 100),
            node("assign", op, ["handle", "delta"]),
            variables={"handle": W},
        ),
        held,
    )
    assert words == ["+400 delta", "+400 assign", "400 assign", "-400 assign", "-400 assign"]


def test_a_scatter_makes_later_reads_copies():
    held = store(W)
    made = graph(
        node("handle", "VarHandleOp"),
        node("rows", "MatMul", [], 10),
        node("scatter", "ResourceScatterAdd", ["handle", "rows"]),
        node("read", "ReadVariableOp", ["handle", "^scatter"], 100),
        node("use", "MatMul", ["read"], 1),
        variables={"handle": W},
    )
    assert happens(made, held) == ["+40 rows", "-40 scatter", "+400 read", "+4 use", "-4 use", "-400 use"]
    # And in the next step as well.
    reading = graph(
        node("handle", "VarHandleOp"), node("read", "ReadVariableOp", ["handle"], 100), variables={"handle": W}
    )
    assert happens(reading, held) == ["+400 read", "-400 read"]


def test_a_graph_with_a_cycle_is_refused():
    with pytest.raises(RuntimeError, match="1 of 3 ops became ready"):
        happens(graph(node("a", "MatMul", [], 1), node("b", "MatMul", ["a", "c"], 1), node("c", "MatMul", ["b"], 1)))


def looping(
    *body: Written, state: int, made: str, count: int, at_once: int = 1, after: Sequence[Written] = ()
) -> Program:
    """A loop as the runtime takes it apart: it counts to `count` and hands on what `made` makes of `state:1`."""

    def around(name: str, size: int, start: str, following: str) -> list[Written]:
        frame = {
            "frame_name": AttrValue(s=b"loop"),
            "parallel_iterations": AttrValue(i=at_once),
            "is_constant": AttrValue(b=False),
        }
        return [
            node(f"{name}/enter", "Enter", [start], size, **frame),
            node(f"{name}/merge", "Merge", [f"{name}/enter", f"{name}/next"], size),
            node(name, "Switch", [f"{name}/merge", "decided"], size, size),
            node(f"{name}/exit", "Exit", [name], size),
            node(f"{name}/next", "NextIteration", [following], size),
        ]

    return program(
        graph(
            constant("zero", 0),
            node("start", "MatMul", [], state),
            *around("n", 1, "zero", "counted"),
            *around("state", state, "start", made),
            constant("bound", count, ["^n/merge"]),
            node("less", "Less", ["n/merge", "bound"], 1),
            node("decided", "LoopCond", ["less"], 1),
            constant("one", 1, ["^n"]),
            node("counted", "AddV2", ["n:1", "one"], 1),
            *body,
            node("use", "MatMul", ["state/exit"], 1),
            *after,
        )
    )


def big(words: Sequence[str]) -> list[str]:
    """Words on tensors of more than one element."""
    return [word for word in words if abs(int(word.split()[0])) > 4]


BODY = [node("made", "MatMul", ["state:1"], 1000), node("next", "MatMul", ["made"], 100)]


def test_a_loop_hands_its_state_from_iteration_to_iteration():
    # The state of an iteration goes with the last that reads it, the first one's too.
    one = ["+4000 made", "-400 made", "+400 next", "-4000 next"]
    made = looping(*BODY, state=100, made="next", count=3)
    assert big(happens(made)) == ["+400 start", *one, *one, *one, "-400 use"]
    assert trial_of(made).iterations == {"loop": 3}


def test_a_loop_that_never_runs_passes_its_state_on():
    made = looping(*BODY, state=100, made="next", count=0)
    assert big(happens(made)) == ["+400 start", "-400 use"]


@pytest.mark.parametrize("at_once", [1, 2, 3, 10])
def test_what_does_not_wait_for_the_state_runs_ahead_as_far_as_iterations_overlap(at_once):
    body = [
        node("slow", "Sqrt", ["state:1"], 1000),
        *(node(f"slow{n}", "Sqrt", [f"slow{n - 1}" if n else "slow"], 1000) for n in range(60)),
        node("part", "MatMul", ["n:1"], 1000),
        node("added", "Mul", ["slow59", "part"], 1000),
    ]
    words = big(happens(looping(*body, state=1000, made="added", count=6, at_once=at_once)))
    assert [word for word in words if word == "+4000 part"] == ["+4000 part"] * 6
    # Beside the sum, one part for each iteration that is under way: as many as may be, or as there are.
    assert peak(words) // 4000 == 1 + min(at_once, 6)


def test_a_loop_runs_beside_what_does_not_wait_for_it():
    beside = node("beside", "MatMul", ["start"], 500)
    words = big(happens(looping(*BODY, state=100, made="next", count=3, after=[beside])))
    assert words.index("+2000 beside") < words.index("+4000 made")


def test_a_programs_ops_are_counted_as_often_as_they_run():
    three, four = (trial_of(looping(*BODY, state=100, made="next", count=count)).ops for count in (3, 4))
    # A Merge, a Switch, a NextIteration, and an Exit that nothing comes out of, for each value; five for the counter.
    assert four - three == 2 * 4 + 5 + len(BODY)
    plain = graph(node("a", "MatMul", [], 100), node("b", "MatMul", ["a"], 50))
    assert trial_of(program(plain)).ops == 2


def choosing(value: object, *, known: bool = True) -> Program:
    """A conditional as the runtime takes it apart: a heavy branch if true, a light one if not."""
    decided = constant("which", value) if known else node("which", "MatMul", [], 1)
    return program(
        graph(
            node("start", "MatMul", [], 100),
            decided,
            node("switch", "Switch", ["start", "which"], 100, 100),
            node("heavy", "MatMul", ["switch:1"], 1000),
            node("heavier", "MatMul", ["heavy"], 100),
            node("light", "MatMul", ["switch"], 100),
            node("output", "Merge", ["heavier", "light"], 100),
            node("use", "MatMul", ["output"], 1),
        )
    )


HEAVY = ["+400 start", "+4000 heavy", "-400 heavy", "+400 heavier", "-4000 heavier", "-400 use"]


def test_the_branch_that_is_chosen_runs_and_frees_its_argument_with_the_last_that_reads_it():
    assert big(happens(choosing(True))) == HEAVY
    assert big(happens(choosing(False))) == ["+400 start", "+400 light", "-400 light", "-400 use"]


def test_of_branches_that_the_data_decides_between_the_one_that_makes_more_is_taken():
    assert big(happens(choosing(None, known=False))) == HEAVY


def test_what_is_not_a_number_is_a_mishap_that_decides_for_no_branch():
    made = program(
        graph(
            node("start", "MatMul", [], 100),
            node("zeros", "Equal", ["start", "start"], 100),
            node("odd", "IsNan", ["start"], 100),
            node("either", "LogicalOr", ["zeros", "odd"], 100),
            node("which", "Any", ["either"], 1),
            node("switch", "Switch", ["start", "which"], 100, 100),
            node("heavy", "MatMul", ["switch:1"], 1000),
            node("light", "MatMul", ["switch"], 100),
            node("output", "Merge", ["heavy", "light"], 100),
        )
    )
    allocated = [word for word in happens(made) if word.startswith("+")]
    assert allocated == ["+400 start", "+400 zeros", "+400 odd", "+4 which", "+400 light"]


def test_a_variable_that_counts_decides_anew_in_each_step():
    counter = Variable("n", "(optimizer)", Category.UNATTRIBUTED, "state", None, (), "int32", 4, False)
    counting = node("handle", "VarHandleOp")
    one = program(
        graph(
            counting,
            constant("one", 1),
            node("add", "AssignAddVariableOp", ["handle", "one"]),
            node("read", "ReadVariableOp", ["handle", "^add"], 1),
            constant("every", 3),
            constant("zero", 0),
            node("rest", "FloorMod", ["read", "every"], 1),
            node("which", "Equal", ["rest", "zero"], 1),
            node("start", "MatMul", [], 100),
            node("switch", "Switch", ["start", "which"], 100, 100),
            node("heavy", "MatMul", ["switch:1"], 1000),
            node("light", "MatMul", ["switch"], 100),
            node("output", "Merge", ["heavy", "light"], 100),
            variables={"handle": counter},
        )
    )
    held = store(counter)
    held.values[counter] = np.asarray(0)
    assert ["+4000 heavy" in happens(one, held) for _ in range(7)] == [False, False, True] * 2 + [False]


FUNCTION = program(
    graph(
        node("state", "_Arg", [], 100),
        node("made", "MatMul", ["state"], 1000),
        node("next", "MatMul", ["made"], 100),
        fetches=["next"],
        arguments=["state"],
    )
)


def calling(called: Program) -> Program:
    made = program(
        graph(
            node("start", "MatMul", [], 100),
            node("call", "PartitionedCall", ["start"], 100),
            node("use", "MatMul", ["call"], 1),
        )
    )
    made.called[1] = called
    return made


def test_what_a_compiled_function_returns_is_never_what_it_was_given():
    def handing_on(*, is_compiled):
        made = program(graph(node("x", "_Arg", [], 100), fetches=["x"], arguments=["x"]))
        return replace(made, is_compiled=is_compiled)

    assert [word for word in happens(calling(handing_on(is_compiled=False))) if "+" in word] == ["+400 start", "+4 use"]
    copied = [word for word in happens(calling(handing_on(is_compiled=True))) if "+" in word]
    assert copied == ["+400 start", "+400 call", "+4 use"]


def test_a_call_runs_its_function_once():
    words = happens(calling(FUNCTION))
    assert words == [
        "+400 start",
        "+4000 call/made",
        "+400 call/next",
        "-4000 call/next",
        "400 call",
        "-400 call",
        "+4 use",
        "-4 use",
        "-400 use",
    ]
    assert trial_of(calling(FUNCTION)).ops == 3 + 3


def test_a_functions_argument_can_be_its_result():
    passing = program(graph(node("x", "_Arg", [], 100), fetches=["x"], arguments=["x"]))
    assert happens(calling(passing)) == [
        "+400 start",
        "400 call",
        "+4 use",
        "-4 use",
        "-400 use",
    ]


def test_every_buffer_of_a_step_goes_but_the_variables():
    late = node("late", "MatMul", ["read", "^assign"], 1)
    made = graph(*update(op="AssignVariableOp"), late, variables={"handle": W})
    held = store(W)
    for _ in range(3):
        level = 400 + sum(int(word.split()[0]) for word in happens(made, held) if word[0] in "+-")
        assert level == 400


def test_a_store_without_the_variable_is_an_error():
    reading = node("read", "ReadVariableOp", ["handle"], 100)
    made = graph(node("handle", "VarHandleOp"), reading, variables={"handle": W})
    with pytest.raises(KeyError):
        happens(made, VariableStore())


def test_workspace_comes_around_the_outputs_and_goes_before_anything_else():
    made = program(graph(node("a", "MatMul", [], 100), node("b", "MatMul", ["a"], 50)))
    made.workspaces = {1: Workspace(before=[7], after=[8, 9])}
    assert happens(made) == ["+400 a", "+7 b", "+200 b", "+8 b", "+9 b", "-7 b", "-8 b", "-9 b", "-200 b", "-400 b"]


def test_workspace_is_told_as_such():
    made = program(graph(node("a", "MatMul", [], 100)))
    made.workspaces = {0: Workspace(after=[8])}
    events = Execution(made, InlineOrder(), VariableStore()).run()
    scratch = [event.tag for event in events if event.buffer.is_scratch and event.tag]
    assert [(tag.category, tag.name, tag.shape) for tag in scratch] == [(Category.WORKSPACE, "a:0", None)]


def test_an_input_that_nobody_else_needs_spares_workspace():
    lonely = program(graph(node("a", "MatMul", [], 100), node("b", "MatMul", ["a"], 50)))
    shared = program(graph(node("a", "MatMul", [], 100), node("b", "MatMul", ["a"], 50), fetches=["a"]))
    for made in (lonely, shared):
        made.workspaces = {1: Workspace(before=[400, 7], taken_over=0)}
    assert happens(lonely)[1:3] == ["+7 b", "+200 b"]
    assert happens(shared)[1:4] == ["+400 b", "+7 b", "+200 b"]


def test_an_input_that_nobody_else_needs_becomes_the_output_of_a_kernel_that_takes_it():
    lonely = program(graph(node("a", "MatMul", [], 100), node("b", "MaxPoolGrad", ["a"], 100)))
    shared = program(graph(node("a", "MatMul", [], 100), node("b", "MaxPoolGrad", ["a"], 100), fetches=["a"]))
    for made in (lonely, shared):
        made.workspaces = {1: Workspace(before=[7], becomes=0)}
    assert [step for step in happens(lonely) if step.startswith("+")] == ["+400 a", "+7 b"]
    assert [step for step in happens(shared) if step.startswith("+")] == ["+400 a", "+7 b", "+400 b"]


def test_an_old_value_that_is_still_read_when_another_takes_its_place_is_no_weight_any_more():
    one = variable("w", 100)
    made = graph(
        node("w", "VarHandleOp"),
        node("read", "ReadVariableOp", ["w"], 100),
        node("new", "MatMul", ["read"], 100),
        node("set", "AssignVariableOp", ["w", "new"]),
        node("use", "MatMul", ["read", "^set"], 1),
        variables={"w": one},
    )
    runs = program(made)
    events = Execution(runs, InlineOrder(), store(one)).run()
    labels = [event.tag.role for event in events if event.kind == RELABEL and event.op == "set" and event.tag]
    assert labels == ["old value, still read", "weight"]
