"""The app: a model and a store in, an ASGI application out."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from tenet.errors import TenetError
from tenet.predictor import Tenet
from tenet.version import __version__
from tenet.web import wording
from tenet.web.admission import Admission, Watch
from tenet.web.answers import error_response
from tenet.web.failures import BusyError, status_and_code
from tenet.web.fields import ONLY_KNOWN_FIELDS
from tenet.web.limits import Limits
from tenet.web.routes import bank, classes, detect, exports, health, jobs, page
from tenet.web.safety import BEARER, Guard
from tenet.web.service import Service

ROUTERS = (
    classes.router,
    detect.router,
    jobs.router,
    exports.router,
    bank.router,
    health.router,
    page.router,
)
CODES = {400: "bad_request", 404: "not_found", 405: "wrong_method", 408: "too_slow", 413: "too_large"}
ABOUT = (
    "Show the detector a few pictures of a new thing, find it in others. Boxes are [x1, y1, x2, y2] in "
    "pixels of the picture that was sent. Every error is `{error: {code, message}}`; a 503 says in "
    "Retry-After when to ask again."
)


def create_app(
    model: Tenet, where: Path | str, token: str | None = None, limits: Limits | None = None
) -> FastAPI:
    """The service and its page.

    where  the store: a file, or postgresql://…
    token  demanded of every request but those for the page itself and the probes; None: of nobody, and then
           only requests to this machine's own names are answered. The name is what the request says: on an
           address that others reach, give a token (`tenet serve` insists on it)
    """
    limits = limits or Limits()
    service = Service(model, where, limits)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        service.start()
        try:
            yield
        finally:
            service.close()

    # The usual pages of documentation load scripts from another host; /openapi.json is ours.
    app = FastAPI(
        title="tenet",
        version=__version__,
        description=ABOUT,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    app.state.service = service
    for router in ROUTERS:
        demands = [BEARER, ONLY_KNOWN_FIELDS] if router.prefix.startswith("/v1") else []
        app.include_router(router, dependencies=demands)
    app.add_exception_handler(TenetError, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _other)
    # The last one added is the outermost.
    app.add_middleware(Admission, limits=limits)
    app.add_middleware(Watch, metrics=service.metrics)
    app.add_middleware(Guard, token=token)
    return app


async def _refused(_request: Request, error: Any) -> Response:
    status, code = status_and_code(error)
    headers = {"Retry-After": str(error.retry_after)} if isinstance(error, BusyError) else {}
    return error_response(status, code, str(error), headers)


async def _invalid(_request: Request, error: Any) -> Response:
    return error_response(422, "bad_input", wording.invalid(error.errors()[0]))


async def _other(request: Request, error: Any) -> Response:
    headers, status = error.headers or {}, error.status_code
    allowed = headers.get("Allow", "")
    text = wording.refused(status, str(error.detail), request.method, request.url.path, allowed)
    return error_response(status, CODES.get(status, "refused"), text, headers)
