"""Phases of a run: what is known from one step to the next is not worked out again, and comes out the same."""

from __future__ import annotations

import math

import keras
import pytest

import memest
from tensorboard_plugin_memest.estimation.allocator import BfcAllocator
from tensorboard_plugin_memest.estimation.births import Birth
from tensorboard_plugin_memest.estimation.device import Device
from tensorboard_plugin_memest.estimation.eager import EagerRun, Made
from tensorboard_plugin_memest.estimation.events import ALLOCATE, Buffer, Event
from tensorboard_plugin_memest.estimation.execution import Execution
from tensorboard_plugin_memest.estimation.order import InlineOrder, Learnt, PoolOrder
from tensorboard_plugin_memest.estimation.phases import KEPT_EVENTS, STEADY_STEPS, TYPICAL, Further, Run, phases_of
from tensorboard_plugin_memest.estimation.replay import Memory
from tensorboard_plugin_memest.estimation.tag import variable_tag
from tensorboard_plugin_memest.estimation.variable_store import VariableStore
from tests.unit.estimation.graphs import graph, node, program, variable
from tests.unit.estimation.test_execution import looping

W, V = variable("w", 700), variable("v", 300)


def _there(*variables):
    """Variables that exist before, of which nothing says how they came to be."""
    return [Birth(one, EagerRun([], [], None, one.shape, one.dtype)) for one in variables]


def _moving():
    """A step whose variables take over their new values' memory, of sizes that leave holes, or copy while read."""
    return graph(
        node("w", "VarHandleOp"),
        node("v", "VarHandleOp"),
        node("read", "ReadVariableOp", ["w"], 700),
        node("other", "ReadVariableOp", ["v"], 300),
        node("wide", "MatMul", ["read"], 9000),
        node("new", "MatMul", ["wide"], 700),
        node("set", "AssignVariableOp", ["w", "new"]),
        node("small", "MatMul", ["wide", "other"], 300),
        node("sub", "AssignSubVariableOp", ["v", "small"]),
        node("late", "MatMul", ["other", "^sub"], 40),
        variables={"w": W, "v": V},
    )


def _scattered():
    """A step that makes every later read of its variable a copy."""
    return graph(
        node("w", "VarHandleOp"),
        node("read", "ReadVariableOp", ["w"], 700),
        node("rows", "MatMul", ["read"], 10),
        node("add", "ResourceScatterAdd", ["w", "rows"]),
        variables={"w": W},
    )


@pytest.mark.parametrize("made", [_moving(), _scattered()], ids=["moving", "scattered"])
def test_steps_are_as_if_each_ran_anew(made):
    device = Device("GPU", "growth", None, 1)
    variables = list(made.variable_of.values())
    memory, store = Memory(BfcAllocator()), VariableStore()
    for one in variables:
        store.buffers[one] = Buffer(one.bytes, references=1, is_resident=True)
        memory.peak_of([Event(ALLOCATE, store.buffers[one], one.name, variable_tag(one))])
    anew = [memory.peak_of(Execution(program(made), InlineOrder(), store).run()) for _ in range(2 + STEADY_STEPS)]

    phases, resident = phases_of(
        Run(None, [], _there(*variables), program(made), ["forward"] * len(made.nodes)), device
    )
    assert phases["first_step"].peak_bytes == anew[0]
    # Half of the plays have one step more.
    peaks = sorted(anew[1:-1] + anew[1:])
    assert phases["step"].peak_bytes == peaks[math.ceil(TYPICAL * len(peaks)) - 1]
    low, high = phases["step"].peak_range
    assert low <= min(anew[1:])
    assert max(anew[1:]) <= high
    assert resident == sum(-(-one.bytes // 256) * 256 for one in variables)


def test_what_was_not_kept_is_played_again_and_comes_out_the_same(monkeypatch):
    made = _moving()
    run = Run(None, [], _there(*made.variable_of.values()), program(made), ["forward"] * len(made.nodes))
    found = []
    for room in (0, 20, KEPT_EVENTS):
        monkeypatch.setattr(f"{phases_of.__module__}.KEPT_EVENTS", room)
        found.append(phases_of(run, Device("CPU", "growth", None, 2)))
    assert found[0] == found[1] == found[2]


def _updated_slots():
    one, other = variable("m", 300), variable("v", 300)
    made = graph(
        node("m", "VarHandleOp"),
        node("v", "VarHandleOp"),
        node("x", "Placeholder", (), 300),
        node("first", "AssignAddVariableOp", ["m", "x"]),
        node("second", "AssignAddVariableOp", ["v", "x", "^first"]),
        variables={"m": one, "v": other},
    )
    return made, one, other


@pytest.mark.parametrize("recipes", [("zeros", "zeros"), ("zeros", "ones"), ("", "")])
def test_slots_that_begin_alike_are_one_until_they_change(recipes):
    made, *slots = _updated_slots()
    births = [
        Birth(
            one,
            EagerRun(
                [(0, True)], [Made("Fill", one.shape, one.dtype, one.bytes)], 0, one.shape, one.dtype, recipe=recipe
            ),
        )
        for one, recipe in zip(slots, recipes, strict=True)
    ]
    run = Run(None, births, [], program(made), ["forward"] * len(made.nodes))
    phases, resident = phases_of(run, Device("GPU", "growth", None, 1))
    alike = recipes == ("zeros", "zeros")
    # Alike, the first to change gets memory of its own: as many bytes in all, but later, in the first step only.
    assert resident == 2 * 1280
    assert phases["first_step"].requested_peak_bytes == 3 * 1200
    assert ("first" in phases["first_step"].timeline.ops) == alike
    assert "first" not in phases["step"].timeline.ops


def test_slots_that_begin_alike_and_are_updated_side_by_side_are_both_copied_as_a_rule(monkeypatch):
    monkeypatch.setattr(f"{phases_of.__module__}.TYPICAL_OF_SEVERAL", 0.1)
    size = 2**22
    slots = [variable("m", size), variable("v", size)]
    filled = EagerRun([(0, True)], [Made("Fill", (size,), "float32", 4 * size)], 0, (size,), "float32", recipe="zeros")
    made = graph(
        *(node(one.name, "VarHandleOp") for one in slots),
        node("x", "Placeholder", (), 10),
        *(node(f"{one.name}/sum", "UnsortedSegmentSum", ["x"], size) for one in slots),
        *(node(f"{one.name}/add", "AssignAddVariableOp", [one.name, f"{one.name}/sum"]) for one in slots),
        variables={one.name: one for one in slots},
    )
    run = Run(None, [Birth(one, filled) for one in slots], [], program(made), ["forward"] * len(made.nodes))
    kept = {}
    for threads in (1, 2):
        step = phases_of(run, Device("CPU", "preallocated", None, threads))[0]["first_step"]
        kept[threads] = sum(item.bytes >= 4 * size for item in step.live_at_peak)
    # The zeros that both began with, two sums, and one copy or two: as long as one is made, the other sees two holders.
    assert kept == {1: 3, 2: 5}


def test_on_a_cpu_small_tensors_widen_the_range():
    made = _moving()
    run = Run(None, [], _there(*made.variable_of.values()), program(made), ["forward"] * len(made.nodes))
    cpu, gpu = (phases_of(run, Device(kind, "growth", None, 1))[0] for kind in ("CPU", "GPU"))
    # One tensor of 40 elements takes one chunk.
    assert cpu["step"].peak_range[0] + 2 * 256 <= cpu["step"].peak_range[1]
    assert gpu["step"].peak_range[0] <= gpu["step"].peak_bytes <= gpu["step"].peak_range[1]


def test_predictions_go_in_the_devices_order():
    made = graph(
        node("x", "Placeholder", (), 256),
        node("wide", "MatMul", ["x"], 9216),
        node("dear", "MatMul", ["wide"], 512),
        node("cheap", "Relu", ["wide"], 9216),
        node("sum", "MatMul", ["dear", "cheap"], 256),
    )
    run = Run(None, [], [], None, [], further=[Further("predict", program(made))])
    peaks = {kind: phases_of(run, Device(kind, "growth", None, 1))[0]["predict"] for kind in ("GPU", "CPU")}
    # In line, the first reader runs first, and the last one takes the memory over. On a CPU the pool's only thread
    # begins with its newest task, so the reader that could take it over finds it still wanted.
    assert peaks["GPU"].requested_peak_bytes < 2 * 4 * 9216 <= peaks["CPU"].requested_peak_bytes


def test_on_a_gpu_one_thread_runs_what_is_ready_first_in_first_out_and_no_other_order_can_happen():
    # In line both large tensors are made before either is read; a pool's thread would go on with the newest.
    made = graph(
        node("x", "Placeholder", (), 10),
        *(node(f"large_{name}", "MatMul", ["x"], 1000) for name in "ab"),
        *(node(f"small_{name}", "MatMul", [f"large_{name}"], 10) for name in "ab"),
    )
    run = Run(None, [], [], program(made), ["forward"] * len(made.nodes))
    cpu, gpu = (phases_of(run, Device(kind, "growth", None, 1))[0]["step"] for kind in ("CPU", "GPU"))
    assert gpu.peak_range[0] > 2 * 4000
    assert cpu.peak_range[0] < 2 * 4000 < cpu.peak_range[1]


def test_the_backward_pass_begins_after_the_forward_pass_however_early_a_part_of_it_runs():
    made = graph(
        node("w", "VarHandleOp"),
        node("read", "ReadVariableOp", ["w"], 700),
        node("seed", "MatMul", ["read"], 10),
        node("one", "MatMul", ["read"], 5000),
        node("two", "MatMul", ["one"], 6000),
        node("gradient", "MatMul", ["two", "seed"], 7000),
        node("scaled", "MatMul", ["gradient"], 700),
        node("sub", "AssignSubVariableOp", ["w", "scaled"]),
        variables={"w": W},
    )
    part_of = {"seed": "backward", "gradient": "backward", "scaled": "update", "sub": "update"}
    parts = [part_of.get(node.name, "forward") for node in made.nodes]
    phases, _ = phases_of(Run(None, [], _there(W), program(made), parts), Device("GPU", "growth", None, 1))
    timeline = phases["step"].timeline
    began = {timeline.op_at(n): timeline.ticks[n] for n in reversed(range(len(timeline)))}
    spans = {span.name: span for span in timeline.spans}
    assert spans["forward"].end == spans["backward"].start
    assert began["seed"] < began["two"] < spans["backward"].start <= began["gradient"]


def test_later_steps_of_a_loop_know_which_kernels_are_cheap():
    # An iteration makes a large tensor and sums it up; nothing waits for that, and all of it is quick.
    body = [
        node("made", "MatMul", ["state:1"], 1000),
        node("used", "Relu", ["made"], 500),
        node("next", "MatMul", ["state:1"], 100),
        node("sum", "Sum", ["used"], 1),
    ]
    step = looping(*body, state=100, made="next", count=40, at_once=32)

    def peak(learnt: Learnt | None) -> int:
        nodes = step.graph.nodes
        order = PoolOrder(1, lambda index: nodes[index].op, lambda index: 1.0, learnt)
        events = [*step.constant_events(), *Execution(step, order, VariableStore()).run()]
        return Memory(BfcAllocator()).peak_of(events)

    learnt = Learnt(lambda index: 2000.0)
    unlearnt = peak(learnt)
    assert unlearnt == peak(None)
    learnt.again(50)
    assert peak(learnt) != unlearnt
    run = Run(None, [], [], step, ["forward"] * len(step.graph.nodes))
    phases, _ = phases_of(run, Device("CPU", "growth", None, 1))
    assert phases["first_step"].peak_bytes == unlearnt
    assert phases["step"].peak_bytes == peak(learnt)
    low, high = phases["step"].peak_range
    assert low <= unlearnt <= high


@pytest.mark.parametrize(
    ("summed", "updates"), [(3, [2, 5, 8]), (STEADY_STEPS, [STEADY_STEPS - 1]), (40, [1, 3, 5, 7])], ids=str
)
def test_steps_of_several_kinds_come_as_often_as_they_will_if_all_come_soon(summed, updates, monkeypatch):
    def build():
        model = keras.Sequential([keras.Input((7,)), keras.layers.Dense(1)])
        model.compile(keras.optimizers.Adam(gradient_accumulation_steps=summed), "mse", jit_compile=False)
        return model

    lengths: list[int] = []
    run = Execution.run

    def seen(self):
        events = run(self)
        lengths.append(len(events))
        return events

    monkeypatch.setattr(Execution, "run", seen)
    memest.estimate(build, batch_size=2, device="CPU")
    # The very first run finds out how many ops there are.
    of_one_run = lengths[1 : 2 + STEADY_STEPS]
    assert [number for number, length in enumerate(of_one_run) if length > 1.2 * min(of_one_run)] == updates


def test_with_several_threads_kernels_that_are_held_up_for_long_widen_the_range(monkeypatch):
    def chain(name, length, size):
        small = [node(f"{name}{n}", "MatMul", [f"{name}{n - 1}" if n else "x"], 10) for n in range(length)]
        return [*small, node(name, "MatMul", [small[-1][0]], size), node(f"{name}/used", "MatMul", [name], 10)]

    # The large tensors of two chains are there together only if the short chain is held up.
    made = graph(node("x", "Placeholder", (), 10), *chain("short", 2, 4000), *chain("long", 9, 4000))
    run = Run(None, [], [], program(made), ["forward"] * len(made.nodes))
    device = Device("CPU", "growth", None, 2)
    held_up, _ = phases_of(run, device)
    monkeypatch.setattr(f"{phases_of.__module__}.LARGEST_DELAY", 1.0)
    never, _ = phases_of(run, device)
    assert held_up["step"].peak_bytes == never["step"].peak_bytes < 2 * 16_000
    assert never["step"].peak_range[1] < 2 * 16_000 < held_up["step"].peak_range[1]
