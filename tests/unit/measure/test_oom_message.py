"""Messages of TensorFlow, XLA, CUDA and Python about memory, as they are found in the wild."""

from __future__ import annotations

import pytest

from tensorboard_plugin_memest.measure import oom_message
from tensorboard_plugin_memest.measure.oom_message import parse_message
from tensorboard_plugin_memest.memory.category import Category

GPU = "/job:localhost/replica:0/task:0/device:GPU:0"

# What fit raises on a CPU with TensorFlow 2.21, the stack shortened.
FIT = f"""Graph execution error:

Detected at node adam/AssignAddVariableOp_5 defined at (most recent call last):
  File "train.py", line 11, in <module>

  File "keras/src/backend/tensorflow/trainer.py", line 399, in fit

  File "keras/src/backend/tensorflow/trainer.py", line 84, in train_step

OOM when allocating tensor with shape[2000,500] and type float on {GPU.replace("GPU", "CPU")} by allocator cpu_bfc
\t [[{{{{node adam/AssignAddVariableOp_5}}}}]]
Hint: If you want to see a list of allocated tensors when OOM happens, add report_tensor_allocations_upon_oom.
 [Op:__inference_multi_step_on_iterator_1154]"""

CPU = GPU.replace("GPU", "CPU")

EAGER = (
    f"{{{{function_node __wrapped__StatelessRandomUniformV2_device_{CPU}}}}} OOM when allocating tensor with "
    f"shape[2000,3] and type double on {CPU} by allocator bfc_cpu [Op:StatelessRandomUniformV2] name: "
)

TWO_ERRORS = f"""2 root error(s) found.
  (0) Resource exhausted: OOM when allocating tensor with shape[32,7,7,8] and type half on {GPU} by allocator GPU_0_bfc
\t [[{{{{node model/block5/conv1/Conv2D}}}}]]
\t [[{{{{node loss}}}}]]
  (1) Resource exhausted: OOM when allocating tensor with shape[1] and type float on {GPU} by allocator GPU_0_bfc
\t [[{{{{node other}}}}]]"""

STATS = """2026-01-01: W bfc_allocator.cc:479] Allocator (GPU_1_bfc) ran out of memory trying to allocate \
27.93GiB (rounded to 29995136256)requested by op Adam/Square
2026-01-01 21:52:08.3: I bfc_allocator.cc:647] Stats:
Limit:                  7441717658
InUse:                  6647456000
MaxInUse:               6647456256
NumAllocs:                       5
"""

XLA_LIST = """RESOURCE_EXHAUSTED: Out of memory while trying to allocate 6291456 bytes.
BufferAssignment OOM Debugging.
Peak buffers:
\tBuffer 1:
\t\tSize: 384.0KiB
\t\tEntry Parameter Subshape: bf16[256,256,3]
\t\t==========================

\tBuffer 2:
\t\tSize: 6.00MiB
\t\tOperator: op_name="dense_1/MatMul" source_file="train.py" source_line=689
\t\tXLA Label: fusion
\t\tShape: f32[4096,128,3]
\t\t==========================
"""


def facts(text, *names):
    found = parse_message(text)
    assert found is not None
    return tuple(getattr(found, name) for name in names)


def test_an_error_out_of_fit():
    found = parse_message(FIT)
    assert (found.source, found.op) == (oom_message.TENSORFLOW, "adam/AssignAddVariableOp_5")
    assert (found.shape, found.dtype, found.bytes) == ((2000, 500), "float32", 4_000_000)
    assert (found.device, found.allocator, found.phase) == ("CPU:0", "cpu_bfc", "step")
    assert found.message.startswith("OOM when allocating tensor with shape[2000,500]")
    assert "[[" not in found.message


def test_an_op_that_ran_eagerly_while_a_weight_was_made():
    assert facts(EAGER, "op", "shape", "dtype", "bytes", "phase") == (
        "StatelessRandomUniformV2", (2000, 3), "float64", 48_000, "build",
    )  # fmt: skip


def test_a_layer_that_is_built_in_a_call_is_told_from_one_that_draws_random_numbers():
    called = f"Exception encountered when calling Noise.call().\n\n{EAGER}"
    assert facts(called, "op", "phase", "layer") == ("StatelessRandomUniformV2", "build", "Noise")
    drawing = called.replace("StatelessRandomUniformV2", "RandomUniform")
    assert facts(drawing, "op", "phase", "layer") == ("RandomUniform", None, "Noise")


def test_of_several_errors_the_node_behind_the_first_one_s_sentence_counts():
    assert facts(TWO_ERRORS, "op", "shape", "dtype", "bytes", "allocator") == (
        "model/block5/conv1/Conv2D", (32, 7, 7, 8), "float16", 32 * 7 * 7 * 8 * 2, "GPU_0_bfc",
    )  # fmt: skip


def test_the_allocator_s_own_statistics_are_read_from_a_log():
    assert facts(STATS, "op", "bytes", "device", "in_use_bytes", "limit_bytes") == (
        "Adam/Square", 29995136256, "GPU:1", 6647456000, 7441717658,
    )  # fmt: skip


def test_xla_s_list_of_buffers_is_what_was_live_largest_first():
    source, size, live = facts(XLA_LIST, "source", "bytes", "live")
    assert (source, size) == (oom_message.XLA, 6291456)
    assert [(item.name, item.shape, item.dtype, item.bytes) for item in live] == [
        ("dense_1/MatMul", (4096, 128, 3), "float32", 6 * 2**20),
        ("", (256, 256, 3), "bfloat16", 384 * 2**10),
    ]
    assert [item.category for item in live] == [Category.TEMPORARIES, Category.UNATTRIBUTED]


@pytest.mark.parametrize(
    ("text", "source", "size"),
    [
        ("Out of memory while trying to allocate 23.38MiB.\n\t [[{{node StatefulPartitionedCall}}]]", "XLA", 24515706),
        ("Out of memory while trying to allocate 4294967296 bytes.", "XLA", 2**32),
        ("OOM when allocating tensor of shape [3,3,64] and type int32", "TensorFlow's allocator", 2304),
        ("failed to allocate 528.00M (553648128 bytes): CUDA_ERROR_OUT_OF_MEMORY", "the GPU's driver", 553648128),
        ("Failed to allocate request for 1.00KiB (1024B) on device ordinal 3", "TensorFlow's allocator", 1024),
        ("Unable to allocate 1.15 GiB for an array with shape (810, 1491) and data type uint8", "the host", 810 * 1491),
        (f"Failed copying input tensor to {GPU}: Dst tensor is not initialized.", "the copy to the device", None),
        ("could not create cudnn handle: CUDNN_STATUS_NOT_INITIALIZED", "cuDNN or another CUDA library", None),
        ("failed to create cublas handle: CUBLAS_STATUS_ALLOC_FAILED", "cuDNN or another CUDA library", None),
        ("DNN library initialization failed. Look at the errors above", "cuDNN or another CUDA library", None),
        ("failed to create cublas handle: the resource allocation failed", "cuDNN or another CUDA library", None),
        ("Blas GEMM launch failed : a.shape=(1, 2), b.shape=(2, 3)", "cuDNN or another CUDA library", None),
        ("BLAS operation using StreamExecutor without BLAS support", "cuDNN or another CUDA library", None),
        ("RESOURCE_EXHAUSTED: Out of memory allocating 1073741824 bytes.", "XLA", 2**30),
        ("Attempting to reserve 4.50G at the bottom of memory. That was not possible.", "XLA", 9 * 2**29),
        ("Attempting to allocate 512. That was not possible. There are 10B free.", "XLA", 512),
        ("std::bad_alloc", "the host", None),
        ("RESOURCE_EXHAUSTED: something new", "TensorFlow's allocator", None),
        ("failed to alloc 4096 bytes on host: CUDA_ERROR_OUT_OF_MEMORY: out of memory", "the host", 4096),
        ("W gpu_host_allocator.h:44] could not allocate pinned host memory of size: 512", "the host", 512),
        ("Allocator (cuda_host_bfc) ran out of memory trying to allocate 1.50GiB.", "the host", 3 * 2**29),
        ("OOM when allocating tensor with shape[2,3] and type half on x by allocator gpu_host_bfc", "the host", 12),
        ("[0] alloc.h:40 NCCL WARN Cuda failure 2 'out of memory'", "cuDNN or another CUDA library", None),
        ("Fail to find the dnn implementation.\n\t [[{{node CudnnRNN}}]]", "cuDNN or another CUDA library", None),
        ("CUDA runtime implicit initialization on GPU:0 failed. Status: out of memory", "the GPU's driver", None),
        ("Check failed: err == cudaSuccess Unexpected CUDA error: out of memory", "the GPU's driver", None),
        ("Ran out of memory in memory space vmem. Please file a bug against XLA.", "XLA", None),
        ("12/100 [==>...] - ETA: 3s\nKilled", "the host", None),
        ("./run.sh: line 3:  4711 Killed                  python train.py --epochs 9", "the host", None),
        ("Process finished with exit code 137 (interrupted by signal 9: SIGKILL)", "the host", None),
        ("Your session crashed after using all available RAM.", "the host", None),
        ("[1]    4242 killed     python train.py", "the host", None),
        ("Last State: Terminated, Reason: OOMKilled", "the host", None),
        ("slurmstepd: error: Detected 1 oom-kill event(s) in StepId=1.batch.", "the host", None),
        ("OSError: [WinError 1455] The paging file is too small for this operation to complete", "the host", None),
        ("Failed to allocate memory for the batch of component 0 [Op:IteratorGetNext]", "the host", None),
        ("Unable to allocate array with shape (3, 5) and data type float64", "the host", 120),
        ("failed to allocate 2.5K (2560 bytes) from device: HIP_ERROR_OutOfMemory", "the GPU's driver", 2560),
        ("Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)", "the GPU's driver", None),
        ("INTERNAL: Failed to allocate 4096 bytes for new constant", "XLA", 4096),
        ("Failed to call ThenRnnForward with model config: [rnn_mode]: 2", "cuDNN or another CUDA library", None),
    ],
)  # fmt: skip
def test_who_ran_out_and_when_asked_for_what(text, source, size):
    assert facts(text, "source", "bytes") == (source, size)


def test_a_batch_of_the_data_pipeline_lies_in_the_host_s_memory():
    where = "/job:localhost/replica:0/task:0/device:CPU:0 by allocator"
    text = "OOM when allocating tensor with shape[100,64] and type float on {} {}\n\t [[{{{{node {}}}}}]]"
    assert facts(text.format(where, "cpu", "IteratorGetNext"), "source", "bytes") == ("the host", 25600)
    assert facts(text.format(where, "cpu", "dense/MatMul"), "source") == ("TensorFlow's allocator",)
    # Under the GPU's allocator on a CPU it takes of what the step has.
    assert facts(text.format(where, "cpu_bfc", "IteratorGetNext"), "source") == ("TensorFlow's allocator",)


def test_the_system_s_own_log_tells_what_the_process_held_that_it_ended():
    text = "[123.4] Out of memory: Killed process 47 (python) total-vm:90000000kB, anon-rss:30000000kB, file-rss:0kB"
    assert facts(text, "source", "in_use_bytes") == ("the host", 30000000 * 1024)


NO_FAILURE = (
    "W bfc_allocator.cc:246] Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.02GiB with freed_by_count=0. "
    "The caller indicates that this is not a failure, but may mean that there could be performance gains."
)


def test_what_a_log_says_is_no_failure_is_none():
    assert parse_message(NO_FAILURE) is None
    assert parse_message("W allocator.cc:107] Allocation of 25690112 exceeds 10% of system memory.") is None
    assert parse_message("Failed to allocate memory for redzone checking; skipping this check. This is benign.") is None
    for exhausted in ("Received message larger than max (52 vs. 4)", "model.ckpt-0.data; No space left on device"):
        assert parse_message(f"ResourceExhaustedError: {exhausted}") is None
    assert facts(f"{NO_FAILURE}\n{STATS}", "op", "bytes", "device") == ("Adam/Square", 29995136256, "GPU:1")
    assert facts(f"{NO_FAILURE}\nKilled", "source") == ("the host",)


def test_what_keras_writes_in_bold_is_plain():
    text = "\x1b[1mOOM when allocating tensor with shape[2,3] and type float on x by allocator cpu_bfc\x1b[0m"
    assert facts(text, "message", "bytes", "allocator") == (text[4:-4], 24, "cpu_bfc")


@pytest.mark.parametrize(
    ("node", "op", "device"),
    [
        # TensorFlow 2.0 to 2.8, and 1, where a tensor's type was not told either.
        ("[[node bert/layer_._11/dense/MatMul (defined at bert.py:327) ]]", "bert/layer_._11/dense/MatMul", None),
        (
            '[[Node: d/mul_3 = Mul[T=DT_FLOAT, _device="/job:localhost/replica:0/task:0/gpu:1"](a, b)]]',
            "d/mul_3",
            "GPU:1",
        ),
    ],
)
def test_older_ways_to_name_the_op(node, op, device):
    text = f"Resource exhausted: OOM when allocating tensor with shape[131072,2048]\n\t {node}\n\t [[loss/mul/_179]]"
    assert facts(text, "op", "device", "shape", "dtype", "bytes") == (op, device, (131072, 2048), None, None)


def test_a_constant_that_found_no_room_is_one_although_the_error_calls_it_invalid():
    # As raised by TensorFlow 2.21 for a slot's zeros in a pool that was full.
    text = (
        "InvalidArgumentError: Graph execution error:\n\nDetected at node adam/kernel_momentum/Initializer/zeros "
        'defined at (most recent call last):\n  File "keras/src/backend/tensorflow/trainer.py", line 399, in fit\n\n'
        "Cannot parse tensor from proto: goo.gle/debugproto   \ndtype: DT_FLOAT\ntensor_shape {\n  dim {\n    size: 64"
        "\n  }\n  dim {\n    size: 3\n  }\n}\n\n\t [[{{node adam/kernel_momentum/Initializer/zeros}}]]"
    )
    assert facts(text, "source", "op", "shape", "dtype", "bytes", "phase") == (
        "TensorFlow's allocator", "adam/kernel_momentum/Initializer/zeros", (64, 3), "float32", 768, "step",
    )  # fmt: skip
    scalar = "Cannot parse tensor from proto: dtype: DT_HALF\ntensor_shape {\n}\n"
    assert facts(scalar, "shape", "dtype", "bytes") == ((), "float16", 2)


def test_a_compiler_that_has_no_room_says_of_how_much():
    text = "RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 20.50G of 16.00G hbm. Exceeded by 4.50G."
    assert facts(text, "source", "bytes", "limit_bytes") == ("XLA", 41 * 2**29, 2**34)


def test_the_asynchronous_allocator_tells_what_is_free():
    text = (
        "gpu_async_1 cuMemAllocAsync failed to allocate 4096 bytes: CUDA error: out of memory "
        "(CUDA_ERROR_OUT_OF_MEMORY)\n Reported by CUDA: Free memory/Total memory: 1000/5000"
    )
    assert facts(text, "source", "bytes", "device", "in_use_bytes", "limit_bytes") == (
        "TensorFlow's allocator", 4096, "GPU:1", 4000, 5000,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "size", "device", "limit"),
    [
        (
            "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 1; 8.00 GiB total capacity; 5.51 GiB "
            "already allocated; 1.20 GiB free; 5.60 GiB reserved in total by PyTorch)",
            2**31, "GPU:1", 2**33,
        ),
        (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of "
            "16.00 GiB of which 17.50 MiB is free. Process 4711 has 15.98 GiB memory in use.",
            20 * 2**20, "GPU:0", 2**34,
        ),
        (
            "[enforce fail at alloc_cpu.cpp:75] . DefaultCPUAllocator: can't allocate memory: you tried to allocate "
            "4000000000 bytes. Error code 12 (Cannot allocate memory)",
            4_000_000_000, "CPU:0", None,
        ),
    ],
)  # fmt: skip
def test_pytorch_s_errors_are_known_for_what_they_are(text, size, device, limit):
    assert facts(text, "source", "bytes", "device", "limit_bytes") == ("PyTorch's allocator", size, device, limit)


def test_cudnn_under_an_older_tensorflow():
    text = (
        "Node: 'gradient_tape/model/conv3d/Conv3D/Conv3DBackpropFilterV2'\nCUDNN failed to allocate the scratch space"
    )
    assert facts(text, "op", "phase") == ("gradient_tape/model/conv3d/Conv3D/Conv3DBackpropFilterV2", "step")


def test_validation_inside_fit_is_evaluation():
    text = FIT.replace("in train_step", "in test_step").replace("adam/AssignAddVariableOp_5", "sequential/dense/MatMul")
    assert facts(text, "phase") == ("evaluate",)


@pytest.mark.parametrize("text", ["", "shapes (3, 4) and (5,) do not match", "ROOM for more memory"])
def test_other_errors_are_not_about_memory(text):
    assert parse_message(text) is None
