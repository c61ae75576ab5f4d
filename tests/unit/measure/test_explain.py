"""Out-of-memory errors explained."""

from __future__ import annotations

import json

import keras
import pytest

import memest
from tensorboard_plugin_memest.measure.explain import explain, is_out_of_memory
from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.explanation import Explanation
from tensorboard_plugin_memest.memory.item import Item
from tests.samples import DENSE, KERNEL_BYTES, sample_estimate
from tests.unit.measure.test_oom_message import EAGER, FIT, XLA_LIST

LIMIT = 2**30 * 9

UPDATE = (
    "OOM when allocating tensor with shape[6019376,128] and type float on /job:localhost/replica:0/task:0/device:GPU:0 "
    "by allocator GPU_0_bfc\n\t [[{{node adam/Mul_77}}]]"
)


def test_a_text_and_an_estimate_tell_whose_it_was_and_what_was_live():
    estimate = sample_estimate(limit_bytes=LIMIT)
    found = memest.explain_oom(UPDATE, estimate)
    assert (found.layer, found.variable, found.category) == (DENSE, f"{DENSE}/kernel", Category.TEMPORARIES)
    assert (found.bytes, found.phase, found.limit_bytes) == (KERNEL_BYTES, "step", LIMIT)
    assert found.live == estimate.phases["step"].live_at_peak
    assert found.live_is_predicted
    assert found.predicted_peak_bytes == estimate.phases["step"].peak_bytes
    assert found.expectation.startswith("The estimate had said 17.2")
    assert "more than the limit of 9.00 GiB" in found.expectation
    assert found.advice[0].startswith("Make sequential/dense/kernel smaller, for example with a GlobalAveragePooling")
    assert any("jit_compile=True" in sentence for sentence in found.advice)
    # The activations hold 0.2 % of it.
    assert not any("batch_size" in sentence for sentence in found.advice)


def test_what_the_layers_make_grows_with_the_batch():
    made = [Item("a", f"op{n}", Category.TEMPORARIES, "x", None, (9,), "int8", 9, 9) for n in range(9)]
    weight = Item("a", "a/w", Category.WEIGHTS, "weight", "a/w", (19,), "int8", 19, 19)
    found = explain("OOM when allocating tensor with shape[9] and type int8 [[{{node a/op}}]]", live=(weight, *made))
    assert found.advice[0] == "A smaller batch_size: what grows with it holds 81 B, 81.0 %."
    assert not found.live_is_predicted
    assert not any("jit_compile" in sentence for sentence in found.advice)


def test_what_is_printed_has_the_facts():
    text = str(memest.explain_oom(UPDATE, sample_estimate(limit_bytes=LIMIT)))
    assert text.splitlines()[0].startswith("TensorFlow's allocator ran out in a training step when asked for 2.87 GiB")
    for fact in ("adam/Mul_77", "3,081,920,512 bytes", "float32[6019376, 128]", "GPU:0 GPU_0_bfc", "What to change:"):
        assert fact in text


def test_without_an_estimate_what_the_text_says_remains():
    found = memest.explain_oom(FIT)
    assert (found.layer, found.category, found.live, found.expectation) == (
        "(optimizer)",
        Category.TEMPORARIES,
        (),
        None,
    )
    assert found.advice


def test_a_failure_while_building_is_about_the_initializer():
    found = memest.explain_oom(EAGER, sample_estimate())
    assert (found.phase, found.role) == ("build", "initializer temporary")
    assert "initializer" in found.advice[0]


@pytest.mark.parametrize(("called", "layer"), [("Flatten", "sequential/flatten"), ("Noise", "Noise")])
def test_an_op_that_ran_eagerly_in_a_layer_s_call_is_that_layer_s(called, layer):
    text = (
        f"Exception encountered when calling {called}.call().\n\n{{{{function_node __wrapped__Mul_device_}}}} OOM when "
        "allocating tensor with shape[31] and type float on /job:localhost/device:GPU:0 [Op:Mul]"
    )
    found = memest.explain_oom(text, sample_estimate())
    assert (found.layer, found.op) == (layer, "Mul")


def test_what_xla_lists_is_what_was_live():
    found = memest.explain_oom(XLA_LIST, sample_estimate())
    assert not found.live_is_predicted
    assert [item.bytes for item in found.live] == [6 * 2**20, 384 * 2**10]
    assert found.role == "buffers of the compiled step"


@pytest.mark.parametrize("op", ["StatefulPartitionedCall", "cluster_0_1/xla_run", "_XlaRun"])
def test_an_op_that_runs_what_xla_compiled_is_no_layer(op):
    found = memest.explain_oom(f"Out of memory while trying to allocate 4096 bytes.\n\t [[{{{{node {op}}}}}]]")
    assert (found.op, found.layer, found.category) == (op, None, Category.TEMPORARIES)


def test_what_a_library_lacks_is_its_own_scratch_and_not_the_layer_s_output():
    found = memest.explain_oom("No algorithm worked!\n\t [[{{node model/conv2d/Conv2D}}]]")
    assert (found.layer, found.category) == ("model/conv2d", Category.WORKSPACE)
    assert "Conv2D output" not in str(found)


@pytest.mark.parametrize(
    "text",
    [
        "Failed copying input tensor from CPU:0 to GPU:0 in order to run _EagerConst: Dst tensor is not initialized.",
        "OOM when allocating tensor with shape[160000,64,64,1] and type double on /device:GPU:0 by allocator GPU_0_bfc "
        "[Op:GatherV2]",
    ],
)
def test_data_that_is_copied_as_a_whole_is_told(text):
    assert "tf.data.Dataset that is made under tf.device('CPU:0')" in memest.explain_oom(text).advice[0]
    gathered = "OOM when allocating tensor with shape[32,20,512] and type float on /device:GPU:0 by allocator GPU_0_bfc"
    of_a_layer = memest.explain_oom(f"{gathered}\n\t [[{{{{node model/embedding/GatherV2}}}}]]")
    assert not [said for said in of_a_layer.advice if "tf.data" in said]


def test_an_array_of_the_host_s_is_told_what_else_it_could_be():
    text = "Unable to allocate 56.1 GiB for an array with shape {} and data type {}"
    pixels = memest.explain_oom(text.format("(50000, 224, 224, 3)", "float64")).advice
    assert "takes 28.04 GiB in float32 and 7.01 GiB in uint8" in pixels[1]
    assert len(memest.explain_oom(text.format("(50000, 224, 224, 3)", "uint8")).advice) == 1
    assert "dimension of 60,000 is zeros" in memest.explain_oom(text.format("(20000, 60000)", "float64")).advice[1]


def test_a_driver_without_memory_is_told_who_else_may_hold_it():
    advice = memest.explain_oom("failed to allocate 7.44G (7985243136 bytes): CUDA_ERROR_OUT_OF_MEMORY").advice
    assert "another process" in advice[0]
    assert "set_memory_growth" in advice[1]


def test_room_in_pieces_is_told():
    found = explain(UPDATE, in_use_bytes=5 * 2**30, limit_bytes=LIMIT)
    assert "not in one piece" in found.advice[0]
    assert not any(
        "in one piece" in sentence for sentence in explain(UPDATE, in_use_bytes=LIMIT, limit_bytes=LIMIT).advice
    )


def test_an_estimate_that_said_it_fits_is_not_hidden():
    found = explain(UPDATE, sample_estimate(), limit_bytes=2**40)
    assert "which fits into 1024.00 GiB. So something that it does not count came on top" in found.expectation


def test_that_training_would_not_fit_either_is_told_beside_a_failure_while_building():
    found = explain(EAGER, sample_estimate(), limit_bytes=10 * 2**30)
    assert found.expectation.startswith("The estimate had said 8.61 GiB")
    assert "which fits into 10.00 GiB." in found.expectation
    assert found.expectation.endswith(sample_estimate().fits(10 * 2**30).sentence)
    assert "short" not in explain(EAGER, sample_estimate(), limit_bytes=2**40).expectation


def test_phases_that_need_as_much_are_told_once():
    found = explain(UPDATE, sample_estimate(), phase="first_step", limit_bytes=10 * 2**30)
    assert "for the first step: 7.2" in found.expectation
    assert "Needs" not in found.expectation


def test_what_is_known_of_the_run_wins():
    found = explain(UPDATE, sample_estimate(), phase="first_step", step=0, in_use_bytes=7)
    assert (found.phase, found.step, found.in_use_bytes) == ("first_step", 0, 7)
    assert "in the first step" in found.headline


def test_whose_memory_ran_out_is_said():
    assert explain(UPDATE).sentence == "The run ran out of GPU memory in a training step."
    host = explain("MemoryError", phase="step", step=7)
    assert host.sentence == "The run ran out of the host's memory in step 7."
    assert host.headline == "The host ran out of memory in step 7."


def test_the_error_behind_an_error_is_found_and_its_stack_tells_the_phase():
    def build():
        raise MemoryError("Unable to allocate 8.00 MiB for an array with shape (1024, 1024) and data type float64")

    def make_layer():
        try:
            build()
        except MemoryError as error:
            raise RuntimeError("the layer cannot be made") from error

    with pytest.raises(RuntimeError) as caught:
        make_layer()
    found = memest.explain_oom(caught.value, sample_estimate())
    assert (found.source, found.bytes) == ("the host", 2**23)
    # An estimate is of the device, so it says nothing here.
    assert found.live == ()
    assert is_out_of_memory(caught.value)
    assert not is_out_of_memory(ValueError("no"))


class SeveralError(Exception):
    """As `ExceptionGroup` of Python 3.11 is one."""

    def __init__(self, *exceptions: BaseException) -> None:
        super().__init__("several failed")
        self.exceptions = exceptions


@pytest.mark.parametrize("how", ["cause", "context", "from none", "beside a cause", "in a group", "behind a circle"])
def test_the_error_is_found_however_it_is_chained(how):
    first, last = (
        MemoryError("Unable to allocate 8.00 MiB for an array with shape (2, 4) and data type int8"),
        Exception(),
    )
    if how == "cause":
        last.__cause__ = first
    elif how in ("context", "from none"):
        last.__context__, last.__suppress_context__ = first, how == "from none"
    elif how == "beside a cause":
        last.__cause__, last.__context__ = ValueError("closed"), first
    elif how == "in a group":
        last = SeveralError(ValueError("one"), RuntimeError("two"))
        last.exceptions[1].__context__ = first
    else:
        middle = KeyError("middle")
        last.__cause__, middle.__cause__, middle.__context__ = middle, last, first
    assert memest.explain_oom(last).bytes == 8


def test_an_error_of_pytorch_s_is_no_business_of_the_estimate():
    found = memest.explain_oom(
        "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 8.00 GiB total)", sample_estimate()
    )
    assert found.headline == "PyTorch's allocator ran out when asked for 2.00 GiB."
    assert (found.live, found.expectation, len(found.advice)) == ((), None, 1)
    assert "PyTorch's error" in found.advice[0]


@pytest.mark.parametrize("text", [UPDATE, FIT, XLA_LIST])
def test_written_down_and_read_back_it_is_the_same(text):
    found = memest.explain_oom(text, sample_estimate())
    assert Explanation.from_dict(json.loads(json.dumps(found.to_dict()))) == found


@pytest.mark.parametrize("error", ["shapes do not match", ValueError("shapes do not match")])
def test_other_errors_are_refused_with_what_was_given(error):
    with pytest.raises(ValueError, match=r"no error about memory .*shapes do not match"):
        memest.explain_oom(error)


def test_wrong_arguments_are_refused():
    with pytest.raises(TypeError, match=r"not 7 of type int"):
        memest.explain_oom(7)
    with pytest.raises(TypeError, match=r"what memest\.estimate returned"):
        memest.explain_oom(UPDATE, estimate=9)


def test_a_tensor_that_only_evaluation_makes_is_of_its_batch():
    model = keras.Sequential([keras.Input((6, 4)), keras.layers.LSTM(8), keras.layers.Dense(3)])
    model.compile("adam", "mse", jit_compile=False)
    made = memest.estimate(model, batch_size=2, validation_batch_size=50, device="GPU")
    # The four gates of the cell: no layer returns them.
    found = memest.explain_oom("OOM when allocating tensor with shape[50,32] and type float", made)
    assert (found.phase, found.layer) == ("evaluate", "lstm/lstm_cell")
    assert found.predicted_peak_bytes == made.phases["evaluate"].peak_bytes
    assert found.advice[0].startswith("A smaller validation_batch_size in fit, or batch_size in evaluate: what grows ")
    trained = memest.explain_oom("OOM when allocating tensor with shape[2,32] and type float", made)
    assert (trained.phase, trained.layer) == ("step", "lstm/lstm_cell")
    assert trained.advice[0].startswith("A smaller batch_size: ")
    assert memest.explain_oom("OOM when allocating tensor with shape[77,32] and type float", made).layer is None
