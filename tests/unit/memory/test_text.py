"""An estimate as people see it in a terminal and a notebook."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tensorboard_plugin_memest.memory.category import Category
from tensorboard_plugin_memest.memory.estimate import LayerInfo
from tensorboard_plugin_memest.memory.item import Item
from tensorboard_plugin_memest.memory.text import MOST_LAYERS
from tests.samples import sample_estimate

SNAPSHOT = Path(__file__).parent / "estimate.txt"


def test_the_whole_text():
    shown = str(sample_estimate())
    assert shown == SNAPSHOT.read_text().rstrip("\n"), f"If the change is wanted, write this to {SNAPSHOT}:\n{shown}"


def test_a_notebook_gets_the_same_escaped():
    estimate = replace(sample_estimate(), assumptions=("1 < 2 & so on",))
    shown = estimate._repr_html_()
    assert shown.startswith("<pre>")
    assert shown.endswith("</pre>")
    assert "1 &lt; 2 &amp; so on" in shown


def test_markup_in_names_is_no_markup():
    estimate = sample_estimate()
    named = replace(estimate, subject=replace(estimate.subject, model_name="[bold]x[/]"))
    assert "[bold]x[/] (Sequential)" in str(named)


def test_many_layers_are_summed_up_and_add_up():
    estimate = sample_estimate()
    phase = estimate.phases["step"]
    count = MOST_LAYERS + 30
    items = tuple(
        Item(f"layer{n}", f"op{n}", Category.ACTIVATIONS, "Relu output", None, None, None, 2**20, 2**20)
        for n in range(count)
    )
    infos = tuple(LayerInfo(f"layer{n}", "ReLU", None, 0) for n in range(count))
    many = replace(
        estimate,
        phases={"step": replace(phase, live_at_peak=items, peak_bytes=count * 2**20)},
        layer_infos=infos,
    )
    rows = [line.split() for line in str(many).splitlines()]
    assert ["30", "others", "30.0", "MiB", "30.0", "MiB"] in rows
    assert ["total", f"{count}.0", "MiB", f"{count}.0", "MiB"] in rows
    assert sum(row[:1] == ["layer0"] for row in rows) == 1
    assert not any(row[:1] == [f"layer{count - 1}"] for row in rows)


def test_what_a_phase_takes_of_the_host_has_a_column_of_its_own_where_there_is_any():
    estimate = sample_estimate()
    assert "On the host" not in str(estimate)
    saving = replace(estimate.phases["step"], name="checkpoint", host_peak_bytes=3 * 2**20)
    shown = str(replace(estimate, phases={**estimate.phases, "checkpoint": saving}))
    assert "On the host" in shown
    (row,) = [line.split() for line in shown.splitlines() if line.split()[:1] == ["checkpoint"]]
    assert ["3.0", "MiB"] in [row[n : n + 2] for n in range(len(row))]
