"""How soon the Memory tab shows something, and how smoothly ten thousand layers scroll, in a real Chromium.

python -m benchmarks.tab [--runs 200] [--repeats 5]

A log directory of many runs and one with a model of 10,000 layers are written, a TensorBoard is started on each, and
the tab is opened again and again. Times count from the moment the tab's own frame begins to load; what TensorBoard's
page takes before that is not memest's.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, sync_playwright
from rich.table import Table

from benchmarks.about import about, console
from tensorboard_plugin_memest.log.writer import RunWriter
from tensorboard_plugin_memest.plugin.static import ENTRY, default_folder
from tests.browser.conftest import QUIET, opened
from tests.browser.tab import PATIENCE
from tests.large import large_estimate
from tests.samples import sample_estimate, sample_peaks, sample_profile
from tests.server import tensorboard_process
from tools.browser import find_browser

# How long the table of layers takes to follow a scroll.
_SCROLL = """async table => {
    const scroller = table.renderRoot.querySelector('.scroller'), took = [];
    for (let n = 0; n < 200; n++) {
        scroller.scrollTop += 90;
        await new Promise(requestAnimationFrame);
        const start = performance.now();
        table.requestUpdate();
        await table.updateComplete;
        table.getBoundingClientRect();
        took.push(performance.now() - start);
    }
    return took;
}"""


def first_seen(browser: Browser, logs: Path, repeats: int) -> list[float]:
    """Milliseconds until the verdict is there, opening the tab `repeats` times; the first has the server read all.

    They are seen from outside, so a little too many.
    """
    found = []
    with tensorboard_process(logs) as server:
        for _ in range(repeats):
            with opened(browser, server) as tab:
                tab.go()
                tab.get("verdict-sentence").wait_for(timeout=PATIENCE)
                found.append(tab.inner.evaluate("() => performance.now()"))
    return found


def scrolling(browser: Browser, logs: Path) -> list[float]:
    """Milliseconds that the layer table takes to follow each of 200 scrolls."""
    with tensorboard_process(logs) as server, opened(browser, server) as tab:
        tab.go(tree="list", card="layers")
        tab.get("layer-row").first.wait_for(timeout=PATIENCE)
        took: list[float] = tab.frame.locator("memest-layer-table").evaluate(_SCROLL)
        return took


def main() -> None:
    """Measures, prints a table and writes JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path, default=Path("build/tab.json"))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        many, large = Path(place) / "many", Path(place) / "large"
        for n in range(arguments.runs):
            with RunWriter(many / f"run-{n}") as writer:
                writer.write_estimate(sample_estimate(limit_bytes=2**33))
                writer.write_peaks(sample_peaks(steps=100))
                writer.write_profile(sample_profile(events=5000))
        with RunWriter(large / "large") as writer:
            writer.write_estimate(large_estimate())
        browser = playwright.chromium.launch(executable_path=find_browser(), args=QUIET)
        seen = first_seen(browser, many, arguments.repeats)
        scrolled = sorted(scrolling(browser, large))
        browser.close()
    bundle = len(gzip.compress((default_folder() / ENTRY).read_bytes()))
    result: dict[str, Any] = {
        "runs": arguments.runs,
        "verdict_ms": seen,
        "scroll_ms": {
            "median": statistics.median(scrolled),
            "95th percentile": scrolled[int(0.95 * len(scrolled))],
            "most": scrolled[-1],
        },
        "bundle_bytes": bundle,
        **about(),
    }
    table = Table(title="The Memory tab")
    table.add_column("what")
    table.add_column("measured", justify="right")
    table.add_row(f"verdict of {arguments.runs} runs, first opening", f"{seen[0]:.0f} ms")
    table.add_row("the same, median of all", f"{statistics.median(seen):.0f} ms")
    for name, milliseconds in result["scroll_ms"].items():
        table.add_row(f"a scroll through 10,000 layers, {name}", f"{milliseconds:.1f} ms")
    table.add_row("bundle, compressed", f"{bundle:,} B")
    console().print(table)
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
