"""Whose each value of a compiled step is, and what it is for."""

from __future__ import annotations

from collections.abc import Sequence

from tensorboard_plugin_memest.estimation.attribution import BACKWARD, FORWARD, UPDATE
from tensorboard_plugin_memest.estimation.tag import Tag
from tensorboard_plugin_memest.estimation.trace import GRADIENT_SCOPE, Owner, Owners
from tensorboard_plugin_memest.estimation.variables import OPTIMIZER, STEP, Variable
from tensorboard_plugin_memest.estimation.xla.module import Instruction, Module, Value
from tensorboard_plugin_memest.memory.category import Category

# Where instructions belong in the course of a step, later ones last; first, those of which nothing is known.
_ORDER = ["", FORWARD, BACKWARD, UPDATE]

# Instructions that only rename, copy or hand on what they read.
_HANDING_ON = {"bitcast", "copy", "transpose", "tuple", "get-tuple-element", "while", "conditional", "call"}


class ModuleAttribution:
    """Tags for the values of a compiled step.

    A fusion belongs to the op whose result it makes. What the compiler added on its own belongs to whoever reads it.

    Args:
        module: the compiled step.
        arguments: for each parameter of it, the variable that it is; None for tensors.
        owners: who made which op of the traced step.
    """

    def __init__(self, module: Module, arguments: Sequence[Variable | None], owners: Owners) -> None:
        self._arguments = arguments
        self._owners = {id(one): _owner(one, owners) for one in module.instructions}
        self._parts = {id(one): self._named_part(one) for one in module.instructions}
        for one in module.instructions:
            self._take_over(one, [read for read in one.operands if read.parameter is None])
        for one in reversed(module.instructions):
            # What reads nothing but parameters and constants is there for its readers.
            self._take_over(one, one.readers)
        self._kept: dict[int, bool] = {}
        self._weights: dict[int, Variable | None] = {}
        for one in module.instructions:
            self._weights[id(one)] = self._weight_updated(one)
        for one in reversed(module.instructions):
            self._kept[id(one)] = any(
                self._parts[id(reader)] == BACKWARD
                or (reader.opcode in _HANDING_ON and self._kept.get(id(reader), False))
                for reader in one.readers
            )
            if self._parts[id(one)] == BACKWARD:
                self._weights[id(one)] = self._weight_wanted(one)

    def tag(self, value: Value) -> Tag:
        """Whose `value` is, and what it is for."""
        one = value.instruction
        copied = self._copied(one)
        part = self._parts[id(one)]
        owner = self._owners[id(one)]
        weight = self._weights[id(one)]
        layer, variable = owner.layer, None
        if copied is not None:
            return Tag(
                copied.layer,
                f"copy of {copied.name}",
                Category.TEMPORARIES,
                f"copy of a {copied.role}",
                copied.weight,
                value.shape,
                value.dtype,
            )
        if part == UPDATE:
            category, role = Category.TEMPORARIES, "update temporary"
            layer = OPTIMIZER
        elif part == BACKWARD and weight is not None:
            category, role = Category.GRADIENTS, "gradient"
        elif part == BACKWARD:
            category, role = Category.TEMPORARIES, f"{one.opcode} output, backward"
        elif self._kept[id(one)]:
            category, role = Category.ACTIVATIONS, f"{one.opcode} output"
        else:
            category, role = Category.TEMPORARIES, f"{one.opcode} output"
        if weight is not None and part in (BACKWARD, UPDATE):
            layer, variable = weight.layer, weight.weight
        name = f"{one.op_name} ({one.name})" if one.op_name else one.name
        return Tag(layer, name, category, role, variable, value.shape, value.dtype)

    def part_of(self, value: Value) -> str:
        """The part of the step that makes a value: forward, backward or update."""
        return self._parts[id(value.instruction)] or FORWARD

    def _named_part(self, one: Instruction) -> str:
        """The part that an instruction's name tells; empty where it tells none."""
        if self._owners[id(one)].is_update:
            return UPDATE
        if GRADIENT_SCOPE in one.op_name:
            return BACKWARD
        # Sums of gradients carry no scope, and copies no name at all.
        return "" if self._owners[id(one)].layer == STEP or not one.op_name else FORWARD

    def _take_over(self, one: Instruction, others: Sequence[Instruction]) -> None:
        """An instruction without a name belongs where what it reads, or what reads it, does."""
        parts = [self._parts[id(other)] for other in others]
        if not self._parts[id(one)]:
            self._parts[id(one)] = max(parts, key=_ORDER.index, default="")
        if self._owners[id(one)].layer == STEP and not one.op_name:
            found = (self._owners[id(other)] for other in others)
            self._owners[id(one)] = next((owner for owner in found if owner.layer != STEP), Owner(STEP))

    def _variable(self, one: Instruction) -> Variable | None:
        return None if one.parameter is None else self._arguments[one.parameter]

    def _copied(self, one: Instruction) -> Variable | None:
        return self._variable(one.operands[0]) if one.opcode == "copy" else None

    def _weight_updated(self, one: Instruction) -> Variable | None:
        """The weight that an instruction of the update is there for: the only one whose state it reads."""
        if self._parts[id(one)] != UPDATE:
            return None
        read = [self._variable(operand) for operand in one.operands]
        found = {variable.weight: variable for variable in read if variable is not None and variable.weight}
        if not found:
            before = [self._weights.get(id(operand)) for operand in one.operands]
            found = {weight.weight: weight for weight in before if weight is not None and weight.weight}
        return next(iter(found.values())) if len(found) == 1 else None

    def _weight_wanted(self, one: Instruction) -> Variable | None:
        """The weight for whose update alone a backward instruction's result is read."""
        found: dict[str | None, Variable] = {}
        for reader in one.readers:
            weight = self._weights.get(id(reader))
            hands_on = self._parts[id(reader)] == BACKWARD and reader.opcode in _HANDING_ON
            if weight is None or not (self._parts[id(reader)] == UPDATE or hands_on):
                return None
            found[weight.weight] = weight
        return next(iter(found.values())) if len(found) == 1 else None


def _owner(one: Instruction, owners: Owners) -> Owner:
    found = owners.find(one.op_name)
    # What a gradient made a loop store is in the loop's scope, but was made while no layer was called.
    return owners.by_scope_of(one.op_name) if found.layer == STEP and one.op_name else found
