"""Models traced and optimized, ready for looking at what became of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import keras

from tensorboard_plugin_memest.estimation.attribution import Attribution
from tensorboard_plugin_memest.estimation.device import training_device
from tensorboard_plugin_memest.estimation.given import Given
from tensorboard_plugin_memest.estimation.graph import StepGraph, optimized_graph
from tensorboard_plugin_memest.estimation.keras_state import untouched_globals
from tensorboard_plugin_memest.estimation.linked import program_of
from tensorboard_plugin_memest.estimation.places import keep_places
from tensorboard_plugin_memest.estimation.program import Program
from tensorboard_plugin_memest.estimation.tag import Tag
from tensorboard_plugin_memest.estimation.training import Training, training_of_model
from tensorboard_plugin_memest.memory.category import Category


@dataclass
class Looked:
    """A model's step.

    Attributes:
        training: as traced.
        graph: as optimized.
        attribution: of the graph.
        program: with the functions that it calls.
        notes: what had to be assumed about the program.
    """

    training: Training
    graph: StepGraph
    attribution: Attribution
    program: Program
    notes: list[str]

    def tags(self, *, least: int = 0) -> list[Tag]:
        """Tags of all outputs of at least `least` bytes, those of called functions included."""
        return _tags(self.program, least)

    def bytes_of(self, least: int = 0) -> Counter[tuple[str, Category]]:
        """Bytes that are made, by layer and category."""
        found: Counter[tuple[str, Category]] = Counter()
        for tag in self.tags(least=least):
            if tag.shape is not None:
                size = 4
                for extent in tag.shape:
                    size *= extent
                found[tag.layer, tag.category] += size
        return found


def look(model: keras.Model, batch_size: int, **given: object) -> Looked:
    """Traces `model` as `estimate` does."""
    with untouched_globals():
        training = training_of_model(model, Given(batch_size=batch_size, **given))
    graph = optimized_graph(training.trace.graph, training.trace.handles, "CPU", batch_size)
    device = training_device("CPU")
    if device.onednn:
        keep_places(graph)
    attribution = Attribution(graph, training.trace.owners)
    program, notes = program_of(attribution, device, training.values)
    return Looked(training, graph, attribution, program, notes)


def _tags(program: Program, least: int) -> list[Tag]:
    found = [
        tag
        for node, tags in zip(program.graph.nodes, program.tags, strict=True)
        for output, tag in zip(node.outputs, tags, strict=True)
        if output.bytes >= least
    ]
    for called in program.called.values():
        found += _tags(called, least)
    return found
