"""Trainings with an estimate before and in the middle of them, bit by bit as those without."""

from __future__ import annotations

import pytest

from tests.integration.processes import answer_of

# A training that uses all that draws random numbers and keeps state; `argv[1]` says whether estimates are made.
TRAINING = """
    import hashlib, json, random, sys
    import keras, numpy as np, tensorflow as tf
    import memest

    asked, kind = sys.argv[1] == "with", sys.argv[2]
    keras.utils.set_random_seed(7)
    tf.config.experimental.enable_op_determinism()
    L = keras.layers


    def functional():
        inputs = keras.Input((16, 16, 3))
        x = L.RandomFlip()(inputs)
        x = L.Conv2D(8, 3, activation="relu")(x)
        x = L.BatchNormalization()(x)
        x = L.SpatialDropout2D(0.2)(x)
        x = L.GlobalAveragePooling2D()(x)
        return keras.Model(inputs, L.Dense(3, kernel_regularizer="l2")(L.Dropout(0.3)(x)))


    class Subclassed(keras.Model):
        def __init__(self):
            super().__init__()
            self.body = [L.Conv2D(8, 3, activation="relu"), L.BatchNormalization(), L.GaussianNoise(0.1), L.Flatten()]
            self.head = L.Dense(3)
            self.seen = 0

        def call(self, x, training=False):
            self.seen += 1
            for layer in self.body:
                x = layer(x, training=training) if "training" in layer.call_signature_parameters else layer(x)
            return self.head(keras.random.dropout(x, 0.1) if training else x)


    class OwnStep(Subclassed):
        def compile(self, **options):
            super().compile(**options)
            self.second = keras.optimizers.SGD(0.01, momentum=0.9)
            self.total = keras.metrics.Mean(name="total")

        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = self.compute_loss(x, y, self(x, training=True))
            weights = self.trainable_variables
            gradients = tape.gradient(loss, weights)
            self.optimizer.apply_gradients(zip(gradients[:2], weights[:2]))
            self.second.apply_gradients(zip(gradients[2:], weights[2:]))
            self.total.update_state(loss)
            return {"total": self.total.result()}


    def ask(model, **arguments):
        if asked:
            memest.estimate(model, batch_size=8, inputs=tf.TensorSpec((None, 16, 16, 3)), **arguments)
            memest.log_model(model, logdir=sys.argv[3], batch_size=8, inputs=tf.TensorSpec((None, 16, 16, 3)))


    class Ask(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            ask(self.model)


    if asked:
        memest.estimate(functional, batch_size=4, optimizer="adam", loss="mse")
    model = {"functional": functional, "own step": OwnStep}[kind]()
    schedule = keras.optimizers.schedules.CosineDecay(0.01, 10)
    optimizer = keras.optimizers.AdamW(schedule, use_ema=True, ema_overwrite_frequency=3, clipnorm=1.0)
    model.compile(
        optimizer=optimizer,
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy", keras.metrics.SparseTopKCategoricalAccuracy(2)] if kind == "functional" else None,
    )
    ask(model)
    ask(model, optimizer="sgd")
    ask(model, loss="sparse_categorical_crossentropy")
    x = np.random.rand(40, 16, 16, 3).astype("float32")
    y = np.random.randint(0, 3, 40)
    history = model.fit(x, y, batch_size=8, epochs=2, verbose=0, callbacks=[Ask()])
    ask(model)
    history.history["again"] = model.fit(x, y, batch_size=8, epochs=1, verbose=0).history

    state = hashlib.sha256()
    for variable in [*model.variables, *optimizer.variables, *model.metrics_variables]:
        state.update(np.array(variable).tobytes())
    rest = [random.random(), float(np.random.rand()), float(keras.random.uniform(())), float(tf.random.uniform(()))]
    names = [L.Dense(1).name, keras.Sequential().name, [layer.name for layer in model.layers]]
    names += [variable.path for variable in [*model.variables, *optimizer.variables]]
    print(json.dumps([state.hexdigest(), history.history, rest, names, getattr(model, "seen", None)]))
"""


@pytest.mark.parametrize("kind", ["functional", "own step"])
def test_a_training_goes_on_bit_by_bit_as_without_estimates(kind, tmp_path):
    without = answer_of(TRAINING, "without", kind, str(tmp_path))
    with_estimates = answer_of(TRAINING, "with", kind, str(tmp_path))
    assert list(tmp_path.glob("memest/*tfevents*"))
    for name, one, other in zip(["state", "history", "random", "names", "seen"], without, with_estimates, strict=True):
        assert one == other, name
