"""Plain answers below the routes: errors as JSON in one shape, without a stack trace."""

import json
from collections.abc import Mapping

from starlette.responses import Response
from starlette.types import Receive, Scope, Send


def error_response(
    status: int, code: str, message: str, headers: Mapping[str, str] | None = None
) -> Response:
    """`{"error": {"code": …, "message": …}}`."""
    text = json.dumps(
        {"error": {"code": code, "message": " ".join(message.split())[:500]}}, ensure_ascii=False
    )
    return Response(text, status, dict(headers or {}), "application/json")


async def send_error(
    scope: Scope, receive: Receive, send: Send, status: int, code: str, message: str
) -> None:
    """The same from within a middleware."""
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    if status == 503:
        headers["Retry-After"] = "1"
    await error_response(status, code, message, headers)(scope, receive, send)
