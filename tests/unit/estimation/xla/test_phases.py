"""The phases of a compiled step, from a small one to the byte."""

from __future__ import annotations

from typing import Any

from tensorboard_plugin_memest.estimation.births import Birth
from tensorboard_plugin_memest.estimation.device import Device
from tensorboard_plugin_memest.estimation.eager import EagerRun, Made
from tensorboard_plugin_memest.estimation.trace import Owner, Owners
from tensorboard_plugin_memest.estimation.variables import OPTIMIZER, Variable
from tensorboard_plugin_memest.estimation.xla.attribution import ModuleAttribution
from tensorboard_plugin_memest.estimation.xla.module import Allocation, Instruction, Module, Value
from tensorboard_plugin_memest.estimation.xla.phases import CompiledRun, CompiledStep, phases_of
from tensorboard_plugin_memest.estimation.xla.request import FEED, VARIABLE, Argument
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.timeline import Span

KiB = 1024
DEVICE = Device("GPU", "preallocated", None, 1)


def variable(name: str, category: Category, role: str) -> Variable:
    return Variable(name, "dense", category, role, "dense/kernel", (256,), "float32", KiB, role == "weight")


W = variable("dense/kernel", Category.WEIGHTS, "weight")
M = variable("dense/kernel (Adam m)", Category.OPTIMIZER_SLOTS, "Adam m")
V = variable("dense/kernel (Adam v)", Category.OPTIMIZER_SLOTS, "Adam v")


def zeros(recipe: str) -> EagerRun:
    return EagerRun([(0, True)], [Made("Fill", (256,), "float32", KiB)], 0, (256,), "float32", recipe)


def instruction(name: str, opcode: str, op_name: str, *operands: Instruction, parameter: int | None = None) -> Any:
    made = Instruction(name, opcode, op_name, parameter, list(operands))
    for operand in operands:
        operand.readers.append(made)
    return made


def step() -> CompiledStep:
    """x (2 KiB) through a kernel: 4 KiB kept for the backward pass, a gradient of 1 KiB, Adam in place."""
    x = instruction("x", "parameter", "", parameter=0)
    kernel, m, v = (instruction(f"p{n}", "parameter", "", parameter=n) for n in (1, 2, 3))
    product = instruction("product", "dot", "model/dense/MatMul", x, kernel)
    scratch = instruction("scratch", "fusion", "model/dense/Tanh", product)
    gradient = instruction("gradient", "dot", "gradient_tape/model/dense/MatMul/MatMul", x, product)
    update = instruction("update", "fusion", "adam/AssignSubVariableOp", gradient, kernel, m, v)
    values = {
        one.name: Value(one, (size // 4,), "float32", size)
        for one, size in ((product, 4 * KiB), (scratch, 3 * KiB), (gradient, KiB))
    }
    trace = [
        (values["product"], True),
        (values["scratch"], True),
        (values["scratch"], False),
        (values["gradient"], True),
        (values["product"], False),
        (values["gradient"], False),
    ]
    module = Module(
        [x, kernel, m, v, product, scratch, gradient, update],
        [
            Allocation(64, True, [Value(update, None, None, 64)], []),
            Allocation(8 * KiB, False, list(values.values()), trace),
        ],
        [1, 2, 3],
    )
    owners = Owners(
        by_op={"adam/AssignSubVariableOp": Owner(OPTIMIZER, is_update=True)}, by_scope={"model/dense": Owner("dense")}
    )
    owners.by_op |= {name: Owner("dense") for name in ("model/dense/MatMul", "model/dense/Tanh")}
    variables = [None, W, M, V]
    arguments = [Argument(FEED, "x", (512,), "float32")]
    arguments += [Argument(VARIABLE, one.name, one.shape, one.dtype) for one in (W, M, V)]
    return CompiledStep(module, ModuleAttribution(module, variables, owners), arguments, variables)


def phases(*, recipes: tuple[str, str] = ("", ""), device: Device = DEVICE):
    slots = [Birth(M, zeros(recipes[0])), Birth(V, zeros(recipes[1]))]
    return phases_of(CompiledRun([Birth(W, zeros(""))], slots, [], step()), device)


def test_a_step_holds_variables_batch_results_and_the_block_of_temporaries():
    made, resident = phases()
    assert resident == 3 * KiB
    # 3 KiB of variables, 2 of batch, 256 bytes for 64, and the block of 8 KiB although only 7 are ever in use.
    assert made["step"].peak_bytes == 3 * KiB + 2 * KiB + 256 + 8 * KiB
    assert made["step"].requested_peak_bytes == 3 * KiB + 2 * KiB + 64 + 8 * KiB


def test_slots_with_equal_first_values_share_them_until_the_first_update():
    shared, distinct = phases(recipes=("zeros", "zeros"))[0], phases(recipes=("zeros", "ones"))[0]
    assert distinct["first_step"].peak_bytes == distinct["step"].peak_bytes
    # One piece of zeros for both, and memory for both new values.
    assert shared["first_step"].peak_bytes == distinct["first_step"].peak_bytes + KiB
    assert shared["step"].requested_peak_bytes == distinct["step"].requested_peak_bytes
    (first,) = [item for item in shared["first_step"].live_at_peak if item.role == "first value of the slots"]
    assert (first.layer, first.bytes, first.category) == ("dense", KiB, Category.OPTIMIZER_SLOTS)


def test_what_lies_in_the_block_is_told_layer_by_layer_and_adds_up():
    made = phases()[0]["step"]
    found = {item.name: (item.layer, item.category, item.role, item.variable, item.bytes) for item in made.live_at_peak}
    assert found["model/dense/MatMul (product)"] == ("dense", Category.ACTIVATIONS, "dot output", None, 4 * KiB)
    assert found["model/dense/Tanh (scratch)"] == ("dense", Category.TEMPORARIES, "fusion output", None, 3 * KiB)
    assert found["XLA's temporary memory, unused part"][4] == KiB
    assert made.peak_op == "model/dense/Tanh (scratch)"
    assert sum(item.bytes for item in made.live_at_peak) == made.peak_bytes


def test_the_gradient_is_the_weights_that_reads_it():
    one = step()
    gradient = next(value for value in one.module.allocations[1].values if value.instruction.name == "gradient")
    tag = one.attribution.tag(gradient)
    assert (tag.category, tag.variable, tag.layer) == (Category.GRADIENTS, "dense/kernel", "dense")


def test_the_curve_goes_through_the_block_and_touches_the_peak_once():
    made = phases()[0]["step"]
    base, curve = made.peak_bytes - 7 * KiB, list(made.timeline.live_bytes)
    assert made.timeline.peak_bytes == made.peak_bytes
    inside = [base + used * KiB for used in (0, 4, 7, 4, 5, 1, 0)]
    start = curve.index(base)
    assert curve[start : start + 7] == inside
    assert curve[-1] == curve[0] == 3 * KiB
    assert made.timeline.spans == (
        Span("forward", start + 1, start + 4),
        Span("backward", start + 4, start + 6),
        Span("update", start + 6, len(curve)),
    )


def test_a_pool_that_grows_answers_the_block_with_a_whole_region():
    grown = phases(device=Device("CPU", "growth", None, 1))[0]["step"]
    # On a CPU each variable's handle is a tensor of 200 bytes beside that.
    handles = next(item for item in grown.live_at_peak if item.name == "handles").requested_bytes
    assert handles == 200 * 3
    assert grown.requested_peak_bytes - handles == phases()[0]["step"].requested_peak_bytes
    assert grown.peak_bytes == sum(item.bytes for item in grown.live_at_peak)
