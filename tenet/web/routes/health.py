"""For supervisors: is it alive, can it answer, what does it do."""

from typing import Annotated

from fastapi import APIRouter, Depends, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import PlainTextResponse

from tenet.version import __version__
from tenet.web.schemas import Health
from tenet.web.service import Service, service_of

router = APIRouter(tags=["health"])
Served = Annotated[Service, Depends(service_of)]


@router.get("/healthz")
async def healthz(service: Served, response: Response) -> Health:
    """Whether the process works; if not, start it anew."""
    response.status_code = 200 if service.queue.alive else 503
    status = "ok" if service.queue.alive else "failed"
    return Health(status=status, model=service.model.name, version=__version__)  # type: ignore[arg-type]


@router.get("/readyz", responses={503: {"model": Health, "description": "not yet, or not now"}})
async def readyz(service: Served, response: Response) -> Health:
    """Whether it can answer now: the model is loaded, the store can be read, every class is encoded."""
    status = "ok" if service.ready and service.queue.alive else "starting"
    try:
        await run_in_threadpool(service.library.store.revision)
    except Exception:  # whatever the store's driver raises
        status = "failed"
    response.status_code = 200 if status == "ok" else 503
    return Health(status=status, model=service.model.name, version=__version__)  # type: ignore[arg-type]


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(service: Served) -> Response:
    """Counters in Prometheus' text format."""
    return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")
