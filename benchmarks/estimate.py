"""Estimates one model and prints, as JSON, its phases and how long it took after imports. A process of its own.

python -m benchmarks.estimate "founding, Dense 8"
"""

from __future__ import annotations

import argparse
import json
import time

import tensorflow as tf

import memest
from benchmarks.models import MODELS


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--one-thread", action="store_true")
    args = parser.parse_args()
    if args.one_thread:
        tf.config.threading.set_inter_op_parallelism_threads(1)
    build, batch_size = MODELS[args.model]
    started = time.perf_counter()
    estimate = memest.estimate(build, batch_size=batch_size)
    seconds = time.perf_counter() - started
    phases = {name: (phase.peak_bytes, *phase.peak_range) for name, phase in estimate.phases.items()}
    allocated = tf.config.experimental.get_memory_info("CPU:0")["peak"]
    print(json.dumps({"phases": phases, "seconds": seconds, "allocated": allocated}))


if __name__ == "__main__":
    main()
