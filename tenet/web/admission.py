"""What is let in: so many requests, so many bytes, in so much time; and every answer is counted.

The body of a request that does not fit is not kept, so a crowd costs no memory.
"""

import asyncio
import logging
import time

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tenet.web.answers import send_error
from tenet.web.limits import MEGABYTE, Limits
from tenet.web.metrics import Metrics

LARGE = ("/v1/jobs", "/v1/bank")
"""Paths that take an archive."""
log = logging.getLogger("tenet.web")


class Watch:
    """Counts requests, and turns what nobody expected into an answer without a stack trace."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = 0

        async def counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        start = time.perf_counter()
        self._metrics.open.inc()
        try:
            await self._app(scope, receive, counted)
        except Exception:
            log.exception("%s %s failed", scope["method"], scope["path"].encode("unicode_escape").decode())
            if status:
                raise
            await send_error(scope, receive, counted, 500, "failed", "the service failed; its log says why")
        finally:
            self._metrics.open.dec()
            # The route's pattern and not its path: a stranger's paths shall not become our labels.
            route = getattr(scope.get("route"), "path", "other")
            method = scope["method"] if scope["method"] in ("GET", "POST", "PATCH", "DELETE") else "other"
            self._metrics.requests.labels(route, method, str(status)).inc()
            self._metrics.seconds.labels(route).observe(time.perf_counter() - start)


class Admission:
    """Bounds the bodies of requests: their size, their number, their time."""

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self._app, self._limits = app, limits
        self._requests = self._bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS", "DELETE"):
            await self._app(scope, receive, send)
            return
        most = self._limits.archive if scope["path"] in LARGE else self._limits.upload
        told = Headers(scope=scope).get("content-length", "")
        size = int(told) if told.isdecimal() and len(told) < 16 else most
        if size > most:
            text = f"expected at most {most // MEGABYTE} MB in a request, got {size // MEGABYTE}; send less"
            await send_error(scope, receive, send, 413, "too_large", text, unread=True)
            return
        full = self._requests >= self._limits.open_requests
        if full or (self._requests and self._bytes + size > self._limits.open_bytes):
            text = "the service is busy with other requests; ask again"
            await send_error(scope, receive, send, 503, "busy", text, unread=True)
            return
        self._requests += 1
        self._bytes += size
        try:
            await self._app(scope, self._bounded(receive, most), send)
        finally:
            self._requests -= 1
            self._bytes -= size

    def _bounded(self, receive: Receive, most: int) -> Receive:
        """`receive` that ends a body which is too long or too slow."""
        came, complete = 0, False
        start = time.monotonic()

        async def bounded() -> Message:
            nonlocal came, complete
            if complete:
                return await receive()
            # What came already earns time: a large request may last, one that trickles may not.
            left = start + self._limits.body_seconds + came / MEGABYTE * self._limits.megabyte_seconds
            try:
                message = await asyncio.wait_for(receive(), max(0.0, left - time.monotonic()))
            except asyncio.TimeoutError:  # Python 3.10 does not call it TimeoutError
                raise HTTPException(408, "the request took too long to arrive; ask again") from None
            came += len(message.get("body", b""))
            complete = not message.get("more_body", False)
            if came > most:
                raise HTTPException(413, f"expected at most {most // MEGABYTE} MB in a request; send less")
            return message

        return bounded
