"""`python -m memest`, as it is typed."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from tensorboard_plugin_memest import cli

# It configures TensorFlow, which has to be possible still.
SCRIPT = """
    import sys
    import keras, numpy as np, tensorflow as tf
    from beside import UNITS

    tf.config.threading.set_intra_op_parallelism_threads(1)
    model = keras.Sequential([keras.Input((1000,)), keras.layers.Dense(UNITS), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    print("trains", sys.argv[1:])
    model.fit(np.zeros((64, 1000), "float32"), np.zeros((64, 1)), batch_size=16, epochs=100, verbose=0)
    print("trained")
"""


def memest(*arguments, cwd=None):
    command = [sys.executable, "-m", "memest", "rehearse", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=200, check=False, cwd=cwd)


@pytest.fixture
def script(tmp_path):
    (tmp_path / "beside.py").write_text("UNITS = 1500")
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(SCRIPT))
    return str(path)


def test_a_script_is_ended_after_the_steps_that_were_asked_for(script):
    ran = memest(script, "--max-steps", "3", "--", "--flag", "--", "7")
    assert ran.returncode == cli.COMPLETED, ran.stderr
    assert "trains ['--flag', '--', '7']" in ran.stdout
    assert "trained" not in ran.stdout.replace("trains", "")
    assert "The rehearsal completed 3 steps; the most in use was" in ran.stdout
    rows = [line.split()[0] for line in ran.stdout.splitlines() if "MiB" in line][1:]
    assert rows == ["build", "first", "step"]


def test_a_module_of_a_package_imports_what_lies_beside_it(script, tmp_path):
    package = tmp_path / "trainer"
    package.mkdir()
    (package / "__init__.py").touch()
    (tmp_path / "beside.py").rename(package / "beside.py")
    (package / "task.py").write_text(textwrap.dedent(SCRIPT).replace("from beside", "from .beside"))
    ran = memest("-m", "trainer.task", "--max-steps", "1", "--", "--flag", cwd=tmp_path)
    assert ran.returncode == cli.COMPLETED, ran.stderr
    assert "trains ['--flag']" in ran.stdout
    assert "The rehearsal completed 1 step" in ran.stdout


GOES_ON = """
    import keras, numpy as np
    size = 4000
    while True:
        large = keras.layers.Dense(size, kernel_initializer="zeros")
        model = keras.Sequential([keras.Input((4000,)), large, keras.layers.Dense(1)])
        model.compile("adam", "mse", jit_compile=False)
        try:
            model.fit(np.zeros((4, 4000), "float32"), np.zeros((4, 1)), verbose=0)
            break
        except Exception:
            size //= 2
            print("once more")
"""


def test_a_script_that_would_go_on_with_less_is_ended_where_memory_ran_out(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(GOES_ON))
    ran = memest(str(path), "--memory-limit", "160MiB")
    assert ran.returncode == cli.DIED
    assert "once more" not in ran.stdout
    assert "The rehearsal died in the first step within 160.0 MiB." in ran.stdout, ran.stderr
    assert "float32[4000, 4000]" in ran.stdout
    # What the process writes to its standard error comes through.
    assert "ran out of memory trying to allocate" in ran.stderr


PARTS = """
    import keras, numpy as np

    class Parts(keras.Model):
        def __init__(self):
            super().__init__()
            self.part = keras.Sequential([keras.Input((50,)), keras.layers.Dense(1000), keras.layers.Dense(1)])

        def train_step(self, data):
            return self.part.train_step((data[0], data[1]))

    def train(targets, epochs):
        model = Parts()
        model.part.compile("adam", "mse")
        model.compile("adam", "mse")
        model.fit(np.zeros((64, 50), "float32"), targets, epochs=epochs, verbose=0)

    try:
        train(np.zeros((64, 7, 7)), 1)
    except ValueError:
        print("no such targets")
    train(np.zeros((64, 1)), 90)
"""


def test_a_model_that_is_never_built_is_estimated_and_an_error_that_the_script_handles_is_the_script_s(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(PARTS))
    ran = memest(str(path), "--max-steps", "2")
    assert ran.returncode == cli.COMPLETED, ran.stderr
    assert "no such targets" in ran.stdout
    assert "no estimate" not in ran.stdout
    (row,) = [line for line in ran.stdout.splitlines() if line.split()[:1] == ["step"]]
    assert row.count("KiB") + row.count("MiB") == 3


OWN_LOOP = """
    import sys
    import keras, tensorflow as tf
    model = keras.Sequential([keras.Input((256,)), keras.layers.Dense(500, activation="tanh"), keras.layers.Dense(1)])
    optimizer = keras.optimizers.Adam()

    def train(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(x) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))

    if sys.argv[1] == "compiled":
        train = tf.function(train)
    for step in range(10_000):
        train(tf.ones((4000, 256)))
"""


def test_a_loop_that_nobody_marks_is_ended_after_its_steps(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(OWN_LOOP))
    ran = memest(str(path), "--max-steps", "3", "--", "eagerly")
    assert ran.returncode == cli.COMPLETED, ran.stderr
    assert "The rehearsal completed 3 steps" in ran.stdout
    measured = {line.split()[0]: line for line in ran.stdout.splitlines() if "MiB" in line}
    # The weights were there before; what the layers make, 4000 rows of 500, is of the steps.
    assert float(measured["build"].split()[1]) < 4000 * 500 * 4 / 2**20 < float(measured["step"].split()[1])
    assert "its optimizers count" in " ".join(ran.stdout.split())


def test_a_loop_that_nobody_marks_dies_in_its_step(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(OWN_LOOP))
    died = memest(str(path), "--memory-limit", "10MiB", "--", "compiled")
    assert died.returncode == cli.DIED
    assert "The rehearsal died in the first step within 10.0 MiB." in died.stdout, died.stderr


def test_an_argument_of_the_script_s_own_belongs_behind_the_dashes(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["rehearse", __file__, "--epochs", "3"])
    assert ended.value.code == cli.REFUSED
    assert "--epochs 3 is no argument of rehearse; what is the script's own goes behind --" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["rehearse", "nowhere.py"], "There is no script 'nowhere.py'"),
        (["rehearse", __file__, "--memory-limit", "9.29"], "'9.29' is not a memory size"),
        (["rehearse", __file__, "--max-steps", "0"], "at least 1, not 0"),
    ],
)
def test_what_cannot_be_rehearsed_is_told(arguments, told, capsys):
    assert cli.main(arguments) == cli.REFUSED
    assert told in capsys.readouterr().err.replace("\n", " ")
