"""The process that plays a rehearsal: it is started with the GPU's allocator on the CPU, and trains on made-up data."""

from __future__ import annotations

import gc
import os
import pickle
import sys
from typing import Any

import tensorflow as tf

from tensorboard_plugin_memest.estimation.given import Given, compile_as_given
from tensorboard_plugin_memest.estimation.model import estimate
from tensorboard_plugin_memest.estimation.subject import Batch, batch_size_of, checked_model, input_specs
from tensorboard_plugin_memest.estimation.training import targets_of
from tensorboard_plugin_memest.measure.cpu_allocator import bfc_limit
from tensorboard_plugin_memest.measure.handover import PAYLOAD, Handover, rebuilt
from tensorboard_plugin_memest.measure.host import available_bytes
from tensorboard_plugin_memest.measure.host_room import too_little_room
from tensorboard_plugin_memest.measure.play import Play, PlayCallback
from tensorboard_plugin_memest.measure.synthetic import synthetic_batch

# Arguments of `estimate` that decide how a model is compiled and fed, too.
_OF_THE_RUN = ("optimizer", "loss", "inputs", "targets")


def main(place: str) -> None:
    """Plays what is handed over in the directory `place` and tells there how it went."""
    play = Play(place)
    set_up()
    try:
        with open(os.path.join(place, PAYLOAD), "rb") as file:
            handover: Handover = pickle.load(file)
        handover.apply_settings()
        _rehearse(play, handover)
    except BaseException as error:
        play.died(error)
    finally:
        # What is left of a training that ran out of memory may abort the process while it is freed, and takes time.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def set_up() -> None:
    """One inter-op thread, as a GPU launches its kernels one after the other."""
    tf.config.threading.set_inter_op_parallelism_threads(1)


def _rehearse(play: Play, handover: Handover) -> None:
    arguments = rebuilt(handover.arguments)
    build = handover.build
    try:
        play.estimate = estimate(build, batch_size=handover.batch_size, **arguments)
    except Exception as error:
        # What is wrong with the model or the arguments, training will say, too.
        play.note(f"There is no estimate beside it: {type(error).__name__}: {error}")
    gc.collect()
    refused = too_little_room(play.estimate, bfc_limit(), available_bytes())
    if refused:
        play.tell(refused=refused)
        return
    play.begin()
    model = checked_model(build(), "What the function returns")
    passed: dict[str, Any] = {name: arguments.get(name) for name in _OF_THE_RUN}
    given = Given(handover.batch_size, **passed)
    notes = compile_as_given(model, given)
    if arguments.get("jit_compile") is not None:
        model.jit_compile = arguments["jit_compile"]
    if arguments.get("run_eagerly"):
        model.run_eagerly = True
    mode = "eager" if model.run_eagerly else "xla" if model.jit_compile else "graph"
    if play.estimate is not None and play.estimate.subject.mode != mode:
        play.note(f"The training ran in {mode} mode, and its estimate is for {play.estimate.subject.mode} mode.")
    play.built()
    batch_size, assumed = batch_size_of(model, handover.batch_size, given.inputs)
    x = input_specs(model, batch_size, given.inputs)
    y, assumed_targets = targets_of(model, x, batch_size, given)
    for sentence in [*notes, *assumed, *assumed_targets]:
        play.note(sentence)
    # One batch again and again: the step gets it without a copy, and no thread of a pipeline allocates meanwhile.
    data = tf.data.Dataset.from_tensors(synthetic_batch(Batch(x, y).ways(model)[0])).repeat()
    counting = PlayCallback(play, handover.steps)
    model.fit(data, steps_per_epoch=handover.steps, shuffle=False, verbose=0, callbacks=[counting])
    play.completed()
