"""Paths of layers, and what layers are."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from tensorboard_plugin_memest.estimation.layers import LayerPaths, outermost_layers

L = keras.layers


def paths(model: keras.Model) -> list[str]:
    return [path for path, _ in LayerPaths(model).layers]


def test_layers_have_their_names_and_those_inside_layers_the_names_of_both():
    encoder = keras.Sequential([keras.Input((8,)), L.Dense(4, name="a"), L.Dense(4, name="b")], name="encoder")
    model = keras.Sequential([keras.Input((8,)), encoder, L.Dense(1, name="head")], name="whole")
    assert [path for path in paths(model) if "input" not in path] == ["encoder", "encoder/a", "encoder/b", "head"]
    found = LayerPaths(model)
    assert found.path_of(encoder.layers[0]) == "encoder/a"
    assert found.path_of(model) == "whole"
    assert found.path_of(L.Dense(1)) is None


def test_layers_inside_wrappers_are_theirs():
    model = keras.Sequential([keras.Input((5, 8)), L.Bidirectional(L.LSTM(4, name="lstm"), name="both")])
    found = paths(model)
    assert {"both", "both/forward_lstm", "both/forward_lstm/lstm_cell", "both/backward_lstm/lstm_cell"} <= set(found)


def test_a_shared_layer_is_one_layer():
    shared = L.Dense(8, name="shared")
    one, other = keras.Input((8,)), keras.Input((8,))
    model = keras.Model([one, other], L.Add(name="sum")([shared(one), shared(shared(other))]))
    assert paths(model).count("shared") == 1


class Twins(keras.Model):
    def __init__(self):
        super().__init__(name="twins")
        self.parts = [L.Dense(3, name="twin") for _ in range(3)]
        self.scale = self.add_weight(shape=(3,), name="scale")

    def call(self, x):
        for part in self.parts:
            x = part(x)
        return x * self.scale


def test_layers_of_one_name_get_numbers():
    model = Twins()
    model(np.zeros((1, 3)))
    found = LayerPaths(model)
    assert [path for path, _ in found.layers] == ["twin", "twin#2", "twin#3"]
    assert found.owner_of(model.parts[1].kernel) == ("twin#2", "kernel")
    assert found.owner_of(model.scale) == ("twins", "scale")
    assert found.owner_of(keras.Variable(1.0)) is None


def test_what_the_model_itself_holds_is_told_last():
    model = Twins()
    model(np.zeros((1, 3)))
    infos = LayerPaths(model).infos(4)
    assert [(info.path, info.class_name, info.parameters) for info in infos] == [
        ("twin", "Dense", 12),
        ("twin#2", "Dense", 12),
        ("twin#3", "Dense", 12),
        ("twins", "Twins", 3),
    ]


def test_output_shapes_are_those_of_the_batch():
    model = keras.Sequential(
        [keras.Input((28, 28, 1)), L.Conv2D(4, 3, name="conv"), L.Flatten(name="flat"), L.Dense(2, name="dense")]
    )
    shapes = {info.path: info.output_shape for info in LayerPaths(model).infos(16)}
    assert shapes["conv"] == (16, 26, 26, 4)
    assert shapes["flat"] == (16, 2704)
    assert shapes["dense"] == (16, 2)
    other = {info.path: info.output_shape for info in LayerPaths(model).infos(1)}
    assert other["conv"] == (1, 26, 26, 4)


def test_a_fixed_batch_stays():
    model = keras.Sequential([keras.Input(batch_shape=(8, 4)), L.Dense(2, name="dense")])
    assert LayerPaths(model).infos(8)[-1].output_shape == (8, 2)


def test_a_dimension_that_is_not_known_is_none():
    model = keras.Sequential([keras.Input((None, 4)), L.Dense(2, name="dense")])
    assert LayerPaths(model).infos(8)[-1].output_shape == (8, None, 2)


def test_layers_that_were_called_on_no_symbolic_tensor_have_no_known_output():
    model = Twins()
    model(np.zeros((1, 3)))
    assert LayerPaths(model).infos(1)[0].output_shape is None


def test_parameters_are_a_layers_own_trained_or_not():
    model = keras.Sequential([keras.Input((8,)), L.Dense(4, trainable=False), L.BatchNormalization(), L.Dropout(0.5)])
    parameters = {info.class_name: info.parameters for info in LayerPaths(model).infos(1)}
    assert parameters["Dense"] == 8 * 4 + 4
    assert parameters["BatchNormalization"] == 4 * 4
    assert parameters["Dropout"] == 0, "the state of its random numbers is no parameter"


def test_of_several_models_each_path_begins_with_its_models_name():
    one, other = (keras.Sequential([keras.Input((4,)), L.Dense(2, name="d")], name=name) for name in ("one", "other"))
    found = LayerPaths(one, other)
    assert [path for path, _ in found.layers if "input" not in path] == ["one", "one/d", "other", "other/d"]
    assert found.path_of(other.layers[0]) == "other/d"
    assert found.owner_of(other.layers[0].kernel) == ("other/d", "kernel")
    parameters = {info.path: info.parameters for info in found.infos(8)}
    assert (parameters["one"], parameters["one/d"]) == (0, 10)


def test_models_of_one_name_and_layers_that_two_models_share_are_told_apart():
    shared = L.Dense(2, name="shared")
    one, other = (keras.Sequential([keras.Input((2,)), shared, L.Dense(1, name="d")], name="same") for _ in range(2))
    found = LayerPaths(one, other)
    assert [path for path, _ in found.layers if "input" not in path] == [
        "same",
        "same/shared",
        "same/d",
        "same#2",
        "same#2/d",
    ]


def test_the_outermost_layers_are_in_no_other():
    inner = keras.Sequential([keras.Input((4,)), L.Dense(2)])
    outer = keras.Sequential([keras.Input((4,)), inner])
    holder = tf.Module()
    holder.held = L.Dense(3)
    alone = L.Dense(4)
    things = [outer, inner, *inner.layers, outer._functional, holder, holder.held, alone, "text"]
    assert outermost_layers(things) == [outer, holder, alone]


def test_modules_and_their_variables_are_named_by_the_attributes_that_hold_them():
    module = tf.Module(name="net")
    module.parts = [tf.Module(), tf.Module()]
    module.parts[1].kernel = tf.Variable(tf.zeros((3, 4)))
    module.head = L.Dense(1)
    found = LayerPaths(module)
    assert [path for path, _ in found.layers] == ["head", "parts/0", "parts/1"]
    assert found.owner_of(module.parts[1].kernel) == ("parts/1", "kernel")
    assert [(info.path, info.class_name, info.parameters) for info in found.infos(1)][2] == ("parts/1", "Module", 12)
