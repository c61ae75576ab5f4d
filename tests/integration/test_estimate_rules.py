"""Where outputs come from, asked of TensorFlow's own kernels."""

from __future__ import annotations

import json

import pytest

from tensorboard_plugin_memest.estimation.graph import Node, Output
from tensorboard_plugin_memest.estimation.rules import source_of
from tests.integration.processes import answer_of

ROWS, COLUMNS = 2048, 512

PROGRAM = """
    import json, sys
    import tensorflow as tf

    tf.config.threading.set_inter_op_parallelism_threads(1)
    # The ops themselves are asked, so nothing may be fused or folded.
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    rows, columns = json.loads(sys.argv[2])
    # A region with so much room that no chunk is handed out larger than it was asked for; the first is too small.
    room = tf.raw_ops.Empty(shape=[2**29], dtype=tf.uint8)
    del room
    held = [tf.random.uniform((columns, rows)) for _ in range(2)]
    size = 4 * rows * columns
    found = {}
    for op, (inputs, others) in json.loads(sys.argv[1]).items():
        others = {name: tf.as_dtype(value) if name in ("DstT", "type") else value for name, value in others.items()}

        @tf.function
        def function():
            # Each input is a tensor that nobody else has.
            made = {name: tf.raw_ops.Transpose(x=x, perm=[1, 0]) for name, x in zip(inputs, held)}
            result = getattr(tf.raw_ops, op)(**made, **others)
            first = result[0] if isinstance(result, (tuple, list)) else result
            return tf.raw_ops.Slice(input=tf.raw_ops.Reshape(tensor=first, shape=[-1]), begin=[0], size=[1])

        function()
        tf.config.experimental.reset_memory_stats("CPU:0")
        before = tf.config.experimental.get_memory_info("CPU:0")["current"]
        function()
        found[op] = (tf.config.experimental.get_memory_info("CPU:0")["peak"] - before) / size
    print(json.dumps(found))
"""


def _names(text: str) -> list[str]:
    return text.split()


# What each op takes: the names of its tensors, and its other arguments.
OPS = {
    **{
        name: (["x"], {})
        for name in _names(
            "Abs Neg Sign Square Sqrt Rsqrt Exp Expm1 Log Log1p Sin Cos Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh "
            "Tanh Sigmoid Erf Erfc Erfinv Lgamma Digamma Reciprocal Inv Floor Ceil Round Rint OnesLike ZerosLike "
            "BesselI0e BesselI1e Ndtri Dawsn Expint Spence FresnelCos FresnelSin"
        )
    },
    **{name: (["features"], {}) for name in ("Relu", "Relu6", "LeakyRelu", "Elu", "Selu", "Softplus", "Softsign")},
    **{name: (["logits"], {}) for name in ("Softmax", "LogSoftmax")},
    **{
        name: (["x", "y"], {})
        for name in _names(
            "Add AddV2 Sub Mul Div RealDiv FloorDiv TruncateDiv DivNoNan MulNoNan Xdivy Xlogy Xlog1py Maximum Minimum "
            "Pow SquaredDifference Mod FloorMod TruncateMod"
        )
    },
    **{name: (["y", "dy"], {}) for name in ("TanhGrad", "SigmoidGrad", "SqrtGrad", "RsqrtGrad", "ReciprocalGrad")},
    **{
        name: (["gradients", "features"], {})
        for name in ("ReluGrad", "Relu6Grad", "LeakyReluGrad", "SoftplusGrad", "SoftsignGrad")
    },
    **{name: (["gradients", "outputs"], {}) for name in ("EluGrad", "SeluGrad")},
    # The same memory under another shape or name.
    "Identity": (["input"], {}),
    "StopGradient": (["input"], {}),
    "PreventGradient": (["input"], {}),
    "Snapshot": (["input"], {}),
    "Reshape": (["tensor"], {"shape": [COLUMNS, ROWS]}),
    "ExpandDims": (["input"], {"axis": 0}),
    "Squeeze": (["input"], {}),
    "CheckNumerics": (["tensor"], {"message": ""}),
    "EnsureShape": (["input"], {"shape": [ROWS, COLUMNS]}),
    # Nothing to do.
    "Cast": (["x"], {"DstT": "float32"}),
    "Tile": (["input"], {"multiples": [1, 1]}),
    "BroadcastTo": (["input"], {"shape": [ROWS, COLUMNS]}),
    "Pad": (["input"], {"paddings": [[0, 0], [0, 0]]}),
    # A part of the input changed in place.
    "MatrixBandPart": (["input"], {"num_lower": -1, "num_upper": 0}),
    "MatrixSetDiagV3": (["input"], {"diagonal": [1.0] * COLUMNS, "k": 0}),
    "TensorStridedSliceUpdate": (["input"], {"begin": [0], "end": [1], "strides": [1], "value": [[1.0] * COLUMNS]}),
    "FakeQuantWithMinMaxArgs": (["inputs"], {}),
    "Polygamma": (["a", "x"], {}),
    "Zeta": (["x", "q"], {}),
    # Memory of their own.
    "TensorScatterUpdate": (["tensor"], {"indices": [[1]], "updates": [[1.0] * COLUMNS]}),
    "Cumsum": (["x"], {"axis": 0}),
    "ReverseV2": (["tensor"], {"axis": [0]}),
    "Roll": (["input"], {"shift": [1], "axis": [0]}),
}


@pytest.fixture(scope="module")
def buffers() -> dict[str, float]:
    """How many buffers of the inputs' size each op has at its peak."""
    found: dict[str, float] = answer_of(PROGRAM, json.dumps(OPS), json.dumps([ROWS, COLUMNS]))
    return found


@pytest.mark.parametrize("op", OPS)
def test_an_output_comes_from_where_the_rules_say(op, buffers):
    names, _ = OPS[op]
    tensor = Output((ROWS, COLUMNS), "float32", 4 * ROWS * COLUMNS)
    source = source_of(Node("n", op, [(0, 0)] * len(names), [], [tensor], {}), 0, [tensor] * len(names))
    own = source.alias_of is None and not source.reuses
    assert abs(buffers[op] - (len(names) + own)) < 0.1, (buffers[op], source)


CUTS = """
    import json
    import tensorflow as tf
    from tensorboard_plugin_memest.estimation.eager import traced_eagerly

    tf.config.threading.set_inter_op_parallelism_threads(1)
    room = tf.raw_ops.Empty(shape=[2**26], dtype=tf.uint8)
    del room

    CASES = {
        "unstacked": ((8, 4096), lambda x: tf.unstack(x)),
        "unstacked, not aligned": ((8, 4099), lambda x: tf.unstack(x)),
        "unstacked along another axis": ((8, 8, 512), lambda x: tf.unstack(x, axis=1)),
        "unstacked along a negative axis": ((8, 4096), lambda x: tf.unstack(x, axis=-2)),
        "split": ((8, 4096), lambda x: tf.split(x, 4)),
        "split, not aligned": ((8, 4099), lambda x: tf.split(x, 4)),
        "split along another axis": ((4, 8192), lambda x: tf.split(x, 4, axis=1)),
        "split into one": ((4, 8192), lambda x: tf.split(x, 1, axis=1)),
        "split in unequal parts": ((8, 4096), lambda x: tf.split(x, [3, 5])),
        "split in unequal parts, along another axis": ((8, 4096), lambda x: tf.split(x, [1024, 3072], axis=1)),
        "a slice": ((8, 4096), lambda x: tf.slice(x, [2, 0], [3, 4096])),
        "a slice of another axis": ((8, 4096), lambda x: tf.slice(x, [0, 1024], [8, 2048])),
        "a row": ((8, 4096), lambda x: x[3]),
        "the last row": ((8, 4096), lambda x: x[-1]),
        "a row, not aligned": ((8, 4099), lambda x: x[3]),
        "some rows": ((8, 4096), lambda x: x[2:5]),
        "a column": ((4096, 4096), lambda x: x[:, 7]),
        "columns": ((8, 4096), lambda x: x[:, :1024]),
        "one of each step": ((64, 64, 64), lambda x: x[:, 0]),
        "upside down": ((8, 4096), lambda x: x[::-1]),
        "every other row": ((8, 4096), lambda x: x[::2]),
        "a new dimension": ((8, 4096), lambda x: x[:, None]),
        "a new dimension, not aligned": ((8, 4099), lambda x: x[..., None]),
        "a new dimension and upside down": ((8, 4096), lambda x: x[:, ::-1, None]),
        "alone in a stack": ((8, 4096), lambda x: tf.stack([x], axis=1)),
    }
    current = lambda: tf.config.experimental.get_memory_info("CPU:0")["current"]
    found = {}
    for name, (shape, cut) in CASES.items():
        x = tf.random.uniform(shape)
        cut(x)
        before = current()
        parts = cut(x)
        measured = current() - before
        def one(shape=shape, cut=cut):
            made = cut(tf.ones(shape))
            return made[0] if isinstance(made, (tuple, list)) else made
        predicted = sum(made.bytes for made in traced_eagerly(one).made if made.op not in ("Const", "Fill"))
        del x, parts
        found[name] = [predicted, measured]
    print(json.dumps(found))
"""


def test_what_is_cut_along_its_first_dimension_stays_where_it_is():
    found = answer_of(CUTS)
    assert len(found) == 25
    # Indices are tensors, too, of one chunk each; a chunk is less than twice as large as what was asked for.
    wrong = {name: sizes for name, sizes in found.items() if not sizes[0] <= sizes[1] < 2 * sizes[0] + 4096}
    assert not wrong
    assert sum(measured < 4096 for _, measured in found.values()) >= 11
