"""How the tab looks, in both themes, held against pictures that people have looked at.

Letters are blocks in them, the same on every machine; texts are other tests' business. `make looks` renews the
pictures: look at every one that changed before it is committed.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Browser, expect

from tensorboard_plugin_memest.log.writer import RunWriter
from tests.browser.blocks import only_blocks
from tests.browser.conftest import QUIET, opened
from tests.browser.pictures import differences
from tests.browser.tab import Tab
from tests.conftest import REPOSITORY, StartTensorBoard
from tests.integration.http import ask, wait_for
from tests.samples import sample_advice, sample_estimate, sample_peaks, sample_profile, sample_what_if
from tools.browser import find_browser

PICTURES = Path(__file__).parent / "looks"
CHANGED = REPOSITORY / "test-results" / "looks"
RENEW = "MEMEST_RENEW_LOOKS" in os.environ
CARDS = {
    "verdict": "memest-verdict-card",
    "phases": "memest-phase-bars",
    "timeline": "memest-step-card",
    "layers": "memest-layers-card",
    "what-if": "memest-what-if-card",
    "advice": "memest-advice-card",
}


@pytest.fixture(scope="module")
def tab(
    browser: Browser, start_tensorboard: StartTensorBoard, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Tab]:
    logs = tmp_path_factory.mktemp("looks")
    with RunWriter(logs / "adam") as writer:
        writer.write_estimate(sample_estimate(limit_bytes=9_975_061_544))
        writer.write_peaks(sample_peaks())
        writer.write_profile(sample_profile())
        writer.write_advice(sample_advice())
        writer.write_what_if(sample_what_if())
    server = start_tensorboard(logs)
    wait_for(lambda: ask(server, "runs")["runs"], lambda runs: len(runs) == 1)
    wait_for(lambda: ask(server, "what_if", run="adam")["what_if"], lambda found: found is not None)
    environment: dict[str, str | float | bool] = {**os.environ, **only_blocks(tmp_path_factory.mktemp("fonts"))}
    kind = browser.browser_type
    drawing = kind.launch(executable_path=find_browser(), args=[*QUIET, "--font-render-hinting=none"], env=environment)
    with opened(drawing, server) as tab:
        # All of the page at once: nothing that stays in view while one scrolls covers anything.
        tab.page.set_viewport_size({"width": 1240, "height": 4200})
        tab.go(run="adam", optimizer="SGD")
        tab.expect_run("adam")
        expect(tab.get("what-if-sentence")).to_be_visible()
        expect(tab.get("measured-chart")).to_be_visible()
        yield tab
    drawing.close()


def taken(tab: Tab, selector: str) -> Image.Image:
    # Browsers draw sliders as they like.
    sliders = tab.frame.locator("input[type='range']")
    shot = tab.frame.locator(selector).screenshot(animations="disabled", mask=[sliders], mask_color="#808080")
    return Image.open(io.BytesIO(shot))


def in_theme(tab: Tab, theme: str) -> None:
    tab.page.evaluate(f"document.body.classList.toggle('dark-mode', {str(theme == 'dark').lower()})")
    expect(tab.frame.locator("html")).to_have_attribute("data-theme", theme)
    tab.inner.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_each_card_looks_as_it_did(tab: Tab, theme: str) -> None:
    in_theme(tab, theme)
    wrong = {}
    for name, selector in CARDS.items():
        file = f"{name}-{theme}.png"
        picture = taken(tab, selector)
        if RENEW:
            PICTURES.mkdir(exist_ok=True)
            picture.convert("RGB").quantize(128, dither=Image.Dither.NONE).save(PICTURES / file, optimize=True)
        elif found := differences(Image.open(PICTURES / file), picture):
            CHANGED.mkdir(parents=True, exist_ok=True)
            picture.save(CHANGED / file)
            wrong[file] = found[:5]
    assert not wrong, f"Compare {CHANGED} with {PICTURES}; if the change is wanted, `make looks` renews them."


# What each of these does to the page, a picture must tell.
HARM = {
    "a panel is gone": ("memest-step-card", "section:last-of-type { display: none !important; }"),
    "a colour is another": ("memest-phase-bars", "[data-category='gradients'] { background: #7b1fa2 !important; }"),
    "a figure is gone": ("memest-verdict-card", "[data-testid='margin'] dd { visibility: hidden; }"),
    "a column is too wide": ("memest-layer-table", "td.output { padding-right: 60px !important; }"),
    "a button is gone": ("memest-changes-table", "button { visibility: hidden; }"),
}


@pytest.mark.parametrize("what", HARM)
def test_a_picture_tells_that(tab: Tab, what: str) -> None:
    element, style = HARM[what]
    in_theme(tab, "light")
    shown = tab.frame.locator(element)
    before = taken(tab, element)
    shown.evaluate(
        """(element, style) => {
            const harm = Object.assign(document.createElement("style"), { id: "harm", textContent: style });
            element.shadowRoot.append(harm);
        }""",
        style,
    )
    try:
        assert differences(before, taken(tab, element)), what
    finally:
        shown.evaluate("(element) => element.shadowRoot.querySelector('#harm').remove()")
    assert differences(before, taken(tab, element)) == []
