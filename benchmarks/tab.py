"""How soon the Memory tab shows something, and how smoothly long tables scroll and long curves zoom.

python -m benchmarks.tab [--runs 200] [--repeats 5] [--demo runs]

Log directories are written: of many runs, of a model of 10,000 layers, of a profile of a million events. A TensorBoard
is started on each, and on the demo's runs where they are there, and a real Chromium opens the tab. Times until
something shows count from the moment the tab's own frame begins to load; what TensorBoard's page takes before that is
not memest's. Of scrolling and zooming it tells the time from one frame to the next, which on a busy machine is other
processes' doing, too, and what of the processor's time the page's thread took for each: a screen of 60 frames a second
leaves 16.7 ms.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import tempfile
from dataclasses import asdict, dataclass
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

FRAMES = 200
EVENTS = 1_000_000

# Does something in every frame; gives the milliseconds from each to the next.
_EACH_FRAME = """(element, [act, frames]) => new Promise((done) => {
    const between = [], each = eval(act);
    let last = performance.now();
    const frame = (now) => {
        between.push(now - last);
        last = now;
        if (between.length > frames) done(between.slice(1));
        else { each(element.renderRoot, between.length); requestAnimationFrame(frame); }
    };
    requestAnimationFrame(frame);
})"""

# Three rows a frame: fast, as with a flick of two fingers.
_SCROLL = "(root) => { root.querySelector('.scroller').scrollTop += 90; }"

# In for a while, and out again.
_ZOOM = """(root, n) => {
    const over = root.querySelector('.u-over'), { left, top, width } = over.getBoundingClientRect();
    const deltaY = n % 80 < 40 ? -50 : 50, clientX = left + 0.6 * width, clientY = top + 50;
    over.dispatchEvent(new WheelEvent('wheel', { deltaY, clientX, clientY, bubbles: true, cancelable: true }));
}"""


@dataclass(frozen=True)
class Motion:
    """How smooth something is, in milliseconds.

    Attributes:
        median: from one frame to the next.
        most_of_all: the same; 19 of 20 are no longer.
        work: of the processor's time, what the page's thread took for a frame.
    """

    median: float
    most_of_all: float
    work: float


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


def moved(browser: Browser, logs: Path, element: str, act: str, **place: str) -> Motion:
    """What comes of doing `act`, a function in JavaScript, to an element of the tab in every frame."""
    with tensorboard_process(logs) as server, opened(browser, server) as tab:
        tab.go(**place)
        shown = tab.frame.locator(element)
        shown.wait_for(timeout=PATIENCE)
        shown.scroll_into_view_if_needed()
        # Until everything else on the page is there.
        tab.frame.locator("[data-testid=run][aria-busy=false]").wait_for(timeout=PATIENCE)
        tab.page.wait_for_load_state("networkidle")
        browser.start_tracing(page=tab.page, categories=["toplevel"])
        between = sorted(shown.evaluate(_EACH_FRAME, [act, FRAMES]))
        trace = json.loads(browser.stop_tracing())
        return Motion(statistics.median(between), between[int(0.95 * len(between))], _work(trace) / len(between))


def _work(trace: dict[str, Any]) -> float:
    """Milliseconds of the processor's time that the busiest page's main thread took."""
    events = trace["traceEvents"]
    main = {
        (event["pid"], event["tid"])
        for event in events
        if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"
    }
    took: dict[int, float] = {}
    for event in events:
        if event["name"] == "ThreadControllerImpl::RunTask" and (event["pid"], event["tid"]) in main:
            took[event["pid"]] = took.get(event["pid"], 0) + event.get("tdur", 0) / 1000
    return max(took.values())


def main() -> None:
    """Measures, prints a table and writes JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--demo", type=Path, default=Path("runs"), help="the demo's log directory (default: runs)")
    parser.add_argument("--json", type=Path, default=Path("build/tab.json"))
    arguments = parser.parse_args()
    seen: dict[str, list[float]] = {}
    motions: dict[str, Motion] = {}
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        many, large, long = (Path(place) / name for name in ("many", "large", "long"))
        for n in range(arguments.runs):
            with RunWriter(many / f"run-{n}") as writer:
                writer.write_estimate(sample_estimate(limit_bytes=2**33))
                writer.write_peaks(sample_peaks(steps=100))
                writer.write_profile(sample_profile(events=5000))
        with RunWriter(large / "large") as writer:
            writer.write_estimate(large_estimate())
        with RunWriter(long / "long") as writer:
            writer.write_estimate(sample_estimate())
            writer.write_profile(sample_profile(events=EVENTS))
        browser = playwright.chromium.launch(executable_path=find_browser(), args=QUIET)
        if arguments.demo.is_dir():
            seen["the demo's runs"] = first_seen(browser, arguments.demo, arguments.repeats)
        seen[f"{arguments.runs} runs"] = first_seen(browser, many, arguments.repeats)
        layers = {"tree": "list", "card": "layers"}
        motions["10,000 layers scroll"] = moved(browser, large, "memest-layer-table", _SCROLL, **layers)
        motions["a million events zoom"] = moved(browser, long, "[data-testid=measured-chart]", _ZOOM, card="step")
        browser.close()
    bundle = len(gzip.compress((default_folder() / ENTRY).read_bytes()))
    table = Table(title="The Memory tab")
    table.add_column("what")
    table.add_column("measured", justify="right")
    for what, milliseconds in seen.items():
        table.add_row(f"verdict of {what}, first opening", f"{milliseconds[0]:.0f} ms")
        table.add_row("the same, median of all", f"{statistics.median(milliseconds):.0f} ms")
    for what, motion in motions.items():
        table.add_row(f"{what}, frame to frame, median", f"{motion.median:.1f} ms")
        table.add_row("the same, 95th percentile", f"{motion.most_of_all:.1f} ms")
        table.add_row("processor time of the page's thread for each", f"{motion.work:.1f} ms")
    table.add_row("bundle, compressed", f"{bundle:,} B")
    console().print(table)
    moving = {what: asdict(motion) for what, motion in motions.items()}
    result = {"verdict_ms": seen, "moving_ms": moving, "bundle_bytes": bundle, **about()}
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
