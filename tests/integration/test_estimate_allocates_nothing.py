"""The founding model, of 770 million parameters, and layers of all kinds, estimated in a process that stays small."""

from __future__ import annotations

import pytest

from tests.integration.processes import answer_of

PROGRAM = """
    import json, sys
    import keras, tensorflow as tf
    import memest

    L = keras.layers


    def build():
        model = keras.Sequential(
            [
                keras.Input((1491, 257, 1)),
                L.Conv2D(16, 3, activation="relu"),
                L.Conv2D(16, 3, activation="relu"),
                L.Flatten(),
                L.Dense(128, activation="relu"),
                L.Dense(1, activation="sigmoid"),
            ]
        )
        if sys.argv[1] == "compiled":
            model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
        return model


    def highest_resident_set():
        # Not getrusage's ru_maxrss: a process inherits that from the one that started it.
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024


    made = memest.estimate(build, batch_size=1, optimizer="adam", loss="binary_crossentropy")
    info = tf.config.experimental.get_memory_info("CPU:0")
    print(json.dumps({
        "parameters": made.subject.parameters,
        "peak": made.peak_bytes,
        "build": made.phases["build"].peak_bytes,
        "current": info["current"],
        "peak of the process": info["peak"],
        "resident": highest_resident_set(),
    }))
"""


@pytest.mark.parametrize("kind", ["uncompiled", "compiled"])
def test_nothing_is_allocated_and_the_process_stays_under_a_gib(kind):
    answer = answer_of(PROGRAM, kind)
    assert answer["parameters"] == 770_482_865
    assert (answer["current"], answer["peak of the process"]) == (0, 0)
    assert answer["resident"] < 2**30
    # The measurements, to the two digits given there: 17.22 and 8.61 GiB.
    assert abs(answer["peak"] / 2**30 - 17.22) < 0.02 * 17.22
    assert abs(answer["build"] / 2**30 - 8.61) < 0.02 * 8.61


def test_layers_of_all_kinds_allocate_nothing():
    found = answer_of("from tests.integration.layers_of_all_kinds import main; main()")
    # Lookup layers make their tables when they are made, graph or not, so the words in them exist.
    assert 0 <= found["lookups"].pop("peak of the process") < 4096
    del found["lookups"]["current"]
    assert len(found) == 6
    for kind, made in found.items():
        assert made.pop("estimate") > 1000, kind
        assert all(allocated == 0 for allocated in made.values()), kind
