"""Functions that AutoGraph leaves alone."""

from __future__ import annotations

import inspect

import tensorflow as tf
from tensorflow.python.autograph.core import ag_ctx

from tensorboard_plugin_memest.estimation.plain_python import plain_python


@plain_python
def status() -> str:
    """What AutoGraph is up to."""
    return str(ag_ctx.control_status_ctx().status)


def inner() -> str:
    return inspect.currentframe().f_code.co_filename


@plain_python
def file_of_what_runs() -> str:
    return inner()


def test_a_function_keeps_its_name_signature_and_result():
    assert status.__name__ == "status"
    assert status.__doc__ == "What AutoGraph is up to."
    assert list(inspect.signature(status).parameters) == []
    assert file_of_what_runs() == __file__


def test_in_a_traced_function_nothing_of_it_is_rewritten():
    seen = []

    @tf.function
    def traced():
        seen.append(file_of_what_runs())
        return tf.zeros(())

    traced()
    assert seen == [__file__]


def test_functions_inside_are_treated_as_outside_of_any():
    outside = status()
    seen = []

    @tf.function
    def traced():
        seen.append(status())
        return tf.zeros(())

    traced()
    assert seen == [outside]


def test_functions_of_tensorflow_inside_are_rewritten_as_ever():
    @plain_python
    def build():
        # A condition on a tensor: only AutoGraph can make one of it.
        def positive(x):
            return x if x > 0 else -x

        return [int(x) for x in tf.data.Dataset.from_tensor_slices([-1, 2]).map(positive)]

    assert build() == [1, 2]
