"""The entry point. Whatever fails while this module is imported kills TensorBoard, so it imports almost nothing."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from tensorboard.plugins import base_plugin

if TYPE_CHECKING:
    from tensorboard_plugin_memest.plugin.plugin import MemestPlugin

# A later record of a tag replaces the earlier ones, so TensorBoard need not hold those in memory. It keeps the last
# one whatever the number.
_RECORDS_KEPT = 1


class MemestLoader(base_plugin.TBLoader):  # type: ignore[misc]
    """Makes the plugin, when TensorBoard asks for it."""

    def fix_flags(self, flags: Namespace) -> None:
        """Has TensorBoard keep only the last record of each tag, unless the user asked for another number."""
        flags.samples_per_plugin.setdefault("memest", _RECORDS_KEPT)

    def load(self, context: base_plugin.TBContext) -> MemestPlugin:
        """The plugin. What fails here is logged by TensorBoard, which then goes on without the tab."""
        from tensorboard_plugin_memest.plugin.plugin import MemestPlugin

        return MemestPlugin(context)
