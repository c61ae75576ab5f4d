"""A real Chromium for the tests of this folder."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.tab import Tab
from tools.browser import find_browser

# What a fresh profile would otherwise ask of servers elsewhere; and no graphics card.
QUIET = [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-gpu",
]


# For the package and not the session: while Playwright is started, an event loop counts as running in this thread.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    path = find_browser()
    assert path, "There is no browser; `python tools/browser.py` installs one."
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=QUIET)
        yield running
        running.close()


@contextlib.contextmanager
def opened(browser: Browser, server: str, *, color_scheme: str = "light") -> Iterator[Tab]:
    """A page for the tab of a TensorBoard; checks in the end that nothing went wrong unseen in it."""
    context = browser.new_context(viewport={"width": 1500, "height": 1100}, color_scheme=color_scheme)  # type: ignore[arg-type]
    tab = Tab(context.new_page(), server)
    yield tab
    context.close()
    assert tab.troubles == []
    assert tab.foreign == []


OpenTab = Callable[..., Tab]


@pytest.fixture
def open_tab(browser: Browser) -> Iterator[OpenTab]:
    """Opens the Memory tab of a TensorBoard, as often as it is called."""
    with contextlib.ExitStack() as tabs:

        def open_one(server: str, *, run: str = "", limit: str = "", color_scheme: str = "light") -> Tab:
            tab = tabs.enter_context(opened(browser, server, color_scheme=color_scheme))
            tab.open(run=run, limit=limit)
            return tab

        yield open_one
