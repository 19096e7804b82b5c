"""Plain answers below the routes: errors as JSON in one shape, without a stack trace."""

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

DISCARD_SECONDS = 10.0
"""For a body that nobody wants."""


def error_response(
    status: int, code: str, message: str, headers: Mapping[str, str] | None = None
) -> Response:
    """`{"error": {"code": …, "message": …}}`."""
    text = json.dumps(
        {"error": {"code": code, "message": " ".join(message.split())[:500]}}, ensure_ascii=False
    )
    return Response(text, status, dict(headers or {}), "application/json")


async def send_error(
    scope: Scope, receive: Receive, send: Send, status: int, code: str, message: str, unread: bool = False
) -> None:
    """The same from within a middleware. `unread`: nobody read the request's body, and it is thrown away as
    it comes; most clients send all of it before they read an answer, and would see a broken connection."""
    if unread:
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(_throw_away(receive), DISCARD_SECONDS)
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    if status == 503:
        headers["Retry-After"] = "1"
    await error_response(status, code, message, headers)(scope, receive, send)


async def _throw_away(receive: Receive) -> None:
    more = True
    while more:
        more = (await receive()).get("more_body", False)
