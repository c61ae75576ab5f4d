"""The graph that is played on paper, against the one that TensorFlow's runtime really made in a training."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.processes import EXACT, answer_of

PROGRAM = """
    import glob, json, os, sys
    import keras, tensorflow as tf
    from google.protobuf import text_format
    from tensorflow.core.framework import graph_pb2
    from tensorflow.python.eager import context

    from tensorboard_plugin_memest.estimation.called import called_step
    from tensorboard_plugin_memest.estimation.given import Given
    from tensorboard_plugin_memest.estimation.graph import optimized_graph
    from tensorboard_plugin_memest.estimation.keras_state import untouched_globals
    from tensorboard_plugin_memest.estimation.onednn import is_replaced, merge_bias_gradients, merged_bias_gradients
    from tensorboard_plugin_memest.estimation.training import training_of_function

    L = keras.layers


    def dense():
        model = keras.Sequential(
            [keras.Input((20,)), L.Dense(30, activation="relu"), L.Dropout(0.2), L.Dense(4, activation="softmax")]
        )
        optimizer = keras.optimizers.Adam(amsgrad=True, clipnorm=1.0)
        model.compile(optimizer, "categorical_crossentropy", metrics=["accuracy"], jit_compile=False)
        return model


    def convolutions():
        # Large enough that Grappler splits sums, for want of memory as it thinks.
        inputs = keras.Input((128, 128, 3))
        x = L.Conv2D(8, 3, padding="same")(inputs)
        y = L.ReLU()(L.BatchNormalization()(x))
        x = L.Conv2D(8, 3, padding="same")(y) + L.Conv2D(8, 1)(x) + L.Conv2D(8, 1)(y) + y
        x = L.Dense(4)(L.GlobalAveragePooling2D()(L.SeparableConv2D(8, 3)(x)))
        model = keras.Model(inputs, x)
        model.compile(keras.optimizers.SGD(0.1, momentum=0.9), "mse", jit_compile=False)
        return model


    def loops():
        model = keras.Sequential(
            [keras.Input((7,), dtype="int32"), L.Embedding(9, 6, mask_zero=True), L.Bidirectional(L.LSTM(5))]
        )
        model.compile(keras.optimizers.Adam(gradient_accumulation_steps=3), "mse", jit_compile=False)
        return model


    build, batch = {"dense": (dense, 5), "convolutions": (convolutions, 100), "loops": (loops, 4)}[sys.argv[1]]
    with context.eager_mode(), untouched_globals():
        training = training_of_function(build, Given(batch, jit_compile=False))
        handed = called_step(training.step, training.trace.handles).definition
        predicted = optimized_graph(training.step, training.trace.handles, "CPU", batch)

    model = build()
    x, y = (tf.zeros((batch, *tensor.shape[1:]), tensor.dtype) for tensor in (model.inputs[0], model.outputs[0]))
    batches = iter(tf.data.Dataset.from_tensors((x, y)).repeat())
    model.make_train_function()
    for _ in range(2):
        model.train_function(batches)


    def dumped(stage):
        files = glob.glob(os.environ["TF_DUMP_GRAPH_PREFIX"] + f"/*multi_step_on_iterator*.main.{stage}.pbtxt")
        graph = graph_pb2.GraphDef()
        text_format.Parse(open(max(files, key=os.path.getmtime)).read(), graph)
        return graph


    def told(graph):
        return [[node.name, node.op, [name for name in node.input]] for node in graph.node]


    call, arguments = "StatefulPartitionedCall/", ("_Arg", "VarHandleOp", "Placeholder")
    around = {"identity_RetVal", "Identity", "optional", "NoOp", "StatefulPartitionedCall"}
    after = [node for node in dumped("after_graph_optimization").node if node.name not in around]
    executed = dumped("after_partition_passes").node
    made = [[node.name, node.op] for node in predicted.nodes if node.op not in arguments]
    merge_bias_gradients(predicted)
    print(json.dumps({
        "handed": sorted(told(handed)),
        "really handed": sorted(told(dumped("before_graph_optimization"))),
        "made": made,
        "really made": [[node.name.replace(call, "", 1), node.op] for node in after if node.op not in arguments],
        "replaced": sorted(node.name for node in predicted.nodes if is_replaced(node)),
        "really replaced": sorted(node.name.replace(call, "", 1) for node in executed if node.op[:4] == "_Mkl"),
        "merged": sorted(predicted.nodes[merged].name for merged, _ in merged_bias_gradients(predicted)),
        "really gone": sorted(
            {node.name.replace(call, "", 1) for node in after}
            - {node.name.replace(call, "", 1) for node in executed}
        ),
    }))
"""


@pytest.mark.parametrize("kind", ["dense", "convolutions", "loops"])
def test_the_graph_is_that_of_a_run_node_by_node_whoever_makes_it(kind: str, tmp_path: Path):
    told = answer_of(
        PROGRAM,
        kind,
        environment={
            **EXACT,
            "TF_DUMP_GRAPH_PREFIX": str(tmp_path),
            "TF_DUMP_GRAPH_NAME_FILTER": "*",
            "TF_DUMP_GRAPH_GROUPS": "main",
        },
    )
    # What Grappler is given and what it makes of it, in order; then what oneDNN's kernels replace and merge.
    assert told["handed"] == told["really handed"]
    assert told["made"] == told["really made"]
    assert told["replaced"] == told["really replaced"]
    assert told["merged"] == told["really gone"]
    assert len(told["replaced"]) > 4
    assert any(op == "TemporaryVariable" for _, op in told["made"]) == (kind == "convolutions")
