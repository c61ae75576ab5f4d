"""JSON over HTTP: parameters in, answers and errors out."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tensorboard import errors
from tensorboard.backend import http_util
from tensorboard.util import tb_logging
from werkzeug import wrappers

JSON = "application/json; charset=utf-8"

WsgiApp = Callable[..., Any]

_logger = tb_logging.get_logger()


def json_app(route: Callable[[wrappers.Request], Any]) -> WsgiApp:
    """An app that answers with what `route` returns, and with `{"error": sentence}` where it raises.

    `tensorboard.errors` say which status; anything else is a fault of memest's own: status 500, and its trace goes to
    TensorBoard's log rather than to the browser.
    """

    @wrappers.Request.application
    def app(request: wrappers.Request) -> wrappers.Response:
        try:
            return respond(request, route(request))
        except errors.PublicError as error:
            return respond(request, {"error": str(error)}, error.http_code)
        except Exception as error:
            _logger.exception("memest could not answer %s", request.path)
            sentence = f"memest could not answer this: {error!r}. TensorBoard's log has the details."
            return respond(request, {"error": sentence}, 500)

    return app


def respond(request: wrappers.Request, data: Any, code: int = 200) -> wrappers.Response:
    """`data` as JSON. Serialized here because TensorBoard's own way copies it first, slow for long timelines."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    response: wrappers.Response = http_util.Respond(request, text, JSON, code=code)
    return response


def required(request: wrappers.Request, name: str) -> str:
    """A parameter that has to be there.

    Raises:
        tensorboard.errors.InvalidArgumentError: it is missing or empty.
    """
    value = request.args.get(name)
    if not value:
        raise errors.InvalidArgumentError(f"{request.path.rpartition('/')[2]} needs the parameter {name!r}.")
    return str(value)


def whole_number(request: wrappers.Request, name: str, default: int) -> int:
    """A parameter that is a whole number, `default` where it is missing.

    Raises:
        tensorboard.errors.InvalidArgumentError: it is something else.
    """
    value = request.args.get(name)
    if value is None:
        return default
    try:
        return int(value)
    except ValueError:
        raise errors.InvalidArgumentError(f"{name} is a whole number, not {value!r}.") from None
