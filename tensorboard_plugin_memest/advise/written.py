"""Code as one would write it in a script: layers from their configurations, classes from their own sources."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
from keras.src.utils.naming import to_snake_case


def written(class_name: str, config: Mapping[str, Any], **changes: Any) -> str:
    """The call that makes a layer of Keras', with what differs from the defaults alone.

    Args:
        class_name: its class in `keras.layers`.
        config: its configuration.
        **changes: what to put in place of some of it.
    """
    made_by = getattr(keras.layers, class_name)
    config = {**config, **changes}
    if re.fullmatch(rf"{to_snake_case(class_name)}(_\d+)?", str(config.get("name"))):
        # Keras counted, nobody chose it.
        config.pop("name")
    return _call(f"layers.{class_name}", made_by, config)


def source_of(made: Any) -> str:
    """The source of a class or function, without annotations, docstrings and comments."""
    tree = ast.parse(inspect.getsource(made))
    for node in ast.walk(tree):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        if isinstance(node, ast.arg):
            node.annotation = None
    return ast.unparse(tree)


def compiling(model: str = "model", optimizer: str = "", **options: str) -> str:
    """Code that compiles a model like `model`; its optimizer is made anew, for one that is built keeps its slots.

    Args:
        model: name of the variable with the model to compile.
        optimizer: code that makes the optimizer; empty to make one like before.
        **options: arguments of `compile`, as code.
    """
    told = ", ".join(f"{name}={value}" for name, value in {"loss": "model.loss", **options}.items())
    line = f"{model}.compile({optimizer or 'optimizer'}, {told})  # and your metrics"
    return line if optimizer else f"optimizer = type(model.optimizer).from_config(model.optimizer.get_config())\n{line}"


def _call(function: str, made_by: Any, config: Mapping[str, Any]) -> str:
    parameters = list(inspect.signature(made_by).parameters.values())
    required = [one.name for one in parameters if one.default is one.empty and one.name in config]
    usual = made_by(**{name: config[name] for name in required}).get_config()
    others = [name for name in config if name not in required and config[name] != usual.get(name)]
    # Names differ from one making to the next, and only a layer's is told.
    others = [name for name in others if name != "name" or issubclass(made_by, keras.layers.Layer)]
    told = [_value(config[name]) for name in required]
    return f"{function}({', '.join([*told, *(f'{name}={_value(config[name])}' for name in others)])})"


def _value(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, float) and np.float32(value) == value:
        return str(np.float32(value))
    if isinstance(value, dict) and "class_name" in value:
        made_by = type(keras.saving.deserialize_keras_object(value))
        return _call(f"{value['module']}.{value['class_name']}", made_by, value["config"])
    return repr(value)
