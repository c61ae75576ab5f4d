"""What a buffer holds, in people's words."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorboard_plugin_memest.estimation.variables import Variable
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.item import Item
from tensorboard_plugin_memest.memory.whose import Whose


@dataclass(frozen=True)
class Tag:
    """Layer, name, category and role of what a buffer holds; the fields are those of `memory.Item`."""

    layer: str
    name: str
    category: Category
    role: str
    variable: str | None
    shape: tuple[int, ...] | None
    dtype: str | None

    @property
    def whose(self) -> Whose:
        """Its owner, without what it is itself."""
        return Whose(self.layer, self.category, self.role, self.variable)

    def item(self, requested_bytes: int, held_bytes: int) -> Item:
        """The same as an item of `requested_bytes` that the allocator answered with `held_bytes`."""
        return Item(
            self.layer,
            self.name,
            self.category,
            self.role,
            self.variable,
            self.shape,
            self.dtype,
            requested_bytes,
            held_bytes,
        )


def variable_tag(variable: Variable) -> Tag:
    """The tag of a variable's own buffer."""
    return Tag(
        variable.layer,
        variable.name,
        variable.category,
        variable.role,
        variable.weight,
        variable.shape,
        variable.dtype,
    )


def workspace_tag(output: Tag) -> Tag:
    """The tag of what the kernel that makes `output` allocates for itself."""
    return replace(output, category=Category.WORKSPACE, role="kernel workspace", shape=None, dtype=None)
