"""What a model is made of, seen from outside of Keras."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from tensorboard_plugin_memest.estimation.reachable import (
    inner_optimizers,
    is_opaque,
    is_wrapper,
    optimizers_of,
    reachable,
)


class Holder:
    """An object of a user's, no Keras class."""

    def __init__(self, **things):
        vars(self).update(things)


def found(*roots) -> set[int]:
    return {id(thing) for thing in reachable(roots)}


def test_everything_behind_attributes_and_containers_is_found_once():
    inner = Holder(name="inner")
    holder = Holder(a=[inner, {"b": (inner,)}], c=Holder(d=inner))
    things = reachable([holder])
    assert things[0] is holder
    assert sum(thing is inner for thing in things) == 1
    assert {id(holder.a), id(holder.a[1]), id(holder.c)} <= {id(thing) for thing in things}


def test_cycles_end():
    one, other = Holder(), Holder()
    one.other, other.one = other, one
    assert reachable([one]) == [one, other]


def test_values_and_machinery_are_left_out():
    holder = Holder(
        number=1, text="x", none=None, array=np.zeros(3), tensor=tf.zeros(3), module=keras, function=len, kind=Holder
    )
    assert reachable([holder]) == [holder]
    for value in vars(holder).values():
        assert is_opaque(value)
    assert not is_opaque(holder)


def test_a_models_layers_variables_trackers_and_metrics_are_found():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3), keras.layers.Dropout(0.5, seed=1)])
    model.compile("adam", "mse", metrics=["mae"])
    ids = found(model)
    dense, dropout = model.layers
    for thing in (dense, dense.kernel, dense._tracker, dense._trainable_variables, dropout.seed_generator):
        assert id(thing) in ids, thing
    for thing in (model.optimizer, model.optimizer.iterations, model._compile_loss, model._loss_tracker):
        assert id(thing) in ids, thing


def test_tensorflows_wrappers_lead_to_what_they_wrap():
    module = tf.Module()
    module.things = [Holder()]
    module.names = {"a": Holder()}
    assert is_wrapper(module.things)
    assert is_wrapper(module.names)
    assert not is_wrapper([Holder()])
    ids = found(module.things, module.names)
    assert id(module.things[0]) in ids
    assert id(module.names["a"]) in ids


class Gan(keras.Model):
    def __init__(self):
        super().__init__()
        self.first = keras.optimizers.Adam()
        self.others = {"second": [keras.optimizers.SGD()]}
        self.part = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
        self.part.compile("rmsprop", "mse")


def test_all_optimizers_of_a_model_are_found():
    model = Gan()
    assert {id(one) for one in optimizers_of([model])} == {
        id(model.first),
        id(model.others["second"][0]),
        id(model.part.optimizer),
    }


def test_the_optimizer_inside_another_is_not_the_models():
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    outer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD())
    model.compile(outer, "mse")
    assert optimizers_of([model]) == [outer]
    assert inner_optimizers(outer) == [outer.inner_optimizer]
    assert inner_optimizers(outer.inner_optimizer) == []


def test_an_uncompiled_model_has_no_optimizers():
    assert optimizers_of([keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])]) == []


def test_classes_of_code_that_is_executed_outside_of_any_module_hide_nothing():
    names = {"keras": keras}
    exec("class Own(keras.Model):\n    pass\nmodel = Own()", names)
    model = names["model"]
    assert type(model).__module__ == "builtins"
    model.optimizer = keras.optimizers.SGD()
    assert model.optimizer in reachable([model])
