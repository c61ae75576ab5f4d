"""The numbers on screen are the numbers of Python: the tab in Chromium, in a real TensorBoard on the demo's output."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import expect

from demo.results import read_records
from demo.runs import RUNS
from tensorboard_plugin_memest.log.record import Notes
from tensorboard_plugin_memest.log.writer import RunWriter
from tensorboard_plugin_memest.memory.comparison import Comparison, compare_devices
from tensorboard_plugin_memest.memory.dominant import dominant
from tensorboard_plugin_memest.memory.estimate import Estimate
from tensorboard_plugin_memest.memory.format import FORMAT
from tensorboard_plugin_memest.memory.host import HostEstimate
from tensorboard_plugin_memest.memory.layer_comparison import compare_profile
from tensorboard_plugin_memest.memory.limits import find_device
from tensorboard_plugin_memest.memory.measured import MeasuredPeaks, MeasuredProfile
from tensorboard_plugin_memest.memory.units import format_bytes, parse_bytes
from tests.browser.conftest import OpenTab
from tests.browser.tab import PATIENCE, Tab, squeezed
from tests.conftest import Demo, StartTensorBoard
from tests.events import content, string_tensor, write_raw
from tests.integration.http import ask, wait_for
from tests.integration.processes import EXACT, run_python
from tests.samples import sample_estimate, sample_what_if
from tests.unit.measure.logged import read_log

NAMES = [run.name for run in RUNS]
TRAINED = ["small", "fixed"]
LIMIT = "9.29GiB"


@dataclass(frozen=True)
class Records:
    """What the event files of one run hold."""

    estimate: Estimate
    peaks: dict[str, MeasuredPeaks]
    profiles: list[MeasuredProfile]
    notes: tuple[str, ...]
    host: HostEstimate


@pytest.fixture(scope="module")
def records(demo: Demo) -> dict[str, Records]:
    return {name: _read(demo.runs / name) for name in NAMES}


def _read(directory: Path) -> Records:
    found = read_records(directory)
    notes = [record.sentences for record in found if isinstance(record, Notes)]
    return Records(
        estimate=[record for record in found if isinstance(record, Estimate)][-1],
        peaks={record.device: record for record in found if isinstance(record, MeasuredPeaks)},
        profiles=[record for record in found if isinstance(record, MeasuredProfile)],
        notes=notes[-1] if notes else (),
        host=[record for record in found if isinstance(record, HostEstimate)][-1],
    )


def _serve(start_tensorboard: StartTensorBoard, demo: Demo, *arguments: str) -> str:
    server = start_tensorboard(demo.runs, *arguments)
    wait_for(lambda: ask(server, "runs")["runs"], lambda runs: len(runs) == len(NAMES))
    for name in TRAINED:
        wait_for(lambda name=name: ask(server, "overview", run=name)["measured"], lambda found: found["profiles"])
    return server


@pytest.fixture(scope="module")
def server(start_tensorboard: StartTensorBoard, demo: Demo) -> str:
    return _serve(start_tensorboard, demo)


@pytest.fixture(
    params=[(), ("--load_fast=false", "--path_prefix", "/some/where")],
    ids=["fast", "slow-under-prefix"],
    scope="module",
)
def every_server(request: pytest.FixtureRequest, start_tensorboard: StartTensorBoard, demo: Demo) -> str:
    return _serve(start_tensorboard, demo, *request.param)


@pytest.mark.parametrize("name", NAMES)
def test_every_number_of_a_run(every_server: str, open_tab: OpenTab, records: dict[str, Records], name: str) -> None:
    tab = open_tab(every_server, run=name, limit=LIMIT)
    tab.expect_run(name)
    found = records[name]
    expect_verdict(tab, found, LIMIT)
    expect_phases(tab, found)
    expect_layers(tab, found)
    expect_dominant(tab, found.estimate)
    expect_curves(tab, found)
    expect_words(tab, found)
    expect_pipeline(tab, found.host)


def expect_pipeline(tab: Tab, host: HostEstimate) -> None:
    tab.expect_bytes(tab.get("host-peak").locator("[data-bytes]"), host.peak_bytes)
    expect(tab.get("host-stage")).to_have_count(len(host.stages))
    for stage in host.stages:
        row = tab.get("host-stage", name=stage.name)
        tab.expect_bytes(row.locator("td:nth-child(3) [data-bytes]"), stage.bytes)
        expect(row).to_contain_text(stage.reason)
    for lever in host.levers:
        row = tab.get("host-lever" if lever.reason is None else "host-useless", name=lever.name)
        figures = "td:nth-child(3) [data-bytes]" if lever.reason is None else "[data-bytes]"
        tab.expect_bytes(row.locator(figures), lever.peak_bytes)
        expect(row).to_contain_text(lever.reason or lever.cost)


def expect_verdict(tab: Tab, found: Records, limit: str) -> None:
    estimate = found.estimate
    verdict = estimate.fits(limit)
    expect(tab.get("verdict")).to_have_attribute("data-outcome", verdict.outcome)
    expect(tab.get("verdict-sentence")).to_have_text(verdict.sentence)
    tab.expect_bytes(tab.get("predicted-peak").locator(".value"), estimate.peak_bytes)
    tab.expect_bytes(tab.get("limit").locator(".value"), parse_bytes(limit))
    tab.expect_bytes(tab.get("margin").locator(".value"), abs(verdict.margin_bytes))
    compared = _compared(found)
    if compared.step_peak_bytes is None:
        expect(tab.get("measured-peak")).to_contain_text("not measured")
        expect(tab.get("measured-peak").locator("[data-bytes]")).to_have_count(0)
        expect(tab.get("difference")).to_have_count(0)
    else:
        tab.expect_bytes(tab.get("measured-peak").locator(".value"), compared.step_peak_bytes)
        difference = compared.difference
        expect(tab.get("difference")).to_have_attribute("data-fraction", repr(difference))
        text = f"{difference:+.1%}".replace("-", "−").replace("%", " %")
        # What rounds to nothing has no sign.
        expect(tab.get("difference")).to_have_text("0.0 %" if text[1:] == "0.0 %" else text)
    if compared.pipeline_bytes:
        tab.expect_bytes(tab.get("pipeline-bytes"), compared.pipeline_bytes)
    else:
        expect(tab.get("pipeline-bytes")).to_have_count(0)


def expect_phases(tab: Tab, found: Records) -> None:
    phases = found.estimate.phases
    expect(tab.get("phase")).to_have_count(len(phases))
    for name, phase in phases.items():
        tab.expect_bytes(tab.get("phase", phase=name), phase.peak_bytes)
        segments = tab.get("phase-bar", phase=name).locator(".segment")
        shown = segments.evaluate_all("all => all.map((e) => [e.dataset.category, Number(e.dataset.bytes)])")
        assert shown == [[category.value, held] for category, held in phase.categories.items()]
        assert sum(held for _, held in shown) == phase.peak_bytes
    for name, measured in _measured_phases(found).items():
        mark = tab.get("phase-bar", phase=name).locator('[data-testid="phase-measured"]')
        expect(mark).to_have_attribute("data-bytes", str(measured))


def expect_layers(tab: Tab, found: Records) -> None:
    estimate = found.estimate
    compared = compare_profile(estimate, found.profiles)
    differences = {one.layer: one for one in compared.layers} if compared else {}
    rows = tab.get("layer-row")
    owners = [layer.path for layer in estimate.layers]
    only_measured = [owner for owner in differences if owner not in owners]
    expect(rows).to_have_count(len(owners) + len(only_measured))
    # The largest comes first, until a person asks for the model's order.
    largest_first = sorted(estimate.layers, key=lambda layer: -layer.bytes_at_peak)
    shown = rows.evaluate_all("all => all.map((e) => e.dataset.path)")
    assert shown == [layer.path for layer in largest_first] + only_measured
    tab.get("layer-table").locator("button[data-sort='model']").click()
    menu = tab.get("layers-columns")
    menu.locator("summary").click()
    menu.get_by_role("button", name="All", exact=True).click()
    menu.get_by_label("Share").uncheck()
    menu.locator("summary").click()
    columns = list(estimate.peak_phase.categories)
    for n, layer in enumerate(estimate.layers):
        row = rows.nth(n)
        expect(row).to_have_attribute("data-path", layer.path)
        if layer.class_name:
            expect(row.locator("th")).to_contain_text(layer.class_name)
            expect(row.locator("td").nth(1)).to_have_text(f"{layer.parameters:,}" if layer.parameters else "–")
            shape = str(layer.output_shape).replace("None", "?")
            expect(row.locator("td").nth(0)).to_have_text(shape)
        one = differences.get(layer.path)
        measured = {} if compared is None else {"measured": one.measured_bytes if one else 0}
        if measured:
            measured["difference"] = one.difference_bytes if one else 0
        held = {column.value: layer.bytes_per_category.get(column, 0) for column in columns}
        _expect_cells(row, {"total": layer.bytes_at_peak, **measured, **held})
    total = tab.get("layer-total")
    expect(total.locator("td").nth(1)).to_have_text(f"{estimate.subject.parameters:,}")
    peak = compared.profile.peak_bytes if compared else 0
    measured = {"measured": peak, "difference": peak - compared.phase.peak_bytes} if compared else {}
    held = {column.value: size for column, size in estimate.peak_phase.categories.items()}
    _expect_cells(total, {"total": estimate.peak_bytes, **measured, **held})


def _expect_cells(row, expected: dict[str, int]) -> None:
    """Every byte cell of a row of the layer table: the total, what was measured, and one a category."""
    shown = row.locator('[data-testid="layer-cell"]').evaluate_all(
        "all => all.map((e) => [e.dataset.column, Number(e.dataset.bytes), e.textContent.replace(/\\s+/g, '')])"
    )
    assert shown == [[name, held, _in_cell(name, held)] for name, held in expected.items()]


def _in_cell(name: str, held: int) -> str:
    sign = ("+" if held > 0 else "−") if name == "difference" else ""
    return sign + format_bytes(abs(held)).replace(" ", "") if held else "–"


def expect_dominant(tab: Tab, estimate: Estimate) -> None:
    entries = dominant(estimate.items)
    shown = tab.get("dominant")
    expect(shown).to_have_count(len(entries))
    for n, entry in enumerate(entries):
        element = shown.nth(n)
        expect(element).to_have_attribute("data-name", entry.name)
        parts = element.locator('[data-testid="dominant-part"]')
        expect(parts).to_have_count(len(entry.parts))
        for m, part in enumerate(entry.parts):
            expect(parts.nth(m)).to_have_attribute("data-role", part.role)
            expect(parts.nth(m)).to_have_attribute("data-category", part.category.value)
            tab.expect_bytes(parts.nth(m), part.bytes)
            expect(parts.nth(m).locator("td").last).to_have_text(f"{part.share:.1%}".replace("%", " %"))
        tab.expect_bytes(element.locator('[data-testid="dominant-total"]'), entry.bytes)


def expect_curves(tab: Tab, found: Records) -> None:
    phase, later = found.estimate.peak_phase, found.estimate.phases["step"]
    if later.peak_bytes >= 0.999 * phase.peak_bytes:
        # Of phases that peak alike the one that repeats is shown.
        phase = later
    expect(tab.get("predicted-chart")).to_have_attribute("data-peak-bytes", str(phase.peak_bytes), timeout=PATIENCE)
    if not found.profiles:
        expect(tab.get("no-profile")).to_be_visible()
        expect(tab.get("no-peaks")).to_be_visible()
        return
    profile = found.profiles[-1]
    expect(tab.get("measured-chart")).to_have_attribute("data-peak-bytes", str(profile.peak_bytes), timeout=PATIENCE)
    (peaks,) = found.peaks.values()
    chart = tab.get("peaks-chart", device=peaks.device)
    chart.locator(".plot").focus()
    for window in peaks.windows:
        tab.page.keyboard.press("ArrowRight")
        tooltip = chart.locator('[data-testid="chart-tooltip"]')
        expect(tooltip).to_contain_text(f"Step {window.first_step}")
        figures = tooltip.locator("[data-bytes]").evaluate_all("all => all.map((e) => Number(e.dataset.bytes))")
        assert figures == [window.peak_bytes, window.start_bytes, window.current_bytes]


def expect_words(tab: Tab, found: Records) -> None:
    assert tab.get("assumptions").locator("li").all_text_contents() == list(found.estimate.assumptions)
    assert tab.get("notes").locator("li").all_text_contents() == list(found.notes)


def _compared(found: Records) -> Comparison:
    return compare_devices(found.estimate, found.peaks.values())


def _measured_phases(found: Records) -> dict[str, int]:
    if not found.peaks:
        return {}
    (peaks,) = found.peaks.values()
    assert peaks.before_bytes is not None
    phases = _compared(found).phases
    assert set(phases) == {"first_step", "step"}
    return {"build": peaks.before_bytes, **phases}


def test_the_runs_are_offered_with_their_peaks(server: str, open_tab: OpenTab, records: dict[str, Records]) -> None:
    tab = open_tab(server)
    tab.expect_run(max(ask(server, "runs")["runs"], key=lambda run: run["began"])["name"])
    options = tab.get("run-option")
    expect(options).to_have_count(len(NAMES))
    assert options.evaluate_all("all => all.map((e) => e.dataset.run)") == sorted(NAMES)
    for name in NAMES:
        figure = tab.get("run-option", run=name).locator("[data-bytes]")
        expect(figure).to_have_attribute("data-bytes", str(records[name].estimate.peak_bytes))
        assert squeezed(figure) == format_bytes(records[name].estimate.peak_bytes).replace(" ", "")


def test_another_run_is_shown_when_chosen_and_kept_in_the_address(
    server: str, open_tab: OpenTab, records: dict[str, Records]
) -> None:
    tab = open_tab(server, run="as-asked", limit=LIMIT)
    tab.expect_run("as-asked")
    tab.get("run-option", run="small").click()
    tab.expect_run("small")
    expect_verdict(tab, records["small"], LIMIT)
    expect_layers(tab, records["small"])
    tab.page.wait_for_url("**#memest&*p.memest.run=small*")
    tab.page.reload()
    tab.expect_run("small")
    expect_verdict(tab, records["small"], LIMIT)


def test_another_limit_is_judged_and_kept_in_the_address(
    server: str, open_tab: OpenTab, records: dict[str, Records]
) -> None:
    tab = open_tab(server, run="as-asked", limit=LIMIT)
    tab.expect_run("as-asked")
    for limit in ("24GiB", "800 MiB"):
        tab.get("limit-input").fill(limit)
        tab.get("limit-input").press("Enter")
        expect(tab.get("verdict-sentence")).to_have_text(records["as-asked"].estimate.fits(limit).sentence)
        expect_verdict(tab, records["as-asked"], limit)
    assert records["as-asked"].estimate.fits("24GiB").outcome != records["as-asked"].estimate.fits("800 MiB").outcome
    tab.page.wait_for_url("**p.memest.limit=800%20MiB*")
    tab.get("limit-input").fill("")
    tab.get("limit-input").press("Enter")
    # The limit that the script recorded.
    expect(tab.get("verdict-sentence")).to_have_text(records["as-asked"].estimate.fits(LIMIT).sentence)


def test_the_exact_bytes_are_shown_on_demand(server: str, open_tab: OpenTab, records: dict[str, Records]) -> None:
    tab = open_tab(server, run="as-asked", limit=LIMIT)
    tab.expect_run("as-asked")
    tab.get("unit-switch").get_by_role("button", name="B", exact=True).click()
    peak = f"{records['as-asked'].estimate.peak_bytes:,}B"
    assert squeezed(tab.get("predicted-peak").locator(".value")) == peak
    assert squeezed(tab.get("layer-total").locator('[data-column="total"]')) == peak


@pytest.mark.parametrize("name", ["as-asked", "small"])
def test_everything_alive_at_the_peak_of_each_phase(
    server: str, open_tab: OpenTab, records: dict[str, Records], name: str
) -> None:
    tab = open_tab(server, run=name)
    tab.expect_run(name)
    card = tab.frame.locator("memest-moment-card")
    card.get_by_role("button", name="Each buffer").click()
    for phase in reversed(records[name].estimate.phases.values()):
        label = {"build": "Build", "first_step": "First step", "step": "Step"}[phase.name]
        tab.get("predicted-curve").get_by_role("button", name=label, exact=True).click()
        expect(card).to_contain_text(f"of the predicted {label.lower()}")
        tab.expect_bytes(tab.get("moment-words").locator("[data-bytes]"), phase.peak_bytes)
        alike = Counter(phase.live_at_peak)
        rows = card.locator('[data-testid="item-row"]')
        expect(rows).to_have_count(len(alike))
        shown = rows.evaluate_all(
            "all => all.map((e) => [e.dataset.name, Number(e.querySelector('[data-column=held]').dataset.bytes)])"
        )
        assert sorted(shown) == sorted([item.name, item.bytes * count] for item, count in alike.items())


def test_each_phase_has_its_predicted_curve(server: str, open_tab: OpenTab, records: dict[str, Records]) -> None:
    tab = open_tab(server, run="small")
    tab.expect_run("small")
    for name, label in (("build", "Build"), ("first_step", "First step")):
        tab.get("predicted-curve").get_by_role("button", name=label, exact=True).click()
        phase = records["small"].estimate.phases[name]
        expect(tab.get("predicted-chart")).to_have_attribute("data-peak-bytes", str(phase.peak_bytes))
        expect(tab.get("predicted-curve")).to_contain_text(f"{len(phase.timeline):,} event")


def test_a_profile_tells_what_was_there_before(server: str, open_tab: OpenTab, records: dict[str, Records]) -> None:
    profile = records["small"].profiles[-1]
    assert sum(item.bytes for item in profile.before) == profile.before_bytes
    tab = open_tab(server, run="small")
    tab.expect_run("small")
    before = tab.get("profile-before")
    tab.expect_bytes(before.locator("summary"), profile.before_bytes)
    before.locator("summary").click()
    held = before.locator('[data-testid="item-row"] [data-column="held"]')
    expect(held).to_have_count(len(profile.before))
    assert held.evaluate_all("all => all.map((e) => Number(e.dataset.bytes))") == [
        item.bytes for item in profile.before
    ]


def test_dark_mode(server: str, open_tab: OpenTab) -> None:
    brightness = {}
    for scheme in ("light", "dark"):
        tab = open_tab(server, run="small", color_scheme=scheme)
        tab.expect_run("small")
        expect(tab.frame.locator("html")).to_have_attribute("data-theme", scheme)
        app, heading = tab.frame.locator("memest-app"), tab.get("verdict-sentence")
        brightness[scheme] = _brightness(app, "backgroundColor"), _brightness(heading, "color")
    paper, ink = brightness["light"]
    assert paper > ink + 500
    paper, ink = brightness["dark"]
    assert ink > paper + 400


def _brightness(element, name: str) -> int:
    """The sum of red, green and blue, 0 to 765."""
    text = element.evaluate(f"e => getComputedStyle(e).{name}")
    assert text.startswith("rgb("), text
    return sum(int(part) for part in text[4:-1].split(","))


def test_a_limit_that_is_none_is_explained(server: str, open_tab: OpenTab, records: dict[str, Records]) -> None:
    tab = open_tab(server, run="small", limit="lots")
    tab.expect_run("small")
    expect(tab.get("limit-error")).to_contain_text("'lots' is not a memory size")
    expect(tab.get("verdict-sentence")).to_have_text(records["small"].estimate.fits(LIMIT).sentence)
    # The browser itself reports the server's refusal.
    assert len(tab.troubles) == 1
    assert "400" in tab.troubles.pop()


def test_what_if(start_tensorboard: StartTensorBoard, open_tab: OpenTab, tmp_path: Path) -> None:
    what_if = sample_what_if()
    with RunWriter(tmp_path / "one") as writer:
        writer.write_estimate(sample_estimate())
        writer.write_what_if(what_if)
    tab = open_tab(start_tensorboard(tmp_path), limit=LIMIT)
    tab.expect_run("one")
    tab.expect_bytes(tab.get("what-if-before"), what_if().peak_bytes)
    tab.expect_bytes(tab.get("what-if-after"), what_if().peak_bytes)
    expect(tab.get("what-if-outcome")).to_have_attribute("data-outcome", "does not fit")
    asked = len(tab.asked)

    tab.get("what-if-optimizer").select_option("SGD")
    slider = tab.get("what-if-batch")
    slider.focus()
    slider.press("ArrowRight")
    chosen = what_if(optimizer="SGD", batch_size=2)
    tab.expect_bytes(tab.get("what-if-after"), chosen.peak_bytes)
    tab.expect_bytes(tab.get("what-if-saving"), what_if().peak_bytes - chosen.peak_bytes)
    expect(tab.get("what-if-batch-value")).to_have_text("2")
    limit = parse_bytes(LIMIT)
    expect(tab.get("what-if-outcome")).to_have_attribute("data-outcome", chosen.fits(limit).outcome)
    tab.expect_bytes(tab.get("what-if-margin"), abs(chosen.fits(limit).margin_bytes))
    for category, size in chosen.categories.items():
        segment = tab.get("what-if-after-bar").locator(f'[data-category="{category}"]')
        expect(segment).to_have_attribute("data-bytes", str(size))

    gpu = find_device("A100 40GB")
    tab.get("what-if-gpu").select_option(gpu.name)
    expect(tab.get("what-if-outcome")).to_have_attribute("data-outcome", "fits")
    tab.expect_bytes(tab.get("what-if-margin"), chosen.fits(gpu.usable_bytes).margin_bytes)
    assert len(tab.asked) == asked, "all of it was there already"

    # A link leads to the same view.
    assert "p.memest.optimizer=SGD" in tab.page.url
    tab.page.reload()
    tab.expect_run("one")
    tab.expect_bytes(tab.get("what-if-after"), chosen.peak_bytes)

    tab.get("what-if-mode").select_option("xla")
    expect(tab.get("what-if-after")).to_have_text("not estimated")
    tab.get("what-if-reset").click()
    tab.expect_bytes(tab.get("what-if-after"), what_if().peak_bytes)


def test_a_run_that_is_not_there_is_explained(server: str, open_tab: OpenTab) -> None:
    tab = open_tab(server, run="nowhere")
    expect(tab.get("unknown-run")).to_contain_text("no run named nowhere", timeout=PATIENCE)
    tab.get("run-option", run="fixed").click()
    tab.expect_run("fixed")


def test_an_empty_log_directory_explains_what_to_do(
    start_tensorboard: StartTensorBoard, open_tab: OpenTab, tmp_path: Path
) -> None:
    tab = open_tab(start_tensorboard(tmp_path))
    expect(tab.get("empty")).to_contain_text("memest.log_model(model", timeout=PATIENCE)


def test_a_record_that_cannot_be_read_is_told_beside_the_rest(
    start_tensorboard: StartTensorBoard, open_tab: OpenTab, tmp_path: Path
) -> None:
    with RunWriter(tmp_path / "one") as writer:
        writer.write_estimate(sample_estimate())
        write_raw(tmp_path / "one" / "memest", "host", content("host", FORMAT + 1), string_tensor(b"x"))
    server = start_tensorboard(tmp_path)
    wait_for(lambda: ask(server, "runs")["runs"], lambda runs: len(runs) == 1)
    tab = open_tab(server)
    tab.expect_run("one")
    expect(tab.get("verdict-sentence")).to_be_visible()
    expect(tab.get("problems")).to_contain_text("The record 'host' could not be read.")
    expect(tab.get("problems")).to_contain_text("Upgrade memest")
    expect(tab.get("run-option").get_by_role("img", name="has problems")).to_be_visible()


# Building the model peaks at three times its 50 MiB of weights, Adam's step at six times.
TOO_LARGE = """
import sys
import numpy as np, keras, memest
model = keras.Sequential([keras.Input((3200,)), keras.layers.Dense(4096, name="large")])
model.compile("adam", "mse", jit_compile=False)
x, y = np.ones((8, 3200), "float32"), np.ones((8, 4096), "float32")
model.fit(x, y, batch_size=4, verbose=0, callbacks=[memest.MemoryCallback(sys.argv[1])])
"""


def test_the_reload_button_brings_new_runs_also_one_that_crashed(
    start_tensorboard: StartTensorBoard, open_tab: OpenTab, tmp_path: Path
) -> None:
    with RunWriter(tmp_path / "one") as writer:
        writer.write_estimate(sample_estimate())
    server = start_tensorboard(tmp_path, "--reload_interval", "1")
    wait_for(lambda: ask(server, "runs")["runs"], lambda runs: len(runs) == 1)
    tab = open_tab(server)
    tab.expect_run("one")
    capped = {**EXACT, "TF_CPU_BFC_MEM_LIMIT_IN_MB": "256"}
    died = run_python(TOO_LARGE, str(tmp_path / "two"), environment=capped)
    assert "ResourceExhaustedError" in died.stderr
    (crash,) = read_log(tmp_path / "two").crashes
    assert (crash.phase, crash.layer, crash.shape) == ("first_step", "large", (3200, 4096))
    assert crash.limit_bytes == 256 * 2**20
    assert crash.predicted_peak_bytes > crash.limit_bytes
    wait_for(lambda: ask(server, "runs")["runs"], lambda runs: [run["crashed"] for run in runs] == [False, True])
    expect(tab.get("run-option")).to_have_count(1)
    tab.page.locator(".reload-button").click()
    expect(tab.get("run-option")).to_have_count(2)
    expect(tab.get("run-option", run="one").get_by_test_id("run-crashed")).to_have_count(0)
    expect(tab.get("run-option", run="two").get_by_test_id("run-crashed")).to_have_text("out of memory")
    tab.expect_run("one")
    expect(tab.get("crash")).to_have_count(0)
    tab.get("run-option", run="two").click()
    tab.expect_run("two")
    expect(tab.get("verdict-sentence")).to_have_text("The run ran out of memory in the first step.")
    expect(tab.get("crash-headline")).to_have_text(crash.headline)
    assert tab.get("crash-advice").locator("li").all_text_contents() == list(crash.advice)
    assert tab.get("crash").locator("dl [data-bytes]").first.get_attribute("data-bytes") == str(crash.bytes)
