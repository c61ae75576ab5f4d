"""Records what the plugin answers about two small trainings, for the development page of the tab.

python -m tools.record

They are trained here, on a CPU under the allocator that serves GPUs, so the recordings are measurements; it takes a
minute or two.
"""

from __future__ import annotations

import json
import platform
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import memest
from tests.integration.http import ask, wait_for
from tests.server import tensorboard_process

RECORDINGS = Path(__file__).parent.parent / "frontend" / "dev" / "recordings.json"
LIMIT = "96MiB"
BATCH_SIZE = 16
# Of a curve; more would be a large file.
POINTS = 300
WHAT_IF_SECONDS = 20


def train(logs: Path) -> None:
    """Trains a small network with Adam, with all that memest can log, and with SGD."""
    memest.use_gpu_allocator_on_cpu()
    import keras
    import numpy as np
    import tensorflow as tf

    keras.utils.set_random_seed(0)
    images = np.random.rand(64, 48, 48, 3).astype("float32")
    labels = np.random.randint(0, 10, 64)
    for name, optimizer in (("adam", "adam"), ("sgd", "sgd")):
        stem = [keras.layers.Conv2D(16, 3, activation="relu"), keras.layers.BatchNormalization()]
        head = [keras.layers.Flatten(), keras.layers.Dense(64, activation="relu"), keras.layers.Dense(10)]
        model = keras.Sequential(
            [keras.Input((48, 48, 3)), keras.Sequential(stem, name="stem"), keras.Sequential(head, name="head")],
            name="classifier",
        )
        model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=False)
        run = str(logs / name)
        data = tf.data.Dataset.from_tensor_slices((images, labels)).cache().shuffle(64).batch(BATCH_SIZE).prefetch(2)
        memest.log_dataset(data, logdir=run)
        everything: dict[str, Any] = {"advice": True, "what_if": WHAT_IF_SECONDS} if name == "adam" else {}
        memest.log_model(model, batch_size=BATCH_SIZE, logdir=run, limit=LIMIT, **everything)
        callback = memest.MemoryCallback(run, batch_size=BATCH_SIZE, limit=LIMIT, profile_batch=(5, 7))
        model.fit(data, epochs=3, verbose=0, callbacks=[callback])


def questions(server: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """What the tab asks about the runs there are, route by route."""
    yield "runs", {}
    yield "gpus", {}
    names = [run["name"] for run in ask(server, "runs")["runs"]]
    for run in names:
        yield "overview", {"run": run}
        for route in ("peaks", "host", "what_if"):
            yield route, {"run": run}
        yield "compare", {"run": run, "with": next(name for name in names if name != run)}
        overview = ask(server, "overview", run=run)
        for phase in (phase["name"] for phase in overview["estimate"]["phases"]):
            yield "timeline", {"run": run, "phase": phase}
            for by in ("layer", "op", "category", "shape") if phase == "step" else ("layer",):
                yield "moment", {"run": run, "phase": phase, "by": by}
        for identity in (profile["id"] for profile in overview["measured"]["profiles"]):
            yield "profile", {"run": run, "id": identity}
            yield "aligned", {"run": run, "id": identity}


def key(route: str, parameters: dict[str, Any]) -> str:
    """By what the page finds an answer; `frontend/dev/recorded.ts` makes the same."""
    return " ".join([route, *sorted(f"{name}={value}" for name, value in parameters.items())])


def main() -> None:
    """Trains, asks, and writes down."""
    with tempfile.TemporaryDirectory() as place:
        logs = Path(place)
        train(logs)
        with tensorboard_process(logs) as server:
            wait_for(lambda: ask(server, "runs")["runs"], lambda runs: len(runs) == 2)
            for run in ("adam", "sgd"):
                wait_for(lambda run=run: ask(server, "overview", run=run), lambda seen: seen["measured"]["profiles"])
            answers = {}
            for route, parameters in questions(server):
                thinned = {"points": POINTS} if route in ("timeline", "profile", "aligned") else {}
                answers[key(route, parameters)] = ask(server, route, **parameters, **thinned)
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(answer)}" for name, answer in answers.items())
    # Whose machine it was is nobody's business.
    machine = platform.node()
    lines = lines.replace(f"@{machine}/", "@host/").replace(f'"host": "{machine}"', '"host": "host"')
    RECORDINGS.write_text(f"{{\n{lines}\n}}\n")
    print(f"{RECORDINGS}: {len(answers)} answers, {RECORDINGS.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
