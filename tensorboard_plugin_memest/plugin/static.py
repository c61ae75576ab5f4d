"""The files of the built frontend."""

from __future__ import annotations

from pathlib import Path

from tensorboard import errors
from tensorboard.backend import http_util
from werkzeug import wrappers
from werkzeug.security import safe_join

from tensorboard_plugin_memest.plugin import unbuilt
from tensorboard_plugin_memest.plugin.http import respond

ENTRY = "index.js"

# Not from `mimetypes`: what that says depends on the machine, and browsers refuse a module of a wrong type.
_TYPES = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".html": "text/html",
    ".json": "application/json",
    ".map": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".woff2": "font/woff2",
    ".txt": "text/plain",
}


def default_folder() -> Path:
    """Where the build of the package puts the frontend."""
    return Path(__file__).resolve().parent.parent / "static"


def serve_file(request: wrappers.Request, folder: Path, name: str) -> wrappers.Response:
    """The file `name` of `folder`; for a missing `index.js` a page that says so, for any other missing file 404."""
    content = _read(folder, name)
    if content is None and name == ENTRY:
        content = unbuilt.MODULE.encode()
    if content is None:
        return respond(request, {"error": str(errors.NotFoundError(f"the frontend has no file {name!r}."))}, 404)
    content_type = _TYPES.get(Path(name).suffix, "application/octet-stream")
    response: wrappers.Response = http_util.Respond(request, content, content_type)
    return response


def _read(folder: Path, name: str) -> bytes | None:
    path = safe_join(str(folder), name)
    if path is None or "\0" in path:
        return None
    try:
        return Path(path).read_bytes()
    except OSError:
        return None
