"""How a model's steps run: as a graph, compiled by XLA, or eagerly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf
from keras.src.trainers.trainer import model_supports_jit

from tensorboard_plugin_memest.estimation.compiled_with import AUTO
from tensorboard_plugin_memest.estimation.device import GPU
from tensorboard_plugin_memest.memory.errors import UsageError

GRAPH = "graph"
XLA = "xla"
EAGER = "eager"


@dataclass(frozen=True)
class Mode:
    """How steps run.

    Attributes:
        name: GRAPH, XLA or EAGER.
        reasons: why, where that does not follow from an argument alone; sentences.
    """

    name: str
    reasons: tuple[str, ...] = ()


# What the process has chosen for all of its functions.
EAGER_EVERYWHERE = Mode(EAGER, ("tf.config.run_functions_eagerly(True) is set, so eager mode was estimated.",))


def check_mode(jit_compile: Any, run_eagerly: Any) -> None:
    """Raises ValueError if the two arguments of `estimate` are none that go together."""
    if not (jit_compile is None or isinstance(jit_compile, bool) or jit_compile == "auto"):
        raise UsageError(
            f"jit_compile={jit_compile!r}: pass True for XLA, False for graph mode, 'auto' for what Keras chooses on "
            "the device, or None for what the model was compiled with."
        )
    if not isinstance(run_eagerly, bool):
        raise UsageError(f"run_eagerly={run_eagerly!r}: pass True or False.")
    if run_eagerly and jit_compile is True:
        raise UsageError("run_eagerly=True and jit_compile=True exclude each other; pass one of them.")


def mode_of(
    model: keras.Model,
    jit_compile: Any,
    run_eagerly: bool,
    device: str,
    *,
    was_compiled: bool,
    compiled_with: Any = None,
) -> Mode:
    """How the steps of `model` run on a device of the kind `device`.

    An argument wins over what the model was compiled with, and that over Keras' default: XLA on a GPU if all layers
    support it, else graph mode.

    Args:
        model: compiled.
        jit_compile: as for `estimate`.
        run_eagerly: as for `estimate`.
        device: kind of the device.
        was_compiled: whether the caller compiled it.
        compiled_with: the `jit_compile` that the caller compiled it with, which Keras may have resolved since; None if
            that is not known.
    """
    if run_eagerly:
        return Mode(EAGER)
    if jit_compile is False:
        return Mode(GRAPH)
    if jit_compile is True:
        if model_supports_jit(model):
            return Mode(XLA)
        return Mode(GRAPH, (f"{_unsupported(model)} Keras runs the model in graph mode although jit_compile=True.",))
    if jit_compile is None and tf.config.functions_run_eagerly():
        return EAGER_EVERYWHERE
    if was_compiled and jit_compile is None:
        if model.run_eagerly:
            return Mode(EAGER, ("The model is compiled with run_eagerly=True.",))
        if compiled_with == AUTO:
            return _resolved(model, device)
        if model.jit_compile:
            return Mode(XLA, ("The model is compiled with XLA (jit_compile=True), which was estimated.",))
        if device != GPU or _sees_gpu() or compiled_with is not None:
            return Mode(GRAPH)
        mode = _resolved(model, device)
        if mode.name != XLA:
            return mode
        return Mode(
            XLA,
            (
                "The model is compiled with jit_compile=False here, which is also what Keras makes of its default "
                "('auto') on a machine without a GPU; on a GPU the default is XLA, which was estimated. Pass "
                "jit_compile=False if the model is compiled so there too, or a function that builds and compiles the "
                "model: then it can be told apart.",
            ),
        )
    return _resolved(model, device)


def _resolved(model: keras.Model, device: str) -> Mode:
    """What Keras makes of `jit_compile="auto"` on a device of the kind."""
    if device != GPU:
        return Mode(GRAPH)
    if not model_supports_jit(model):
        return Mode(GRAPH, (f"{_unsupported(model)} So Keras does not compile the model with XLA on a GPU.",))
    return Mode(XLA, ("On a GPU Keras compiles with XLA unless told otherwise, so XLA was estimated.",))


def _unsupported(model: keras.Model) -> str:
    layers = [layer for layer in model._flatten_layers() if not layer.supports_jit]
    if not layers:
        return "XLA is off in this process (deterministic ops are on, or the platform has none)."
    return f"The layer {layers[0].name!r} ({type(layers[0]).__name__}) does not support XLA."


def _sees_gpu() -> bool:
    return bool(tf.config.list_physical_devices("GPU"))
