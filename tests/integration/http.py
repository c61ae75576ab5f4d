"""Asking a running TensorBoard."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from typing import Any


def get(address: str) -> tuple[int, str, bytes]:
    """Status, content type and body, whatever the status."""
    try:
        with urllib.request.urlopen(address, timeout=60) as response:
            return response.status, response.headers["Content-Type"], response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers["Content-Type"], error.read()


def ask(server: str, route: str, **parameters: Any) -> Any:
    """What one of memest's routes answers, with status 200."""
    status, content_type, body = get(f"{server}data/plugin/memest/{route}?{urllib.parse.urlencode(parameters)}")
    assert (status, content_type) == (200, "application/json; charset=utf-8"), body
    return json.loads(body)


def wait_for(look: Callable[[], Any], good: Callable[[Any], bool], seconds: float = 60) -> Any:
    """The first good thing that `look` gives: TensorBoard reads its log directory after it has begun to answer."""
    until = time.monotonic() + seconds
    while True:
        seen = look()
        if good(seen):
            return seen
        assert time.monotonic() < until, f"after {seconds} seconds still: {seen}"
        time.sleep(0.2)


def is_active(server: str) -> bool:
    """Whether TensorBoard shows the tab."""
    status, _, body = get(f"{server}data/plugins_listing")
    assert status == 200
    return bool(json.loads(body)["memest"]["enabled"])
