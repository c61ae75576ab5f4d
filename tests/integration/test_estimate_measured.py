"""Estimates against real trainings: one process a model, TensorFlow's own allocator, op by op as estimated."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.processes import answer_of

PROGRAM = """
    import gc, json, sys
    import keras, numpy as np, tensorflow as tf
    import memest

    tf.config.threading.set_inter_op_parallelism_threads(1)
    keras.utils.set_random_seed(1)
    L = keras.layers


    def founding(dense, pool=1):
        parts = [keras.Input((1491, 257, 1)), L.Conv2D(16, 3, activation="relu"), L.Conv2D(16, 3, activation="relu")]
        parts += [L.MaxPooling2D(pool)] if pool > 1 else []
        parts += [L.Flatten(), L.Dense(dense, activation="relu"), L.Dense(1, activation="sigmoid")]
        return keras.Sequential(parts)


    def mlp(policy="float32"):
        hidden = [L.Dense(units, activation="relu", dtype=policy) for units in (1500, 700)]
        return keras.Sequential([keras.Input((784,)), *hidden, L.Dropout(0.3), L.Dense(10, dtype="float32")])


    def transformer():
        tokens = keras.Input((48,), dtype="int32")
        x = L.Embedding(3000, 128)(tokens)
        for _ in range(2):
            x = L.LayerNormalization()(x + L.MultiHeadAttention(4, 32)(x, x))
            x = L.LayerNormalization()(x + L.Dense(128)(L.Dense(512, activation="gelu")(x)))
        return keras.Model(tokens, L.Dense(3000, activation="softmax")(x))


    def recurrent():
        return keras.Sequential([keras.Input((40, 64)), L.LSTM(192, return_sequences=True), L.LSTM(96), L.Dense(5)])


    def words():
        parts = [keras.Input((30,), dtype="int32"), L.Embedding(500, 64, mask_zero=True)]
        return keras.Sequential([*parts, L.Bidirectional(L.GRU(160)), L.Dense(5)])


    class Looping(keras.Model):
        # A step that applies a layer in a loop, and half of the time only once.
        def __init__(self):
            super().__init__()
            self.first, self.again, self.last = L.Dense(600), L.Dense(600, activation="relu"), L.Dense(3)
            for layer, width in ((self.first, 400), (self.again, 600), (self.last, 600)):
                layer.build((None, width))
            self.built = True

        def call(self, x):
            return self.last(self.first(x))

        def train_step(self, data):
            x, y = data

            def repeated(h):
                return tf.while_loop(lambda n, h: n < 9, lambda n, h: (n + 1, h + self.again(h)), (0, h))[1]

            with tf.GradientTape() as tape:
                h = self.first(x)
                h = tf.cond(self.optimizer.iterations % 2 == 0, lambda: repeated(h), lambda: self.again(h))
                loss = self.compute_loss(y=y, y_pred=self.last(h))
            self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
            return {"loss": loss}


    def recommender():
        one, other = keras.Input((16,), dtype="int32", name="one"), keras.Input((8,), name="other")
        x = L.GlobalAveragePooling1D()(L.Embedding(40_000, 32)(one))
        x = L.Dense(64, activation="relu")(L.Concatenate()([x, other]))
        return keras.Model({"one": one, "other": other}, [L.Dense(1, name="score")(x), L.Dense(3, name="kind")(x)])


    class Adversarial(keras.Model):
        def __init__(self):
            super().__init__()
            self.maker = keras.Sequential([keras.Input((64,)), L.Dense(512, activation="relu"), L.Dense(2048)])
            self.judge = keras.Sequential([keras.Input((2048,)), L.Dense(512, activation="relu"), L.Dense(1)])

        def compile(self):
            super().compile()
            self.makers, self.judges = keras.optimizers.Adam(), keras.optimizers.SGD(momentum=0.9)
            self.loss_of = keras.losses.BinaryCrossentropy(from_logits=True)

        def train_step(self, real):
            noise = tf.random.normal((tf.shape(real)[0], 64))
            with tf.GradientTape() as tape:
                images = tf.concat([self.maker(noise), real], 0)
                labels = tf.concat([tf.zeros_like(real[:, :1]), tf.ones_like(real[:, :1])], 0)
                loss = self.loss_of(labels, self.judge(images))
            weights = self.judge.trainable_variables
            self.judges.apply_gradients(zip(tape.gradient(loss, weights), weights))
            with tf.GradientTape() as tape:
                lost = self.loss_of(tf.ones_like(real[:, :1]), self.judge(self.maker(noise)))
            weights = self.maker.trainable_variables
            self.makers.apply_gradients(zip(tape.gradient(lost, weights), weights))
            return {"loss": loss, "lost": lost}


    def compiled(make, *arguments):
        def build():
            model = make()
            model.compile(*arguments, jit_compile=False) if arguments else model.compile()
            return model

        return build


    sparse = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


    def summing():
        model = words()
        # Made here, not before: whatever runs before an estimate makes devices, which then serve it, too.
        model.compile(keras.optimizers.Adam(gradient_accumulation_steps=3), sparse, jit_compile=False)
        return model


    def floats(*shape):
        return tf.TensorSpec(shape)


    def numbers(*shape):
        return tf.TensorSpec(shape, "int32")


    sound = floats(1, 1491, 257, 1)
    # How each is built, its inputs and its targets.
    MODELS = {
        "founding, Adam": (compiled(lambda: founding(8), "adam", "binary_crossentropy"), sound, floats(1, 1)),
        "founding, SGD": (compiled(lambda: founding(8), "sgd", "binary_crossentropy"), sound, floats(1, 1)),
        "founding, pooled": (compiled(lambda: founding(64, 4), "adam", "mse"), sound, floats(1, 1)),
        "mlp": (compiled(mlp, "adam", sparse), floats(256, 784), numbers(256)),
        "mixed precision": (compiled(lambda: mlp("mixed_bfloat16"), "adam", sparse), floats(256, 784), numbers(256)),
        "transformer": (
            compiled(transformer, "adamw", "sparse_categorical_crossentropy"), numbers(8, 48), numbers(8, 48)
        ),
        "lstm": (compiled(recurrent, "rmsprop", sparse), floats(32, 40, 64), numbers(32)),
        "words, summing gradients": (summing, numbers(16, 30), numbers(16)),
        "loop in a branch": (compiled(Looping, "adam", "mse"), floats(32, 400), floats(32, 3)),
        "embedding": (
            compiled(recommender, "adagrad", ["mse", sparse]),
            {"one": numbers(64, 16), "other": floats(64, 8)},
            (floats(64, 1), numbers(64)),
        ),
        "adversarial": (compiled(Adversarial), floats(64, 2048), None),
    }


    def statistics():
        return tf.config.experimental.get_memory_info("CPU:0")


    build, x, y = MODELS[sys.argv[1]]
    made = memest.estimate(build, batch_size=None, inputs=x, targets=y)
    # Loops that are traced make a few numbers on the way, and TensorFlow's optimizer computes with constants.
    assert statistics()["peak"] < 2**18, "the estimate allocated"
    start = statistics()["current"]
    tf.config.experimental.reset_memory_stats("CPU:0")

    model = build()
    measured = {"build": [statistics()["peak"] - start]}
    held = statistics()["current"]
    batch = keras.tree.map_structure(lambda spec: tf.zeros(spec.shape, spec.dtype), x if y is None else (x, y))
    # What is fed lives in the same allocator, and is no part of the estimate.
    fed = statistics()["current"] - held
    batches = iter(tf.data.Dataset.from_tensors(batch).repeat())
    model.make_train_function()
    steps = []
    for _ in range(8):
        tf.config.experimental.reset_memory_stats("CPU:0")
        model.train_function(batches)
        steps.append(statistics()["peak"] - fed - start)
    measured["first_step"], measured["step"] = steps[:1], steps[1:]
    estimated = {name: [phase.peak_bytes, *phase.peak_range] for name, phase in made.phases.items()}
    parameters = sum(int(np.prod(weight.shape)) for weight in model.weights)
    del batch, batches
    gc.collect()
    resident = statistics()["current"] - start
    print(
        json.dumps(
            [estimated, measured, [made.subject.parameters, parameters], [made.resident_bytes, resident]]
        )
    )
"""

# How far an estimate may be off, as a fraction. The founding models less than others; two updates in one step more.
CLOSE, NEAR, FAR = 0.02, 0.1, 0.3
MODELS = {
    "founding, Adam": CLOSE,
    "founding, SGD": CLOSE,
    "founding, pooled": CLOSE,
    "mlp": NEAR,
    "mixed precision": NEAR,
    "transformer": NEAR,
    "embedding": NEAR,
    "lstm": NEAR,
    "words, summing gradients": NEAR,
    "loop in a branch": NEAR,
    "adversarial": FAR,
}


# Where iterations of loops overlap, or steps take other branches than each other.
LOOPING = {"lstm", "words, summing gradients", "loop in a branch", "adversarial"}

# In how many processes the order of execution that was estimated has to happen at least once.
PROCESSES = 4


@pytest.mark.parametrize("name", MODELS)
def test_a_trainings_peaks_are_as_estimated(name):
    pooled: dict[str, list[int]] = {"build": [], "steps": []}
    for _ in range(PROCESSES):
        answer: Any = answer_of(PROGRAM, name)
        estimated, measured, parameters, resident = answer
        assert parameters[0] == parameters[1]
        # Beside variables, what stays is a few constants, and what chunks have too much.
        assert resident[0] <= resident[1] <= 1.5 * resident[0]
        assert list(estimated) == ["build", "first_step", "step"]
        pooled["build"] += measured["build"]
        pooled["steps"] += [*measured["first_step"], *measured["step"]]
        outside = {
            phase: distance((low, peak), pooled["build" if phase == "build" else "steps"])
            for phase, (peak, low, _) in estimated.items()
        }
        # Which of the orders that can happen does happen changes from step to step and from process to process, with
        # what else the machine does: what was said and what was measured are both ranges, and have to meet.
        if max(outside.values()) <= MODELS[name]:
            break
    assert max(outside.values()) <= MODELS[name], (outside, estimated, pooled)
    for phase, (_, low, high) in estimated.items():
        # Whether iterations of a loop overlap decides about more than an order does.
        assert high <= 1.6 * low or name in LOOPING, f"{phase}: a range that says nothing"
    assert estimated["build"][1] == estimated["build"][2], "building has one order only"


def distance(said: tuple[int, int], measured: list[int]) -> float:
    """How far two ranges are from each other, relative to the nearer end of what was measured; 0 where they meet."""
    low, high = said
    return max((low - max(measured)) / max(measured), (min(measured) - high) / min(measured), 0.0)
