"""Curves that zoom, moments that are looked into, peaks that are chosen: each by mouse and by keyboard."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass, replace

import pytest
from playwright.sync_api import Locator, expect

from demo.results import read_records
from tensorboard_plugin_memest.log.writer import RunWriter
from tensorboard_plugin_memest.memory.alignment import align
from tensorboard_plugin_memest.memory.estimate import Estimate
from tensorboard_plugin_memest.memory.item import by_category
from tensorboard_plugin_memest.memory.layer_comparison import highest_step, shown_phase
from tensorboard_plugin_memest.memory.measured import MeasuredBeside, MeasuredPeaks, MeasuredProfile, Window
from tensorboard_plugin_memest.memory.units import MIB
from tests.browser.conftest import OpenTab
from tests.browser.tab import PATIENCE, Tab
from tests.conftest import Demo, StartTensorBoard
from tests.integration.http import ask, wait_for
from tests.samples import sample_peaks

STEPS = 1_000_000


@dataclass(frozen=True)
class Served:
    """A TensorBoard on a run of the demo and on one that keeps growing, and what the first one's records hold."""

    address: str
    estimate: Estimate
    profile: MeasuredProfile


@pytest.fixture(scope="module")
def served(start_tensorboard: StartTensorBoard, demo: Demo, tmp_path_factory: pytest.TempPathFactory) -> Served:
    logdir = tmp_path_factory.mktemp("timeline")
    shutil.copytree(demo.runs / "small", logdir / "small")
    each = STEPS // 512
    windows = [
        Window(n * each, (n + 1) * each - 1, 900 * MIB, 100 * MIB + n * MIB, 100 * MIB, 800 * MIB) for n in range(512)
    ]
    with RunWriter(logdir / "grows") as writer:
        writer.write_peaks(MeasuredPeaks("GPU:0", "the allocator", None, None, tuple(windows)))
        writer.write_peaks(sample_peaks("GPU:1"))
        writer.write_beside(MeasuredBeside("evaluate", replace(sample_peaks("GPU:0"), before_bytes=None)))
    address = start_tensorboard(logdir)
    wait_for(lambda: ask(address, "runs")["runs"], lambda runs: len(runs) == 2)
    wait_for(lambda: ask(address, "overview", run="small")["measured"], lambda found: found["profiles"])
    records = read_records(demo.runs / "small")
    estimate = [record for record in records if isinstance(record, Estimate)][-1]
    return Served(address, estimate, [record for record in records if isinstance(record, MeasuredProfile)][-1])


@pytest.fixture
def tab(served: Served, open_tab: OpenTab) -> Tab:
    opened = open_tab(served.address, run="small")
    opened.expect_run("small")
    expect(opened.get("step-key")).to_be_visible(timeout=PATIENCE)
    return opened


def plot(tab: Tab, chart: str) -> Locator:
    """Where a chart's lines are."""
    area = tab.get(chart).locator(".u-over")
    area.scroll_into_view_if_needed()
    return area


def place(tab: Tab, name: str) -> str | None:
    """What the address says of `name`."""
    found = re.search(rf"p\.memest\.{name}=([^&]*)", tab.page.url)
    return found and found[1].replace("%3B", ";")


def expect_place(tab: Tab, name: str, pattern: str) -> re.Match[str]:
    tab.page.wait_for_url(re.compile(rf"p\.memest\.{name}={pattern}(&|$)"))
    found = re.fullmatch(pattern.replace("%3B", ";"), place(tab, name) or "")
    assert found
    return found


def expect_no_place(tab: Tab, name: str) -> None:
    tab.page.wait_for_url(lambda url: f"p.memest.{name}=" not in url)


def drag(tab: Tab, area: Locator, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Drags from one place in `area` to another, both in shares of its size."""
    box = area.bounding_box()
    assert box
    points = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in (start, end)]
    tab.page.mouse.move(*points[0])
    tab.page.mouse.down()
    tab.page.mouse.move(*points[1], steps=4)
    tab.page.mouse.up()


def test_a_drag_zooms_both_axes_and_a_link_leads_there_again(tab: Tab, served: Served) -> None:
    timeline = served.estimate.phases["step"].timeline
    area = plot(tab, "predicted-chart")
    drag(tab, area, (0.25, 0.2), (0.75, 0.9))
    found = expect_place(tab, "step", r"(\d+)\.\.(\d+)%3B(\d+)\.\.(\d+)")
    first, last, low, high = (int(number) for number in found.groups())
    assert first == pytest.approx(0.25 * timeline.ticks[-1], abs=0.03 * timeline.ticks[-1])
    assert last == pytest.approx(0.75 * timeline.ticks[-1], abs=0.03 * timeline.ticks[-1])
    assert 0 < low < high
    # What lies in the stretch was asked for anew, with one event on either side.
    positions = timeline.thinned(2000, first, last)
    expect(tab.get("predicted-chart")).to_have_attribute("data-events", str(len(positions)))
    tab.page.reload()
    tab.expect_run("small")
    expect(tab.get("predicted-chart")).to_have_attribute("data-events", str(len(positions)), timeout=PATIENCE)
    tab.get("zoom-reset").click()
    expect_no_place(tab, "step")
    expect(tab.get("predicted-chart")).to_have_attribute("data-events", str(len(timeline)))
    expect(tab.get("zoom-reset")).to_have_count(0)


def test_a_thin_drag_zooms_one_axis(tab: Tab) -> None:
    drag(tab, plot(tab, "measured-chart"), (0.3, 0.5), (0.6, 0.52))
    expect_place(tab, "time", r"\d+\.\.\d+")
    tab.get("zoom-reset").click()
    expect_no_place(tab, "time")
    drag(tab, plot(tab, "measured-chart"), (0.5, 0.2), (0.51, 0.8))
    expect_place(tab, "time", r"%3B\d+\.\.\d+")


def test_the_wheel_zooms_around_the_pointer(tab: Tab, served: Served) -> None:
    end = served.estimate.phases["step"].timeline.ticks[-1]
    area = plot(tab, "predicted-chart")
    box = area.bounding_box()
    assert box
    tab.page.wait_for_timeout(500)  # a page that was just scrolled goes on being scrolled
    tab.page.mouse.move(box["x"] + 0.8 * box["width"], box["y"] + 0.5 * box["height"])
    tab.page.mouse.wheel(0, -120)
    tab.page.mouse.wheel(0, -120)
    first, last = (int(number) for number in expect_place(tab, "step", r"(\d+)\.\.(\d+)").groups())
    assert last - first == pytest.approx(0.64 * end, rel=0.1)
    assert first > end - last
    tab.page.keyboard.down("Shift")
    tab.page.mouse.wheel(0, -120)
    tab.page.keyboard.up("Shift")
    expect_place(tab, "step", r"\d+\.\.\d+%3B\d+\.\.\d+")


def test_keys_zoom_move_and_show_all(tab: Tab, served: Served) -> None:
    end = served.estimate.phases["step"].timeline.ticks[-1]
    slider = tab.get("predicted-chart").locator('[role="slider"]')
    slider.focus()
    tab.page.keyboard.press("+")
    first, last = (int(number) for number in expect_place(tab, "step", r"(\d+)\.\.(\d+)").groups())
    assert last - first == pytest.approx(end / 2, abs=2)
    tab.page.keyboard.press("Shift+ArrowRight")
    tab.page.wait_for_url(lambda url: f"p.memest.step={first}.." not in url)
    moved = expect_place(tab, "step", r"(\d+)\.\.(\d+)")
    assert int(moved[1]) > first
    tab.page.keyboard.press("ArrowUp")
    expect_place(tab, "step", r"\d+\.\.\d+%3B\d+\.\.\d+")
    tab.page.keyboard.press("0")
    expect_no_place(tab, "step")


def test_each_moment_is_told_with_its_op_and_layer(tab: Tab, served: Served) -> None:
    phase = served.estimate.phases["step"]
    op = next(op for op in phase.timeline.ops if op in phase.owners and phase.owners[op].layer)
    position = next(n for n in range(len(phase.timeline)) if phase.timeline.op_at(n) == op)
    assert position < 200
    slider = tab.get("predicted-chart").locator('[role="slider"]')
    slider.focus()
    tooltip = tab.get("predicted-chart").locator('[data-testid="chart-tooltip"]')
    for _ in range(400):
        tab.page.keyboard.press("ArrowRight")
        if (tooltip.locator(".title").text_content() or "") == op:
            break
    expect(tooltip).to_contain_text(op)
    expect(tooltip).to_contain_text(phase.owners[op].layer or "")
    figures = tooltip.locator("[data-bytes]")
    assert int(figures.first.get_attribute("data-bytes") or 0) in phase.timeline.live_bytes
    assert op in (slider.get_attribute("aria-valuetext") or "")


def test_a_click_shows_everything_alive_at_that_moment(tab: Tab, served: Served) -> None:
    phase = served.estimate.phases["step"]
    assert phase.allocations is not None
    area = plot(tab, "predicted-chart")
    box = area.bounding_box()
    assert box
    area.click(position={"x": 0.4 * box["width"], "y": 0.5 * box["height"]})
    position = int(expect_place(tab, "moment", r"p(\d+)")[1])
    alive = phase.allocations.items_at(position)
    tab.expect_bytes(tab.get("moment-words").locator("[data-bytes]"), phase.timeline.live_bytes[position])
    expect(tab.get("moment-words")).to_contain_text(phase.timeline.op_at(position))
    card = tab.frame.locator("memest-moment-card")
    rows = card.locator('[data-testid="group-row"]')
    expect(rows).to_have_count(len({item.layer for item in alive}))
    card.get_by_role("button", name="Category").click()
    categories = by_category(alive)
    expect(rows).to_have_count(len(categories))
    shown = rows.evaluate_all(
        "all => all.map((e) => [e.dataset.key, Number(e.querySelector('[data-column=held]').dataset.bytes)])"
    )
    assert dict(shown) == {category.value: held for category, held in categories.items()}
    # The same again from the address alone.
    tab.page.reload()
    tab.expect_run("small")
    tab.expect_bytes(tab.get("moment-words").locator("[data-bytes]"), phase.timeline.live_bytes[position])
    expect(rows).to_have_count(len(categories))
    card.get_by_role("button", name="To the peak").click()
    tab.expect_bytes(tab.get("moment-words").locator("[data-bytes]"), phase.peak_bytes)


def test_a_measured_moment_is_looked_into_by_keyboard(tab: Tab, served: Served) -> None:
    timeline = served.profile.timeline
    tab.get("measured-chart").locator('[role="slider"]').focus()
    for _ in range(5):
        tab.page.keyboard.press("ArrowRight")
    tab.page.keyboard.press("Enter")
    position = int(expect_place(tab, "moment", r"m(\d+)")[1])
    tab.expect_bytes(tab.get("moment-words").locator("[data-bytes]"), timeline.live_bytes[position])
    expect(tab.get("moment-words")).to_contain_text("of the profile")


def test_the_treemap_is_reached_by_keyboard_and_opens_what_is_chosen(tab: Tab, served: Served) -> None:
    layers = {item.layer for item in served.estimate.phases["step"].live_at_peak}
    boxes = tab.get("treemap-group")
    expect(boxes.first).to_be_visible()
    assert boxes.count() <= len(layers)
    boxes.first.focus()
    tab.page.keyboard.press("ArrowRight")
    second = boxes.nth(1)
    expect(second).to_be_focused()
    key = second.get_attribute("data-key") or ""
    assert key in (second.get_attribute("aria-label") or "")
    tab.page.keyboard.press("Enter")
    expected = [item for item in served.estimate.phases["step"].live_at_peak if item.layer == key]
    card = tab.frame.locator("memest-moment-card")
    expect(card.locator(".path")).to_contain_text(key)
    held = card.locator('[data-testid="item-row"] [data-column="held"]').evaluate_all(
        "all => all.map((e) => Number(e.dataset.bytes))"
    )
    assert sum(held) == sum(item.bytes for item in expected)
    card.get_by_role("button", name="← All").click()
    expect(card.locator('[data-testid="group-row"]')).to_have_count(len(layers))


def test_prediction_and_measurement_are_compared_op_by_op(tab: Tab, served: Served) -> None:
    phase = shown_phase(served.estimate, served.profile)
    assert phase is not None
    step = highest_step(served.profile)
    aligned = align(phase.timeline, served.profile.timeline, step, served.profile.before_bytes)
    expect(tab.get("step-key")).to_contain_text(step.name)
    tab.get("op-differences").locator("summary").click()
    expect(tab.get("op-difference")).to_have_count(min(100, len(aligned.differences)))


def test_a_million_steps_and_what_grows_in_them(served: Served, open_tab: OpenTab) -> None:
    tab = open_tab(served.address, run="grows")
    expect(tab.get("peaks-chart", device="GPU:0")).to_be_visible(timeout=PATIENCE)
    expect(tab.get("leak")).to_contain_text("grows by")
    expect(tab.get("series").locator("button")).to_have_text(
        [re.compile("GPU:0 ↗ grows"), "GPU:1", "Evaluate, GPU:0"], use_inner_text=True
    )
    drag(tab, plot(tab, "peaks-chart"), (0.2, 0.5), (0.4, 0.51))
    first, last = (int(number) for number in expect_place(tab, "steps", r"(\d+)\.\.(\d+)").groups())
    assert first == pytest.approx(0.2 * STEPS, rel=0.05)
    assert last == pytest.approx(0.4 * STEPS, rel=0.05)
    tab.get("series").get_by_role("button", name="Evaluate").click()
    expect(tab.get("peaks-chart", what="evaluate")).to_be_visible()
    expect_no_place(tab, "steps")
    expect(tab.get("leak")).to_have_count(0)
    tab.page.reload()
    expect(tab.get("peaks-chart", what="evaluate")).to_be_visible(timeout=PATIENCE)
