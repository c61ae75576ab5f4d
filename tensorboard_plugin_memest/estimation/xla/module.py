"""What XLA made of a step: its instructions and its memory, as plain data.

Source: `xla/service/hlo.proto`. Every allocation of the buffer assignment is one request to the device's allocator, or
none: parameters lie in memory that exists, constants in the program, thread-local ones on stacks. The heap simulator's
trace says which part of a temporary allocation is in use from when to when.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from tensorflow.compiler.xla import xla_data_pb2
from tensorflow.compiler.xla.service import hlo_pb2

_DTYPES = {
    "PRED": "bool",
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F64": "float64",
    "C64": "complex64",
    "C128": "complex128",
    **{f"S{bits}": f"int{bits}" for bits in (4, 8, 16, 32, 64)},
    **{f"U{bits}": f"uint{bits}" for bits in (4, 8, 16, 32, 64)},
}

# Names of ops that stand for no op of the model.
_NO_OPS = {"XLA_Args", "XLA_Retvals"}


@dataclass
class Instruction:
    """One HLO instruction.

    Attributes:
        name: its name, of which there is one in a module.
        opcode: such as `"fusion"` or `"dot"`.
        op_name: the TensorFlow op that it, or the last instruction fused into it, came from; empty when unknown.
        parameter: number of the parameter that it is; None for others and for parameters of inner computations.
        operands: what it reads.
        readers: what reads it.
    """

    name: str
    opcode: str
    op_name: str
    parameter: int | None
    operands: list[Instruction] = field(default_factory=list, repr=False)
    readers: list[Instruction] = field(default_factory=list, repr=False)


@dataclass(frozen=True)
class Value:
    """A logical buffer: what instruction makes it, its shape and dtype (None for tuples), and its bytes."""

    instruction: Instruction
    shape: tuple[int, ...] | None
    dtype: str | None
    bytes: int


@dataclass(frozen=True)
class Allocation:
    """One request to the allocator.

    Attributes:
        bytes: its size.
        is_output: whether it holds what the step returns, and stays until that is dropped.
        values: what lies in it.
        trace: (value, whether it begins (True) or ends (False)), in order; empty where the compiler does not say.
    """

    bytes: int
    is_output: bool
    values: list[Value]
    trace: list[tuple[Value, bool]]


@dataclass(frozen=True)
class Module:
    """A compiled step.

    Attributes:
        instructions: all of them, in the order in which they run, those of inner computations at their own place.
        allocations: what is requested for each run, in order.
        updated: parameters whose memory one of the results takes over, in the order of the results.
    """

    instructions: list[Instruction]
    allocations: list[Allocation]
    updated: list[int]


def module_of(serialized: bytes) -> Module:
    """Reads a serialized HloProto with a buffer assignment."""
    proto = hlo_pb2.HloProto.FromString(serialized)
    instructions, shapes = _instructions(proto.hlo_module)
    values = {buffer.id: _value(buffer, instructions, shapes) for buffer in proto.buffer_assignment.logical_buffers}
    traces = _traces(proto.buffer_assignment, values)
    allocations = [
        Allocation(
            bytes=found.size,
            is_output=found.maybe_live_out,
            values=[values[one.logical_buffer_id] for one in found.assigned],
            trace=traces.get(found.index, []),
        )
        for found in proto.buffer_assignment.buffer_allocations
        if not (found.is_entry_computation_parameter or found.is_constant or found.is_thread_local) and found.size
    ]
    aliases = sorted(proto.hlo_module.input_output_alias.entries, key=lambda entry: list(entry.output_shape_index))
    return Module(
        instructions=list(instructions.values()),
        allocations=allocations,
        updated=[entry.parameter_number for entry in aliases],
    )


def _instructions(
    module: hlo_pb2.HloModuleProto,
) -> tuple[dict[int, Instruction], dict[int, xla_data_pb2.ShapeProto]]:
    computations = {computation.id: computation for computation in module.computations}
    protos = {one.id: one for computation in module.computations for one in computation.instructions}
    names = {one.id: one.metadata.op_name if one.metadata.op_name not in _NO_OPS else "" for one in protos.values()}

    def op_name(one: hlo_pb2.HloInstructionProto) -> str:
        if names[one.id] or one.opcode != "fusion":
            return names[one.id]
        # The last op of what was fused is the one whose result this is.
        inside = [inner.id for number in one.called_computation_ids for inner in computations[number].instructions]
        return next((names[inner] for inner in reversed(inside) if names[inner]), "")

    scheduled = [
        number
        for computation in sorted(computations, key=lambda number: number == module.entry_computation_id)
        for number in (
            module.schedule.sequences[computation].instruction_ids
            if computation in module.schedule.sequences
            else [one.id for one in computations[computation].instructions]
        )
    ]
    found = {
        number: Instruction(
            name=protos[number].name,
            opcode=protos[number].opcode,
            op_name=op_name(protos[number]),
            parameter=None,
        )
        for number in scheduled
    }
    for one in computations[module.entry_computation_id].instructions:
        if one.opcode == "parameter":
            found[one.id].parameter = one.parameter_number
    for number, instruction in found.items():
        for operand in protos[number].operand_ids:
            instruction.operands.append(found[operand])
            found[operand].readers.append(instruction)
    return found, {number: protos[number].shape for number in found}


def _value(
    buffer: hlo_pb2.LogicalBufferProto,
    instructions: dict[int, Instruction],
    shapes: dict[int, xla_data_pb2.ShapeProto],
) -> Value:
    number = buffer.defined_at.instruction_id
    shape = shapes[number]
    for index in buffer.defined_at.shape_index:
        shape = shape.tuple_shapes[index]
    kind = xla_data_pb2.PrimitiveType.Name(shape.element_type)
    dtype = _DTYPES.get(kind)
    return Value(instructions[number], tuple(shape.dimensions) if dtype else None, dtype, buffer.size)


def _traces(assignment: hlo_pb2.BufferAssignmentProto, values: dict[int, Value]) -> dict[int, list[tuple[Value, bool]]]:
    """The trace of each allocation, by the allocation's index."""
    places = {
        one.logical_buffer_id: (found.index, one.offset)
        for found in assignment.buffer_allocations
        for one in found.assigned
    }
    shown: dict[int, _Shown] = defaultdict(_Shown)
    for event in (event for trace in assignment.heap_simulator_traces for event in trace.events):
        if event.buffer_id in places:
            allocation, offset = places[event.buffer_id]
            if event.kind == hlo_pb2.HeapSimulatorTrace.Event.FREE:
                shown[allocation].end(values[event.buffer_id])
            else:
                shown[allocation].begin(values[event.buffer_id], offset)
    return {allocation: one.trace for allocation, one in shown.items()}


class _Shown:
    """The values in use of one allocation, none upon another: where several share memory, the newest has it."""

    def __init__(self) -> None:
        self.trace: list[tuple[Value, bool]] = []
        self._places: dict[int, tuple[Value, int, int]] = {}  # by id of a value in use: it, where it begins and ends
        self._shown: dict[int, None] = {}

    def begin(self, value: Value, offset: int) -> None:
        self._places.pop(id(value), None)
        self._places[id(value)] = (value, offset, offset + value.bytes)
        for number in self._upon(value):
            self._hide(number)
        self._show(id(value))

    def end(self, value: Value) -> None:
        was_shown = id(value) in self._shown
        if was_shown:
            self._hide(id(value))
        beneath = [number for number in self._upon(value) if number not in self._shown] if was_shown else []
        del self._places[id(value)]
        for number in reversed(beneath):
            if not any(other in self._shown for other in self._upon(self._places[number][0])):
                self._show(number)

    def _upon(self, value: Value) -> list[int]:
        """The values in use, oldest first, that share memory with `value`."""
        _, start, end = self._places[id(value)]
        return [
            number
            for number, (_, begins, ends) in self._places.items()
            if number != id(value) and begins < end and start < ends
        ]

    def _show(self, number: int) -> None:
        self._shown[number] = None
        self.trace.append((self._places[number][0], True))

    def _hide(self, number: int) -> None:
        if number in self._shown:
            del self._shown[number]
            self.trace.append((self._places[number][0], False))
