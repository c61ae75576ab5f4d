"""What a person does with the tab, on one TensorBoard and in one page: the numbers that come up are Python's."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import Browser, Locator, expect

from tensorboard_plugin_memest.log.writer import RunWriter
from tensorboard_plugin_memest.memory.dominant import dominant
from tensorboard_plugin_memest.memory.estimate import Estimate
from tensorboard_plugin_memest.memory.units import format_bytes
from tests.browser.conftest import opened
from tests.browser.tab import PATIENCE, Tab, squeezed
from tests.conftest import REPOSITORY, StartTensorBoard
from tests.integration.http import ask, wait_for
from tests.large import LAYERS, large_estimate
from tests.samples import CONV, DENSE, sample_advice, sample_estimate, sample_host, sample_peaks, sample_profile

LIMIT = 9_975_061_544
ODD = "a <b>run</b> & " + "more " * 40
AXE = REPOSITORY / "frontend" / "node_modules" / "axe-core" / "axe.min.js"


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("interactions")
    with RunWriter(place / "adam") as writer:
        writer.write_estimate(sample_estimate(limit_bytes=LIMIT))
        writer.write_peaks(sample_peaks())
        writer.write_profile(sample_profile())
        writer.write_host(sample_host())
        writer.write_advice(sample_advice())
    # The session that the sample's profile is of, as far as XProf looks for its list.
    session = place / "adam" / "plugins" / "profile" / sample_profile().started_at
    session.mkdir(parents=True)
    (session / "host.xplane.pb").touch()
    with RunWriter(place / "sgd") as writer:
        writer.write_estimate(sample_estimate(optimizer="SGD", limit_bytes=LIMIT))
    with RunWriter(place / "large") as writer:
        writer.write_estimate(large_estimate())
    with RunWriter(place / ODD) as writer:
        writer.write_estimate(oddly_named())
    return place


def oddly_named() -> Estimate:
    """The sample with names for its model and its largest layer as nobody expects them."""
    text = json.dumps(sample_estimate(limit_bytes=LIMIT).to_json())
    text = text.replace(DENSE, f"<b>ü\u202e/{'long_' * 60}").replace(
        '"model_name": "sequential"', f'"model_name": "{"n" * 200}"'
    )
    return Estimate.from_json(json.loads(text))


def _serve(start_tensorboard: StartTensorBoard, logs: Path, *arguments: str) -> str:
    server = start_tensorboard(logs, *arguments)
    wait_for(lambda: ask(server, "runs")["runs"], lambda runs: len(runs) == 4)
    return server


@pytest.fixture(scope="module")
def server(start_tensorboard: StartTensorBoard, logs: Path) -> str:
    return _serve(start_tensorboard, logs)


@pytest.fixture(scope="module")
def page(browser: Browser, server: str) -> Iterator[Tab]:
    with opened(browser, server) as tab:
        tab.go(run="adam")
        tab.expect_run("adam")
        yield tab


@pytest.fixture
def tab(page: Tab) -> Tab:
    """The page with run `adam` as a link to it shows it."""
    page.go(run="sgd")
    page.go(run="adam")
    page.expect_run("adam")
    return page


def paths(tab: Tab) -> list[str]:
    return tab.get("layer-row").evaluate_all("all => all.map((e) => e.dataset.path)")


def test_layers_fold_into_the_sums_of_what_is_in_them(tab: Tab) -> None:
    estimate = sample_estimate()
    inside = [layer for layer in estimate.layers if layer.path.startswith("sequential/")]
    group = tab.get("layer-group", path="sequential")
    total = group.locator('[data-column="total"]')
    tab.expect_bytes(total, sum(layer.bytes_at_peak for layer in inside))
    assert {layer.path for layer in inside} < set(paths(tab))
    group.locator(".fold").click()
    expect(tab.get("layer-row", path=DENSE)).to_have_count(0)
    expect(group).to_have_attribute("aria-expanded", "false")
    tab.page.wait_for_url("**p.memest.folds=sequential*")
    # A link to here shows the same.
    tab.page.reload()
    tab.expect_run("adam")
    expect(group).to_have_attribute("aria-expanded", "false")
    tab.frame.get_by_role("button", name="Unfold all").click()
    expect(tab.get("layer-row", path=DENSE)).to_be_visible()


def test_layers_are_found_filtered_sorted_and_come_back(tab: Tab) -> None:
    tab.get("layers-find").fill("CONV")
    expect(tab.get("layer-row")).to_have_count(1)
    assert paths(tab) == [CONV]
    tab.get("layers-find").fill("")
    tab.get("layers-category").select_option("optimizer_slots")
    expect(tab.get("layer-row")).to_have_count(1)
    tab.get("layers-category").select_option("")
    tab.get("layers-least").select_option("1GiB")
    expect(tab.get("layers-shown")).to_have_text("1 row")
    tab.page.wait_for_url("**p.memest.least=1GiB*")
    tab.frame.get_by_role("button", name="Show all", exact=True).click()
    rows = len(sample_estimate().layers)
    expect(tab.get("layer-row")).to_have_count(rows)
    tab.frame.get_by_role("button", name="List", exact=True).click()
    expect(tab.get("layer-group")).to_have_count(0)
    # Too little beside the others to have a column before somebody wants one.
    menu = tab.get("layers-columns")
    menu.locator("summary").click()
    menu.get_by_label("workspace").check()
    menu.locator("summary").press("Escape")
    head = tab.get("layer-table").locator("button[data-sort='workspace']")
    head.click()
    assert paths(tab)[0] == CONV
    expect(tab.get("layer-table").locator("th[aria-sort='descending']")).to_contain_text("workspace")


def test_columns_are_chosen(tab: Tab) -> None:
    menu = tab.get("layers-columns")
    menu.locator("summary").click()
    menu.get_by_label("Output").uncheck()
    menu.get_by_label("Share").check()
    row = tab.get("layer-row", path=DENSE)
    dense = next(layer for layer in sample_estimate().layers if layer.path == DENSE)
    share = dense.bytes_at_peak / sample_estimate().peak_bytes
    expect(row.get_by_text(f"{share:.1%}".replace("%", " %"), exact=True)).to_be_visible()
    expect(row).not_to_contain_text("(1, 128)")
    menu.get_by_role("button", name="The usual ones").click()
    expect(row).to_contain_text("(1, 128)")
    menu.locator("summary").press("Escape")
    expect(menu.get_by_label("Output")).to_be_hidden()


def test_the_keyboard_goes_through_the_layers(tab: Tab) -> None:
    group = tab.get("layer-group", path="sequential")
    group.focus()
    group.press("ArrowDown")
    expect(tab.get("layer-row", path=DENSE)).to_be_focused()
    tab.get("layer-row", path=DENSE).press("Enter")
    expect(tab.get("layer-row", path=DENSE)).to_have_attribute("aria-selected", "true")
    tab.get("layer-row", path=DENSE).press("ArrowLeft")
    expect(group).to_be_focused()
    group.press("ArrowLeft")
    expect(group).to_have_attribute("aria-expanded", "false")
    group.press("End")
    expect(tab.get("layer-row").last).to_be_focused()


def test_the_keyboard_goes_on_in_the_card_that_a_link_led_to(tab: Tab) -> None:
    tab.frame.get_by_role("navigation").get_by_role("button", name="Layers").press("Enter")
    expect(tab.frame.locator("memest-layers-card")).to_be_in_viewport()
    tab.page.keyboard.press("Tab")
    reached = tab.frame.locator("#layers").evaluate("e => e.querySelector('memest-layers-card:focus-within') !== null")
    assert reached


def test_a_dominant_item_leads_to_its_layer(tab: Tab) -> None:
    tab.get("layer-group", path="sequential").locator(".fold").click()
    tab.get("layers-find").fill("input")
    expect(tab.get("layer-row", path=DENSE)).to_have_count(0)
    tab.get("dominant-layer").first.click()
    row = tab.get("layer-row", path=DENSE)
    expect(row).to_be_in_viewport()
    expect(row).to_have_attribute("aria-selected", "true")
    expect(tab.get("layers-find")).to_have_value("")
    tab.page.wait_for_url("**p.memest.layer=sequential%2Fdense*")


def test_runs_are_held_against_each_other(tab: Tab) -> None:
    adam, sgd = sample_estimate(), sample_estimate(optimizer="SGD")
    tab.get("run-option", run="sgd").get_by_test_id("run-compare").click()
    row = tab.get("compare-row", section="peaks", name="predicted")
    cells = row.locator("td")
    expect(cells.nth(0)).to_have_attribute("data-bytes", str(adam.peak_bytes))
    expect(cells.nth(1)).to_have_attribute("data-bytes", str(sgd.peak_bytes))
    difference = row.locator("[data-difference]")
    expect(difference).to_have_attribute("data-difference", str(sgd.peak_bytes - adam.peak_bytes))
    assert squeezed(difference) == "−" + format_bytes(adam.peak_bytes - sgd.peak_bytes).replace(" ", "")
    expect(tab.get("compare-row", section="layers", name=CONV)).to_have_count(1)
    tab.get("compare-changed").check()
    expect(tab.get("compare-row", section="layers", name=CONV)).to_have_count(0)
    expect(tab.get("compare-fact")).to_have_count(1)
    expect(tab.get("compare-fact")).to_contain_text("Optimizer")
    tab.page.wait_for_url("**p.memest.compare=sgd*")
    tab.page.reload()
    tab.expect_run("adam")
    expect(difference).to_be_visible()
    # The run beside it and the one on show change places.
    tab.get("run-option", run="sgd").locator("label").click()
    tab.expect_run("sgd")
    expect(difference).to_have_attribute("data-difference", str(adam.peak_bytes - sgd.peak_bytes))
    tab.frame.get_by_role("button", name="Stop comparing").click()
    expect(tab.get("compare-table")).to_have_count(0)


def saved_picture(tab: Tab, menu: Locator) -> Image.Image:
    """What an export gives as a picture."""
    menu.locator("summary").click()
    with tab.page.expect_download() as saved:
        menu.locator("[data-format='png']").click()
    menu.locator("summary").press("Escape")
    assert saved.value.suggested_filename.startswith("adam-")
    return Image.open(io.BytesIO(Path(saved.value.path()).read_bytes()), formats=["PNG"])


def saved_records(tab: Tab, test_id: str, name: str) -> list[dict[str, Any]]:
    """What an export gives; as CSV the same as in JSON."""
    menu = tab.get(test_id)
    menu.locator("summary").click()
    found: dict[str, list[dict[str, Any]]] = {}
    for format, read in (("csv", lambda text: list(csv.DictReader(io.StringIO(text)))), ("json", json.loads)):
        with tab.page.expect_download() as saved:
            menu.locator(f"[data-format='{format}']").click()
        assert saved.value.suggested_filename == f"adam-{name}.{format}"
        found[format] = read(Path(saved.value.path()).read_text())
    menu.locator("summary").press("Escape")
    cells = [
        {key: value if isinstance(value, str) else _cell(value) for key, value in row.items()} for row in found["json"]
    ]
    assert found["csv"] == cells
    return found["json"]


def _cell(value: object) -> str:
    return "" if value is None else json.dumps(value)


def test_layers_are_exported_with_exact_bytes(tab: Tab) -> None:
    estimate = sample_estimate()
    expected = {layer.path: layer for layer in estimate.layers}
    rows = saved_records(tab, "layers-export", "layers")
    assert {row["layer"]: row["bytes_at_peak"] for row in rows} == {
        path: layer.bytes_at_peak for path, layer in expected.items()
    }
    for row in rows:
        for category in estimate.peak_phase.categories:
            assert row[category.value] == expected[row["layer"]].bytes_per_category.get(category, 0)


def test_a_chart_is_saved_as_a_picture_and_as_numbers(tab: Tab) -> None:
    menu = tab.get("predicted-chart").get_by_test_id("chart-export")
    picture = saved_picture(tab, menu)
    assert picture.width > 300
    assert picture.height > 200
    menu.locator("summary").click()
    with tab.page.expect_download() as saved:
        menu.locator("[data-format='csv']").click()
    rows = list(csv.DictReader(io.StringIO(Path(saved.value.path()).read_text())))
    timeline = sample_estimate().phases["step"].timeline
    assert max(int(row["predicted"]) for row in rows) == max(timeline.live_bytes)


def test_what_is_alive_is_saved_as_a_picture(tab: Tab) -> None:
    expect(tab.get("treemap-group").first).to_be_visible()
    picture = saved_picture(tab, tab.get("alive-export"))
    (width, height), colours = picture.size, picture.convert("RGB").getcolors(picture.width * picture.height)
    assert width > 300
    assert height > 200
    # The ground of the card is all that a picture without rectangles would show.
    assert colours
    assert max(count for count, _ in colours) < 0.9 * width * height


def test_a_comparison_is_exported_with_exact_bytes(tab: Tab) -> None:
    tab.go(run="adam", compare="sgd")
    rows = saved_records(tab, "compare-export", "compared")
    row = next(row for row in rows if "predicted" in row.values())
    assert {sample_estimate().peak_bytes, sample_estimate(optimizer="SGD").peak_bytes} <= set(row.values())


def test_phases_and_dominant_items_are_exported_with_exact_bytes(tab: Tab) -> None:
    estimate = sample_estimate()
    rows = saved_records(tab, "phases-export", "phases")
    assert [(row["phase"], row["predicted_bytes"]) for row in rows] == [
        (name, phase.peak_bytes) for name, phase in estimate.phases.items()
    ]
    rows = saved_records(tab, "dominant-export", "dominant")
    assert [(row["name"], row["role"], row["bytes"]) for row in rows] == [
        (entry.name, part.role, part.bytes) for entry in dominant(estimate.items) for part in entry.parts
    ]
    expect(tab.frame.get_by_label("Export phases")).to_be_visible()


def test_what_is_alive_and_what_to_change_and_the_pipeline_are_exported_with_exact_bytes(tab: Tab) -> None:
    alive = sample_estimate().phases["step"].live_at_peak
    rows = saved_records(tab, "alive-export", "alive")
    assert Counter((row["name"], row["role"], row["bytes"]) for row in rows for _ in range(row["count"])) == Counter(
        (item.name, item.role, item.bytes) for item in alive
    )
    advice = sample_advice()
    rows = saved_records(tab, "advice-export", "changes")
    assert [(row["change"], row["peak_bytes"], row["does_not_help"]) for row in rows] == [
        (lever.title, lever.peak_bytes, lever.reason) for lever in (*advice.levers, *advice.useless)
    ]
    rows = saved_records(tab, "host-export", "pipeline")
    assert [(row["stage"], row["bytes"]) for row in rows] == [
        (stage.name, stage.bytes) for stage in sample_host().stages
    ]


def test_the_code_of_a_change_is_copied(tab: Tab) -> None:
    tab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    (lever,) = sample_advice().levers
    change = tab.get("advice-lever", name=lever.name)
    change.get_by_test_id("copy-code").click()
    expect(change.get_by_test_id("copy-code")).to_have_text("Copied")
    assert tab.page.evaluate("navigator.clipboard.readText()") == lever.code


def test_units_are_those_that_were_chosen(tab: Tab) -> None:
    peak = sample_estimate().peak_bytes
    switch = tab.get("unit-switch")
    for unit, shown in (("MiB", f"{peak / 2**20:.1f}MiB"), ("B", f"{peak:,}B"), ("GiB", f"{peak / 2**30:.2f}GiB")):
        switch.get_by_role("button", name=unit, exact=True).click()
        expect(switch.get_by_role("button", name=unit, exact=True)).to_have_attribute("aria-pressed", "true")
        assert squeezed(tab.get("predicted-peak").locator(".value")) == shown
        assert squeezed(tab.get("layer-total").locator('[data-column="total"]')) == shown


@pytest.mark.parametrize("by", ["op", "category", "shape", "each"])
def test_what_is_alive_is_added_up_by(tab: Tab, by: str) -> None:
    card = tab.frame.locator("memest-moment-card")
    name = {"each": "Each buffer"}.get(by, by.capitalize())
    card.get_by_role("button", name=name, exact=True).click()
    tab.page.wait_for_url(f"**p.memest.by={by}*")
    keys = {
        "op": lambda item: item.role,
        "category": lambda item: item.category.value,
        "shape": lambda item: f"{list(item.shape)} {item.dtype}" if item.shape is not None else "(shape not known)",
        "each": lambda item: item.name,
    }
    expected: Counter[str] = Counter()
    for item in sample_estimate().peak_phase.live_at_peak:
        expected[keys[by](item)] += item.bytes
    rows = card.locator('[data-testid="item-row"]' if by == "each" else '[data-testid="group-row"]')
    attribute = "name" if by == "each" else "key"
    expect(card.locator("thead th").first).to_have_text({"each": "Item"}.get(by, name))
    held = "e.querySelector('[data-column=held]').dataset.bytes"
    found: Counter[str] = Counter()
    for key, number in rows.evaluate_all(f"all => all.map((e) => [e.dataset.{attribute}, Number({held})])"):
        found[key] += number
    assert found == expected


def test_pointing_into_the_treemap_names_the_buffer(tab: Tab) -> None:
    boxes = tab.get("treemap-group")
    expect(boxes.first).to_be_visible()
    boxes.first.scroll_into_view_if_needed()
    box = boxes.first.bounding_box()
    assert box
    tab.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    tip = tab.get("treemap-tooltip")
    expect(tip).to_be_visible()
    shown = int(tip.locator("[data-bytes]").get_attribute("data-bytes") or 0)
    alike = Counter(sample_estimate().peak_phase.live_at_peak)
    (item, count) = next(one for one in alike.items() if one[0].name == tip.locator(".title").text_content())
    assert shown == item.bytes * count


def test_a_double_click_shows_the_whole_curve_again(tab: Tab) -> None:
    chart = tab.get("predicted-chart")
    chart.locator('[role="slider"]').press("+")
    tab.page.wait_for_url("**p.memest.step=*")
    chart.locator(".u-over").dblclick()
    tab.page.wait_for_url(lambda url: "p.memest.step=" not in url)


def test_what_is_not_up_to_date_says_so_until_it_is(tab: Tab) -> None:
    tab.page.route("**/data/plugin/memest/overview*", lambda route: route.abort())
    tab.page.locator(".reload-button").click()
    expect(tab.get("stale")).to_contain_text("TensorBoard does not answer")
    tab.expect_bytes(tab.get("predicted-peak").locator(".value"), sample_estimate().peak_bytes)
    tab.page.unroute_all()
    tab.get("stale").get_by_role("button", name="Try again").click()
    expect(tab.get("stale")).to_have_count(0)
    # The browser tells of the answer that was kept from it.
    assert [trouble for trouble in tab.troubles if "ERR_FAILED" not in trouble] == []
    tab.troubles.clear()


def test_a_profile_leads_to_xprof(tab: Tab) -> None:
    pytest.importorskip("xprof")
    link = "/?run=adam%2F2026_01_01_00_00_00&tag=memory_profile#profile"
    expect(tab.get("xprof")).to_have_attribute("href", link)
    tab.go(run="sgd")
    tab.expect_run("sgd")
    expect(tab.get("xprof")).to_have_count(0)


@pytest.mark.parametrize("name", ["RTX 3080 10GB", "a100 80gb"])
def test_the_limit_of_a_gpu(tab: Tab, name: str) -> None:
    tab.get("limit-input").fill(name)
    tab.get("limit-input").press("Enter")
    verdict = sample_estimate().fits(name)
    expect(tab.get("verdict-sentence")).to_have_text(verdict.sentence)
    tab.expect_bytes(tab.get("limit").locator(".value"), verdict.limit_bytes)
    assert verdict.limit_name is not None
    expect(tab.get("limit")).to_contain_text(verdict.limit_name)
    assert tab.get("verdict-risk").all_text_contents() == list(verdict.risks)
    assert tab.frame.locator("#gpus option").count() > 200


def test_gpus_are_offered_without_knowing_their_names(tab: Tab) -> None:
    field = tab.get("limit-input")
    field.fill("RTX 3080 10GB")
    field.press("Enter")
    expect(tab.get("limit")).to_contain_text("RTX 3080")
    tab.get("limit-pick").click()
    # A browser lists only what has the field's text in it.
    expect(field).to_be_focused()
    expect(field).to_have_value("")
    tab.page.keyboard.press("Escape")
    tab.get("unit-switch").get_by_role("button", name="GiB").focus()
    expect(field).to_have_value("RTX 3080 10GB")
    expect(tab.get("limit")).to_contain_text("RTX 3080")


def test_the_verdict_says_what_it_is_and_what_would_make_it_fit(tab: Tab) -> None:
    first = dominant(sample_estimate().items)[0]
    expect(tab.get("verdict-why")).to_contain_text(first.sentence)
    combination = sample_advice().combination
    assert combination is not None
    expect(tab.get("verdict-fix")).to_contain_text("Optimizer SGD")
    expect(tab.get("verdict-fix").locator("[data-bytes]").last).to_have_attribute(
        "data-bytes", str(combination.needs_bytes)
    )
    tab.get("verdict-fix").get_by_role("button").click()
    expect(tab.frame.locator("memest-advice-card")).to_be_in_viewport()
    tab.page.wait_for_url("**p.memest.card=advice*")


def test_words_are_explained_where_they_stand(tab: Tab) -> None:
    term = tab.frame.locator("memest-term[word='optimizer_slots']").first
    tip = term.get_by_role("tooltip")
    expect(tip).to_be_hidden()
    term.get_by_role("button").focus()
    expect(tip).to_contain_text("Adam's m and v")
    term.get_by_role("button").press("Escape")
    expect(tip).to_be_hidden()


def test_ten_thousand_layers_are_there_and_few_of_them_in_the_page(page: Tab) -> None:
    page.go(run="large", tree="list", sort="model.up")
    page.expect_run("large")
    expect(page.frame.locator("table[role=treegrid]")).to_have_attribute("aria-rowcount", str(LAYERS + 2))
    rows = page.get("layer-row")
    assert 10 < rows.count() < 120
    scroller = page.frame.locator("memest-layer-table .scroller")
    scroller.evaluate("e => (e.scrollTop = e.scrollHeight)")
    last = large_estimate().layers[-1]
    expect(page.get("layer-row", path=last.path)).to_be_visible()
    page.go(run="large", card="layers", layer=large_estimate().layers[7_777].path)
    expect(page.get("layer-row", path=large_estimate().layers[7_777].path)).to_be_in_viewport(timeout=PATIENCE)


def test_reloading_keeps_the_place(tab: Tab) -> None:
    tab.get("layers-find").fill("dense")
    # Until the cards below are there, the page may end too soon to scroll so far.
    expect(tab.frame.locator("memest-host-card")).to_be_visible()
    tab.frame.locator("nav button[data-card='layers']").click()
    card = tab.frame.locator("memest-layers-card")
    # What lies above may still grow; the card stays under the contents meanwhile, and after.
    top = "e => Math.round(e.getBoundingClientRect().top)"
    before = card.evaluate(top)
    assert 0 < before < 120
    with tab.page.expect_response("**/data/plugin/memest/overview*"):
        tab.page.locator(".reload-button").click()
    expect(tab.get("run")).to_have_attribute("aria-busy", "false")
    expect(tab.get("predicted-chart")).to_be_attached()
    assert card.evaluate(top) == before
    expect(tab.get("layers-find")).to_have_value("dense")
    assert paths(tab) == [DENSE]


@pytest.mark.parametrize("width", [1024, 1500, 3840])
def test_the_page_is_as_wide_as_the_window(tab: Tab, width: int) -> None:
    tab.page.set_viewport_size({"width": width, "height": 1100})
    try:
        root = tab.frame.locator("html")
        expect(tab.get("layer-table")).to_be_visible()
        assert root.evaluate("e => e.scrollWidth - e.clientWidth") <= 0
        tab.inner.wait_for_function("(width) => Math.abs(innerWidth - width) < 40", arg=width)
        beside = """(alive) => {
            const step = alive.parentNode.querySelector("#step");
            return alive.getBoundingClientRect().top === step.getBoundingClientRect().top;
        }"""
        assert tab.frame.locator("#alive").evaluate(beside) == (width > 2200)
    finally:
        tab.page.set_viewport_size({"width": 1500, "height": 1100})


def test_no_name_is_too_long_or_taken_for_markup(tab: Tab) -> None:
    tab.page.set_viewport_size({"width": 1024, "height": 1100})
    try:
        tab.go(run=ODD)
        tab.expect_run(ODD)
        expect(tab.get("predicted-chart")).to_be_visible()
        expect(tab.get("verdict-why")).to_contain_text("<b>ü")
        expect(tab.get("layer-row").first).to_contain_text("long_")
        assert tab.frame.locator("html").evaluate("e => e.scrollWidth - e.clientWidth") <= 0
        name = tab.get("run-option", run=ODD).locator(".name")
        expect(name).to_have_attribute("title", ODD)
        assert name.evaluate("e => e.getBoundingClientRect().height < 30")
    finally:
        tab.page.set_viewport_size({"width": 1500, "height": 1100})


def test_the_run_on_show_is_seen_among_the_runs_however_little_room_they_have(tab: Tab) -> None:
    tab.go(run="sgd")
    tab.expect_run("sgd")
    tab.page.set_viewport_size({"width": 480, "height": 1100})
    try:
        expect(tab.get("run-option", run="sgd")).to_be_in_viewport(ratio=1)
        expect(tab.get("run-option", run="adam")).not_to_be_in_viewport(ratio=1)
    finally:
        tab.page.set_viewport_size({"width": 1500, "height": 1100})


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("place", [{"run": "adam", "compare": "sgd"}, {"run": "nowhere"}], ids=str)
def test_nothing_keeps_anybody_out(tab: Tab, scheme: str, place: dict[str, str]) -> None:
    tab.page.evaluate(f"document.body.classList.toggle('dark-mode', {json.dumps(scheme == 'dark')})")
    tab.go(**place)
    if place["run"] == "adam":
        expect(tab.get("compare-table")).to_be_visible()
        expect(tab.get("predicted-chart")).to_be_visible()
    else:
        expect(tab.get("unknown-run")).to_be_visible()
    expect(tab.frame.locator("html")).to_have_attribute("data-theme", scheme)
    frame = tab.inner
    frame.evaluate(AXE.read_text())
    found = frame.evaluate("axe.run({resultTypes: ['violations']})")
    serious = [
        (one["id"], one["impact"], [node["target"] for node in one["nodes"]][:5])
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
    ]
    assert serious == []


def test_all_of_it_under_the_slow_loader_and_a_prefix_in_the_dark(
    browser: Browser, start_tensorboard: StartTensorBoard, logs: Path
) -> None:
    server = _serve(start_tensorboard, logs, "--load_fast=false", "--path_prefix", "/some/where")
    with opened(browser, server, color_scheme="dark") as tab:
        tab.go(run="adam", compare="sgd", layer=CONV, folds="", limit="RTX 3080 10GB")
        tab.expect_run("adam")
        expect(tab.get("compare-row", section="peaks", name="predicted")).to_be_visible()
        expect(tab.get("layer-row", path=CONV)).to_have_attribute("aria-selected", "true")
        expect(tab.get("verdict-sentence")).to_have_text(sample_estimate().fits("RTX 3080 10GB").sentence)
        expect(tab.frame.locator("html")).to_have_attribute("data-theme", "dark")
