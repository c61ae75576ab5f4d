"""What one process hands to another to rehearse: a function or a model, and Keras' settings.

A process forked after TensorFlow has begun cannot use it, and one forked before cannot know what was defined since.
So a fresh process gets the function by value, which `cloudpickle` does for lambdas, closures and what `__main__` or a
notebook defines, too; and a model by its configuration, for its weights are made anew anyway.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any

import cloudpickle
import keras

from tensorboard_plugin_memest.memory.errors import UsageError

PAYLOAD = "handover.pkl"

_LIBRARIES = ("keras", "tensorflow", "numpy", "builtins", "tensorboard_plugin_memest.")


@dataclass(frozen=True)
class Handover:
    """What is to be rehearsed.

    Attributes:
        build: makes the model.
        batch_size: examples a step; None as for `estimate`.
        steps: how many steps to train.
        arguments: other arguments of `estimate`, Keras' objects among them as configurations.
        settings: Keras' settings that decide what a function builds.
    """

    build: Callable[[], keras.Model]
    batch_size: int | None
    steps: int
    arguments: dict[str, Any]
    settings: dict[str, Any]

    def apply_settings(self) -> None:
        """Makes Keras' settings of this process those of the one that handed over."""
        keras.config.set_floatx(self.settings["floatx"])
        keras.config.set_epsilon(self.settings["epsilon"])
        keras.config.set_image_data_format(self.settings["image_data_format"])
        keras.config.set_dtype_policy(keras.saving.deserialize_keras_object(self.settings["dtype_policy"]))


@dataclass(frozen=True)
class FromConfiguration:
    """Makes a Keras object, such as a compiled model, from its configuration.

    Attributes:
        configuration: as `keras.saving.serialize_keras_object` gives it.
        own: by name, the classes and functions in it that are not Keras' own.
        compilation: for a compiled model, the arguments of `compile`, as `get_compile_config` gives them. On its own,
            because Keras' loading of a whole model creates the optimizer's variables, which a training does later.
        modes: for a compiled model, how it runs, which that does not keep.
    """

    configuration: dict[str, Any]
    own: dict[str, Any]
    compilation: dict[str, Any] | None = None
    modes: dict[str, Any] = field(default_factory=dict)

    def __call__(self) -> Any:
        # It was an object of this user's a moment ago, so its code may be run.
        made = keras.saving.deserialize_keras_object(self.configuration, custom_objects=self.own, safe_mode=False)
        if self.compilation is not None:
            with keras.saving.custom_object_scope(self.own):
                made.compile(**keras.saving.deserialize_keras_object(self.compilation, safe_mode=False))
        for name, value in self.modes.items():
            setattr(made, name, value)
        return made


def settings() -> dict[str, Any]:
    """Keras' settings of this process, for `Handover.settings`."""
    return {
        "floatx": keras.config.floatx(),
        "epsilon": keras.config.epsilon(),
        "image_data_format": keras.config.image_data_format(),
        "dtype_policy": keras.saving.serialize_keras_object(keras.config.dtype_policy()),
    }


def packed(handover: Handover) -> bytes:
    """`handover` for another process.

    Raises:
        ValueError: it holds something that no other process can be given.
    """
    try:
        with _by_value(handover.build):
            data: bytes = cloudpickle.dumps(handover)
    except Exception as error:
        raise UsageError(
            f"{handover.build!r} cannot be handed to the process that rehearses ({type(error).__name__}: {error}). "
            "Pass a function that makes all it needs itself: no variables, datasets, files or locks from outside of it."
        ) from error
    return data


def as_build(model_or_build: Any) -> Callable[[], keras.Model]:
    """A function that makes the model in another process.

    Raises:
        ValueError: the model cannot be made from its configuration.
    """
    if not isinstance(model_or_build, keras.Model):
        build: Callable[[], keras.Model] = model_or_build
        return build
    model = model_or_build
    made = as_configuration(model)
    try:
        # Whatever is wrong with it shows here, where the model is, and not in another process.
        with keras.saving.custom_object_scope(made.own):
            type(model).from_config(model.get_config())
    except Exception as error:
        raise UsageError(
            f"The model {model.name!r} ({type(model).__name__}) cannot be made again from its configuration "
            f"({type(error).__name__}: {error}). Pass a function that makes it instead."
        ) from error
    return made


def as_configuration(thing: Any) -> FromConfiguration:
    """What makes `thing`, an object of Keras, in another process."""
    configuration = dict(keras.saving.serialize_keras_object(thing))
    if not isinstance(thing, keras.Model):
        return FromConfiguration(configuration, _own(_parts(thing)))
    compilation = configuration.pop("compile_config", None)
    if not thing.compiled:
        return FromConfiguration(configuration, _own(_parts(thing)))
    if not compilation or type(thing).compile is not keras.Model.compile:
        raise UsageError(
            f"The model {thing.name!r} ({type(thing).__name__}) does not say how it was compiled, because it has a "
            "compile() of its own. Pass a function that makes and compiles it instead."
        )
    # What was passed to compile(): functions and objects that the configuration only names.
    passed = keras.tree.flatten(getattr(getattr(thing, "_compile_config", None), "config", {}))
    modes = {"run_eagerly": bool(thing.run_eagerly), "jit_compile": bool(thing.jit_compile)}
    return FromConfiguration(configuration, _own([*_parts(thing), *passed]), compilation, modes)


def _parts(thing: Any) -> list[Any]:
    return list(thing._flatten_layers()) if isinstance(thing, keras.layers.Layer) else [thing]


def _own(parts: Iterable[Any]) -> dict[str, Any]:
    """By name, the functions among `parts`, and the classes of the others, that no library brings."""
    found = {}
    for part in parts:
        named = part if isinstance(part, FunctionType) else type(part)
        if not named.__module__.startswith(_LIBRARIES):
            found[named.__name__] = named
    return found


def portable(arguments: dict[str, Any]) -> dict[str, Any]:
    """Arguments of `estimate` with Keras' objects as configurations; `rebuilt` makes them objects again."""
    return {
        name: as_configuration(value) if isinstance(value, (keras.optimizers.Optimizer, keras.losses.Loss)) else value
        for name, value in arguments.items()
    }


def rebuilt(arguments: dict[str, Any]) -> dict[str, Any]:
    """What `portable` was given."""
    return {name: value() if isinstance(value, FromConfiguration) else value for name, value in arguments.items()}


@contextlib.contextmanager
def _by_value(build: Any) -> Iterator[None]:
    """While it lasts, the module that `build` comes from is handed over by value: another process may not find it.

    Only what `build` uses of it goes along.
    """
    own = list(build.own.values()) if isinstance(build, FromConfiguration) else []
    registered = []
    for thing in [getattr(build, "func", build), *own]:
        module = sys.modules.get(getattr(thing, "__module__", None) or "")
        if _is_the_user_s(module) and module not in registered:
            cloudpickle.register_pickle_by_value(module)
            registered.append(module)
    try:
        yield
    finally:
        for module in registered:
            cloudpickle.unregister_pickle_by_value(module)


def _is_the_user_s(module: ModuleType | None) -> bool:
    """Whether a module is the user's own and not an installed one, which the other process finds as this one does."""
    path = getattr(module, "__file__", None)
    if module is None or module.__name__ == "__main__" or path is None:
        return False
    return "site-packages" not in path and not module.__name__.startswith(_LIBRARIES)
