"""The Chromium that the browser tests drive: finds one, or installs one.

python tools/browser.py             installs one if there is none, and prints where it is
python tools/browser.py --find      only looks; exits with 1 if there is none
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_browser() -> str | None:
    """The path of a Chromium that starts: one on PATH, or else Playwright's own; None if there is neither."""
    for name in NAMES:
        path = shutil.which(name)
        if path and _starts(path):
            return path
    path = _playwright_browser()
    return path if path and _starts(path) else None


def install_browser() -> str:
    """Installs a Chromium, with apt-get where that can work and with Playwright otherwise.

    Returns:
        Its path.

    Raises:
        SystemExit: neither way led to a browser; the message says what to do.
    """
    ways = [[sys.executable, "-m", "playwright", "install", "chromium"]]
    if shutil.which("apt-get") and os.geteuid() == 0:
        # Debian's package brings the shared libraries along that a downloaded browser would still lack.
        ways.insert(0, ["sh", "-c", "apt-get update -q && apt-get install -q -y --no-install-recommends chromium"])
    for way in ways:
        print("Installing a browser:", " ".join(way), file=sys.stderr, flush=True)
        # Standard output is for the path alone.
        subprocess.run(way, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, stdout=sys.stderr, check=False)
        if path := find_browser():
            return path
    raise SystemExit(
        "No Chromium could be installed, and the browser tests need one. Install Chromium or Google Chrome so that "
        f"one of {', '.join(NAMES)} is on PATH, and try again."
    )


def _playwright_browser() -> str | None:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).exists() else None


def _starts(path: str) -> bool:
    # Ubuntu's `chromium-browser` is a script that only says "install the snap", and a downloaded browser may lack
    # libraries: a file that is there need not be a browser.
    try:
        ran = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return ran.returncode == 0 and "Chrom" in ran.stdout


if __name__ == "__main__":
    found = find_browser()
    if found is None and "--find" in sys.argv[1:]:
        raise SystemExit("There is no Chromium on PATH and none of Playwright's.")
    print(found or install_browser())
