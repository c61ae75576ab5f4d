"""TensorBoard on the demo's runs, until Ctrl+C."""

from __future__ import annotations

import threading
from pathlib import Path

from rich.console import Console
from tensorboard import program


def serve(logdir: Path, port: int | None, console: Console, settings: str) -> None:
    """Starts TensorBoard and prints the address of the Memory tab; returns when interrupted.

    Args:
        logdir: the log directory.
        port: where to listen; None: 6006 or the next free port, as TensorBoard chooses.
        console: where to print.
        settings: what the tab shows at first, as it stands in an address: `p.memest.run=small`.

    Raises:
        SystemExit: TensorBoard did not start; the message says why.
    """
    tensorboard = program.TensorBoard()
    tensorboard.configure(
        argv=["tensorboard", "--logdir", str(logdir), *(["--port", str(port)] if port is not None else [])]
    )
    try:
        address = tensorboard.launch()
    except program.TensorBoardServerException as error:
        raise SystemExit(f"TensorBoard did not start: {error.msg}") from error
    console.print(f"\nThe Memory tab: {address}#memest&{settings}", markup=False, soft_wrap=True)
    console.print("Ctrl+C stops TensorBoard.")
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        console.print("Stopped.")
