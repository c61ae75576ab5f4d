"""What is printed, as text: lines and tables of one width, without colours."""

from __future__ import annotations

import io

from rich.console import Console
from rich.table import Table

WIDTH = 120


class Paper:
    """Collects lines and tables."""

    def __init__(self) -> None:
        self._file = io.StringIO()
        self._console = Console(file=self._file, width=WIDTH, color_system=None, highlight=False)

    def say(self, text: str) -> None:
        """Adds a text, wrapped where it is too long."""
        self._console.print(text, markup=False)

    def draw(self, table: Table) -> None:
        """Adds a table."""
        self._console.print(table)

    def text(self) -> str:
        """All of it, with nothing behind the ends of lines."""
        return "\n".join(line.rstrip() for line in self._file.getvalue().splitlines())
