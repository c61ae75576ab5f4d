"""The page that stands in for a frontend that was not built, in a real browser inside a real TensorBoard."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import FrameLocator, expect

from tensorboard_plugin_memest.log.writer import RunWriter
from tensorboard_plugin_memest.memory.comparison import compare
from tests.events import content, string_tensor, write_raw
from tests.installation import copy_without_frontend, tensorboard_of
from tests.samples import sample_estimate, sample_peaks


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[str]:
    """TensorBoard with a copy of the package that has no frontend, under a prefix."""
    place = tmp_path_factory.mktemp("unbuilt")
    copy_without_frontend(place)
    logs = place / "logs"
    with RunWriter(logs / "<b>run</b>") as writer:
        writer.write_estimate(sample_estimate())
        writer.write_peaks(sample_peaks())
        write_raw(logs / "<b>run</b>" / "memest", "peaks/GPU:0", content("peaks"), string_tensor(b"junk"))
    with tensorboard_of(place, logs, "--path_prefix", "/x") as address:
        yield address


def color(frame: FrameLocator, selector: str, name: str) -> tuple[int, ...]:
    text = frame.locator(selector).evaluate(f"element => getComputedStyle(element).{name}")
    return tuple(int(part) for part in text.removeprefix("rgb(").removesuffix(")").split(","))


def test_it_says_what_is_wrong_and_what_data_there_is(server, browser):
    page = browser.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if "Content Security" in message.text else None)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if request.frame != page.main_frame else None)
    page.goto(f"{server}#memest")
    frame = page.frame_locator("iframe").first
    expect(frame.locator("h1")).to_have_text("The page of this tab was not built", timeout=60_000)
    expect(frame.locator("pre")).to_have_text("pip install .\nmake frontend")
    expect(frame.locator("main")).to_contain_text("1 run holds records of memest")
    measured = compare(sample_estimate(), sample_peaks()).step_peak_bytes
    expect(frame.locator("li")).to_have_text(
        f"<b>run</b>: predicted peak {sample_estimate().peak_bytes} bytes; measured peak {measured} bytes; "
        "The record 'peaks/GPU:0' could not be read. Its 4 bytes are no peaks that memest wrote "
        "(error: Error -3 while decompressing data: incorrect header check)."
    )
    light = color(frame, "html", "backgroundColor"), color(frame, "body", "color")
    page.evaluate("document.body.classList.add('dark-mode')")
    expect(frame.locator("html")).not_to_have_css("background-color", "rgb({}, {}, {})".format(*light[0]))
    dark = color(frame, "html", "backgroundColor"), color(frame, "body", "color")
    assert sum(light[0]) > sum(light[1]) + 3 * 150, "dark on light"
    assert sum(dark[1]) > sum(dark[0]) + 3 * 150, "light on dark"
    assert errors == []
    assert [url for url in asked if not url.startswith(server)] == []
    assert f"{server}data/plugin/memest/runs" in asked
    page.close()
