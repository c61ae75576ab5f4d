"""Whose a failed allocation was."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tensorboard_plugin_memest.measure.whose import OPTIMIZER, Owners, find_whose, is_update
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.estimate import Estimate, LayerInfo
from tensorboard_plugin_memest.memory.whose import Whose
from tests.samples import CONV, DENSE, KERNEL, sample_estimate

VARIABLE = f"{DENSE}/kernel"


def find(op, shape, phase="step", estimate=None):
    return find_whose(op, shape, phase, estimate or sample_estimate())


def test_what_the_estimate_has_alive_it_says_itself():
    assert find("adam/Square_4", KERNEL) == Whose(DENSE, Category.TEMPORARIES, "update temporary", VARIABLE)
    assert find("sequential/conv2d/Relu", (1, 1489, 255, 16)).category is Category.ACTIVATIONS


@pytest.mark.parametrize(
    ("shape", "whose"),
    [
        ((2, 30, 40, 8), Whose("net/first")),
        ((2, 8, 30, 40), Whose("net/first")),  # channels first, as on a GPU
        ((2400, 8), Whose("net/first")),  # as a product sees it
        ((2, 15, 20, 16), Whose(role="like what net/second and net/third make")),
        ((2, 7), Whose(role="like what net/a, net/b and 2 others make")),
        (KERNEL, Whose(DENSE, variable=VARIABLE)),
        ((2, 30, 40), Whose()),  # the batch itself
        ((5, 5), Whose()),
    ],
)
def test_a_shape_alone_tells_what_has_it(shape, whose):
    made = {"first": (2, 30, 40, 8), "second": (2, 15, 20, 16), "third": (2, 15, 20, 16)}
    made |= dict.fromkeys("abcd", (2, 7))
    infos = [LayerInfo("net", "Functional", (2, 30, 40, 8), 0), LayerInfo("net/input", "InputLayer", (2, 30, 40), 0)]
    infos += [LayerInfo(f"net/{name}", "Layer", size, 0) for name, size in made.items()]
    assert find(None, shape, None, replace(sample_estimate(), layer_infos=tuple(infos))) == whose


def test_the_number_of_the_root_scope_depends_on_what_ran_before_and_says_nothing():
    assert find("adam_3/Square_4", KERNEL).variable == VARIABLE
    found = find("StatefulPartitionedCall/gradient_tape/sequential_2/dense/MatMul_1", KERNEL)
    assert (found.layer, found.category) == (DENSE, Category.GRADIENTS)


def test_an_update_that_is_not_alive_at_the_peak_is_told_by_the_only_weight_of_its_shape():
    found = find("adam/AssignSubVariableOp_9", KERNEL)
    assert found == Whose(DENSE, Category.TEMPORARIES, "update temporary", VARIABLE)
    assert find("adam/AssignSubVariableOp_9", (5, 5)) == Whose(OPTIMIZER, Category.TEMPORARIES, "update temporary")


def test_what_the_estimate_has_noted_for_an_op_counts_if_the_shape_allows_it():
    estimate = sample_estimate()
    noted = Whose(CONV, Category.TEMPORARIES, "update temporary", "sequential/conv2d/kernel")
    step = replace(estimate.phases["step"], owners={"adam/AssignAddVariableOp_1": noted})
    estimate = replace(estimate, phases={**estimate.phases, "step": step})
    assert find("adam_2/AssignAddVariableOp_1", (3, 3, 1, 16), estimate=estimate) == noted
    assert find("adam_2/AssignAddVariableOp_1", KERNEL, estimate=estimate).variable == VARIABLE
    assert Estimate.from_json(estimate.to_json()) == estimate


def test_a_tensor_that_lives_is_who_took_it_over_and_one_that_could_not_be_made_is_who_asked_for_it():
    heir = Whose("relu", Category.ACTIVATIONS, "Relu output")
    step = replace(
        sample_estimate().phases["step"],
        owners={"net/norm/Fused": Whose("norm", Category.ACTIVATIONS, "Fused output")},
        heirs={"net/norm/Fused": heir},
    )
    estimate = replace(sample_estimate(), phases={"step": step})
    owners = Owners(estimate, "step")
    assert owners.find("net_2/norm/Fused", (4,), lives=True) == heir
    assert owners.find("net_2/norm/Fused", (4,)).layer == "norm"
    assert Estimate.from_json(estimate.to_json()) == estimate


def test_what_another_phase_has_alive_says_nothing_of_an_op_that_this_one_knows():
    estimate = sample_estimate()
    heir = Whose("relu", Category.ACTIVATIONS, "Relu output")
    asked = estimate.phases["step"].live_at_peak[0]
    other = replace(asked, name="net/norm/Fused", layer="norm", category=Category.TEMPORARIES, shape=(4,))
    first = replace(estimate.phases["step"], name="first_step", live_at_peak=(other,))
    step = replace(estimate.phases["step"], heirs={"net/norm/Fused": heir})
    owners = Owners(replace(estimate, phases={"first_step": first, "step": step}), "step")
    assert owners.find("net_2/norm/Fused", (4,), lives=True) == heir
    assert owners.find("net_2/norm/Fused", (4,)).layer == "norm"


def test_an_initializer_is_told_by_its_weight_s_shape():
    found = find("StatelessRandomUniformV2", KERNEL, "build")
    assert found == Whose(DENSE, Category.TEMPORARIES, "initializer temporary", VARIABLE)
    assert find("StatelessRandomUniformV2", (7, 7), "build").layer is None


def test_other_ops_are_told_by_the_layer_in_their_names():
    assert find("sequential_1/conv2d_1/convolution", (9,)) == Whose(CONV, Category.ACTIVATIONS, "convolution output")
    backward = find("gradient_tape/sequential_1/conv2d_1/ReluGrad_2", (9,))
    assert backward == Whose(CONV, Category.TEMPORARIES, "ReluGrad output, backward")


def test_a_scope_with_two_numbers_is_the_numbered_layer_called_again():
    infos = (LayerInfo("dense", "Dense", None, 8), LayerInfo("dense_1", "Dense", None, 8))
    estimate = replace(sample_estimate(), layer_infos=infos)
    assert find("sequential_1/dense_1_2/MatMul", (5,), estimate=estimate).layer == "dense_1"
    assert find("sequential_1/dense_2/MatMul", (5,), estimate=estimate).layer == "dense"


@pytest.mark.parametrize(("shape", "layer"), [((32, 7), "dense"), ((32, 9), "dense_1")])
def test_of_two_layers_that_a_scope_may_mean_the_one_with_the_tensor_s_shape_is_taken(shape, layer):
    infos = (LayerInfo("dense", "Dense", (32, 7), 8), LayerInfo("dense_1", "Dense", (32, 9), 8))
    estimate = replace(sample_estimate(), layer_infos=infos)
    assert find("sequential_1/dense_1/MatMul", shape, estimate=estimate).layer == layer


def test_the_loss_and_the_metrics_are_parts_of_the_step():
    assert find("compile_loss/mse/sub", (3,)).layer == "(loss)"
    assert find("gradient_tape/compile_loss_1/mse/Mul", (3,)).layer == "(loss)"
    assert find("compile_metrics/mae/Abs", (3,)).layer == "(metrics)"


def test_without_an_estimate_the_scopes_are_what_is_known():
    found = find_whose("gradient_tape/unet/block_2/conv/ReluGrad", (1,), "step", None)
    assert found == Whose("unet/block_2/conv", Category.TEMPORARIES, "ReluGrad output, backward")
    assert find_whose("rmsprop/Square_4", (3,), None, None).layer == OPTIMIZER
    assert find_whose(None, None, None, None) == Whose()


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("adam/Square", True), ("training_10/Adam/mul_23", True),
        ("AdamW_2/Mul_1", True), ("AssignAddVariableOp_5", True), ("ScatterUpdate", True),
        ("dense/MatMul", False), ("gradient_tape/adam/Mul", False), ("adamant/Mul", False), ("MatMul", False),
    ],
)  # fmt: skip
def test_an_optimizer_s_ops_are_known_by_their_scope(op, expected):
    assert is_update(op) is expected
