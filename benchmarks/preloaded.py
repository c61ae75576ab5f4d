"""Everything that the benchmarks' processes need, imported once; see `processes`."""

import importlib

for name in (
    "tensorflow.python.profiler.profiler_v2",
    "benchmarks.models",
    "tensorboard_plugin_memest.estimation.model",
    "tensorboard_plugin_memest.measure.profile",
):
    importlib.import_module(name)
