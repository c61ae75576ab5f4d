"""The Memory tab as a person sees it: what is on screen, found by what it is."""

from __future__ import annotations

import re
from urllib.parse import quote, urlsplit

from playwright.sync_api import ConsoleMessage, Frame, FrameLocator, Locator, Page, expect

from tensorboard_plugin_memest.memory.units import format_bytes

# TensorBoard loads its other plugins first, and reads the log directory while it already answers.
PATIENCE = 60_000  # ms


class Tab:
    """The tab in a page of its own.

    Attributes:
        page: the page, TensorBoard's own.
        frame: the tab's frame in it.
        server: TensorBoard's address.
        troubles: what the console told of: errors, and breaches of the Content-Security-Policy.
        asked: addresses of all that the page asked for.
    """

    def __init__(self, page: Page, server: str) -> None:
        self.page = page
        self.server = server
        self.troubles: list[str] = []
        self.asked: list[str] = []
        page.on("pageerror", lambda error: self.troubles.append(str(error)))
        page.on("console", self._hear)
        page.on("request", lambda request: self.asked.append(request.url))

    def _hear(self, message: ConsoleMessage) -> None:
        where = str(message.location.get("url"))
        # TensorBoard's own page asks for its fonts beside the path prefix and not below it.
        own_font = urlsplit(where).path.startswith("/font-roboto/")
        if (message.type == "error" or "Content Security" in message.text) and not own_font:
            self.troubles.append(f"{message.text} ({where})")

    @property
    def foreign(self) -> list[str]:
        """What was asked of anyone but this TensorBoard."""
        origin = urlsplit(self.server)._replace(path="/", query="", fragment="").geturl()
        return [url for url in self.asked if not url.startswith((origin, "data:", "blob:"))]

    @property
    def frame(self) -> FrameLocator:
        return self.page.frame_locator("iframe[src*='name=memest']")

    @property
    def inner(self) -> Frame:
        """The tab's frame, to run scripts in."""
        return next(frame for frame in self.page.frames if "name=memest" in frame.url)

    def open(self, *, run: str = "", limit: str = "") -> None:
        """Goes to the tab, as a link to it would."""
        place = "".join(f"&p.memest.{name}={quote(value)}" for name, value in (("run", run), ("limit", limit)) if value)
        self.page.goto(f"{self.server}#memest{place}")

    def go(self, **place: str) -> None:
        """Goes to a place in the tab, as a link to it would: what is not named is as it is by default."""
        parts = "".join(f"&p.memest.{name}={quote(value, safe='')}" for name, value in place.items())
        self.page.goto(f"{self.server}#memest{parts}")

    def expect_run(self, name: str) -> None:
        """Waits until the run `name` is on show, its curves and peaks included."""
        main = self.frame.get_by_test_id("run")
        expect(main).to_have_attribute("data-run", name, timeout=PATIENCE)
        expect(main).to_have_attribute("aria-busy", "false", timeout=PATIENCE)
        expect(self.get("verdict-sentence")).to_be_visible(timeout=PATIENCE)

    def get(self, test_id: str, **attributes: str) -> Locator:
        """The elements with a test id, and with these data attributes: `get("layer-row", path="dense")`."""
        more = "".join(f'[data-{name}="{value}"]' for name, value in attributes.items())
        return self.frame.locator(f'[data-testid="{test_id}"]{more}')

    def expect_bytes(self, element: Locator, number: int) -> None:
        """Expects exactly `number` bytes behind what `element` shows, and in view what Python makes of them."""
        figure = element if element.get_attribute("data-bytes") is not None else element.locator("[data-bytes]")
        expect(figure).to_have_attribute("data-bytes", str(number))
        expect(figure).to_have_attribute("title", f"{number:,} B")
        assert squeezed(figure) == format_bytes(number).replace(" ", "")


def squeezed(element: Locator) -> str:
    """The text of `element` without any white space: the gap before a unit is a matter of style."""
    return re.sub(r"\s+", "", element.text_content() or "")
