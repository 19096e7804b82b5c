"""For supervisors: is it alive, can it answer, what does it do."""

from fastapi import APIRouter, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import PlainTextResponse

from tenet.version import __version__
from tenet.web.safety import BEARER
from tenet.web.schemas import Health
from tenet.web.service import Served, Service

router = APIRouter(tags=["health"])


@router.get("/healthz", responses={503: {"model": Health, "description": "it does not work"}})
async def healthz(service: Served, response: Response) -> Health:
    """Whether the process works; if not, start it anew."""
    return _health(service, response, "ok" if service.queue.alive else "failed")


@router.get("/readyz", responses={503: {"model": Health, "description": "not yet, or not now"}})
async def readyz(service: Served, response: Response) -> Health:
    """Whether it can answer now: the model is loaded, the store can be read, its classes are encoded.

    A class that this model cannot encode is left out and counted in `left_out`.
    """
    status = "ok" if service.ready and service.queue.alive else "starting"
    try:
        await run_in_threadpool(service.library.store.revision)
    except Exception:  # whatever the store's driver raises
        status = "failed"
    return _health(service, response, status)


@router.get("/metrics", response_class=PlainTextResponse, dependencies=[BEARER])
async def metrics(service: Served) -> Response:
    """Counters in Prometheus' text format."""
    return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _health(service: Service, response: Response, status: str) -> Health:
    response.status_code = 200 if status == "ok" else 503
    name, left_out = service.model.name, service.left_out
    return Health(status=status, model=name, version=__version__, left_out=left_out)  # type: ignore[arg-type]
