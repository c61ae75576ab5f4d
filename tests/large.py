"""An estimate of a model with very many layers in nested blocks."""

from __future__ import annotations

from functools import cache

from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.estimate import Estimate, LayerInfo, Subject
from tensorboard_plugin_memest.memory.item import Item
from tests.samples import phase

LAYERS = 10_000


@cache
def large_estimate() -> Estimate:
    """`LAYERS` layers, ten in a block, fifty blocks in a stage; each has a weight, every third an output."""
    infos, items = [], []
    for n in range(LAYERS):
        path = f"net/stage_{n // 500}/block_{n // 10 % 50}/layer_{n}"
        infos.append(LayerInfo(path, "Dense", (32, 64), 64 * (n % 7 + 1)))
        held = 256 * (n % 7 + 1)
        items.append(
            Item(path, f"{path}/kernel", Category.WEIGHTS, "weight", f"{path}/kernel", (64,), "float32", held, held)
        )
        if n % 3 == 0:
            items.append(
                Item(path, f"{path}/Relu", Category.ACTIVATIONS, "output", None, (32, 64), "float32", 8192, 8192)
            )
    weights = [item for item in items if item.category is Category.WEIGHTS]
    parameters = sum(info.parameters for info in infos)
    return Estimate(
        subject=Subject(
            model_name="net",
            model_class="Functional",
            parameters=parameters,
            trainable_parameters=parameters,
            optimizer="SGD",
            batch_size=32,
            mode="graph",
            device="GPU",
            pool="preallocated",
            versions={"memest": "0.1.0"},
        ),
        resident_bytes=sum(item.bytes for item in weights),
        phases={"first_step": phase("first_step", items), "step": phase("step", items)},
        layer_infos=tuple(infos),
        assumptions=(),
        limit_bytes=2**30,
    )
