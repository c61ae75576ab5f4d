"""The frontend's files, and what stands in for them."""

from __future__ import annotations

from pathlib import Path

import pytest
import werkzeug.test
from tensorboard.backend import application
from tensorboard.plugins import base_plugin

import tensorboard_plugin_memest.plugin
from tensorboard_plugin_memest.plugin import static, unbuilt
from tensorboard_plugin_memest.plugin.plugin import MemestPlugin


@pytest.fixture
def get(tmp_path, open_logdir):
    """Asks for a file of the frontend in `tmp_path / "static"`; beside that folder lies a secret."""
    (tmp_path / "secret.js").write_text("secret")
    (tmp_path / "static").mkdir()
    provider = open_logdir(tmp_path)
    plugin = MemestPlugin(base_plugin.TBContext(data_provider=provider), tmp_path / "static")
    client = werkzeug.test.Client(application.TensorBoardWSGI([plugin], "", provider))
    return lambda address: client.get(f"/data/plugin/memest/{address}")


@pytest.mark.parametrize(
    ("name", "content_type"),
    [
        ("index.js", "text/javascript; charset=utf-8"),
        ("assets/chart-Bx81_a.js", "text/javascript; charset=utf-8"),
        ("assets/index-0f.css", "text/css; charset=utf-8"),
        ("index.js.map", "application/json"),
        ("icon.svg", "image/svg+xml; charset=utf-8"),
        ("font.woff2", "font/woff2"),
        ("LICENSES.txt", "text/plain; charset=utf-8"),
        ("thing.bin", "application/octet-stream"),
    ],
)
def test_files(get, tmp_path, name, content_type):
    path = tmp_path / "static" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"let x = '\xc3\x9f';")
    response = get(name)
    assert response.status_code == 200
    assert response.get_data() == b"let x = '\xc3\x9f';"
    assert response.headers["Content-Type"] == content_type
    assert response.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    "name",
    [
        "../secret.js",
        "assets/../../secret.js",
        "..%2fsecret.js",
        "%2e%2e/secret.js",
        "..\\secret.js",
        "/etc/passwd",
        "//etc/passwd",
        "index.js%00.css",
        "assets",
        "",
        "missing.js",
    ],
)
def test_nothing_else(get, tmp_path, name):
    (tmp_path / "static" / "assets").mkdir()
    response = get(name)
    assert response.status_code == 404
    assert b"secret" not in response.get_data().replace(b"secret.js", b"")


def test_a_missing_entry_is_a_module_that_explains_itself(get):
    response = get("index.js")
    assert response.status_code == 200
    assert response.headers["Content-Type"] == "text/javascript; charset=utf-8"
    assert response.get_data(as_text=True) == unbuilt.MODULE


def test_the_module_needs_nothing_from_elsewhere():
    assert "export async function render()" in unbuilt.MODULE
    assert "://" not in unbuilt.MODULE
    assert "innerHTML" not in unbuilt.MODULE
    assert "pip install ." in unbuilt.MODULE


def test_the_folder_is_the_packages():
    package = Path(tensorboard_plugin_memest.plugin.__file__).resolve().parents[1]
    assert static.default_folder() == package / "static"
