"""What a function uses without being passed it."""

from __future__ import annotations

import functools
import types

import keras
import tensorflow as tf

from tensorboard_plugin_memest.estimation.around import around, untouched_surroundings

L = keras.layers
later = None


class Holder:
    def __init__(self, **things):
        vars(self).update(things)

    def used(self):
        return self.thing, helper()

    @property
    def seen(self):
        return DEEP


GLOBAL, UNUSED, DEEP = Holder(), Holder(), Holder()


def helper():
    return (lambda: GLOBAL)()


def found(*roots) -> set[int]:
    return {id(thing) for thing in around(roots)}


def test_closures_globals_and_functions_called_are_followed():
    inside = L.Dense(1)

    def other():
        return inside

    def step():
        return other(), helper()

    assert {id(inside), id(GLOBAL)} <= found(step)
    assert id(UNUSED) not in found(step)


def test_defaults_partials_and_attributes_are_followed():
    one, two, three, four = (tf.Variable(1.0) for _ in range(4))

    def step(a=one, *, b=two):
        return a, b, step.more

    step.more = three
    assert {id(one), id(two), id(three), id(four)} <= found(functools.partial(step, four))


def test_methods_lead_to_their_object_and_functions_of_its_class():
    holder = Holder(thing=tf.Variable(1.0))
    assert {id(holder.thing), id(GLOBAL), id(DEEP)} <= found(holder.used)


def test_tf_functions_and_their_methods_are_followed():
    class Trainer:
        def __init__(self):
            self.model = L.Dense(1)

        @tf.function
        def step(self, x):
            return self.model(x), GLOBAL

    trainer = Trainer()
    assert {id(trainer.model), id(GLOBAL)} <= found(trainer.step)
    assert id(GLOBAL) in found(tf.function(lambda x: (x, GLOBAL)))


def test_attributes_of_the_users_modules_are_followed():
    config = types.ModuleType("my_config")
    config.weight, config.unused = Holder(), Holder()
    scope = {"config": config, "__name__": "my_steps"}
    exec("def step(): return config.weight", scope)
    assert id(config.weight) in found(scope["step"])
    assert id(config.unused) not in found(scope["step"])


def test_modules_and_what_is_in_containers_are_found():
    module = tf.Module()
    module.weights = {"a": [tf.Variable(1.0)]}
    assert {id(module), id(module.weights["a"][0])} <= found({"deep": [module]})


def test_libraries_are_not_searched():
    assert around([tf.reduce_sum, keras.ops.mean, len, 3, "text", tf.constant(1.0), None]) == []


def test_closures_globals_and_attributes_are_put_back():
    inside = None
    unset: int

    def step():
        global later
        nonlocal inside, unset
        inside, later, unset = 1, 2, 3
        step.state = 4

    with untouched_surroundings([step]):
        step()
        assert (inside, later, unset, step.state) == (1, 2, 3, 4)
    assert inside is None
    assert later is None
    assert vars(step) == {}
    assert [cell for cell in step.__closure__ if cell is not None]
    try:
        unset  # noqa: B018
    except NameError:
        pass
    else:
        raise AssertionError("unset before, set after")
