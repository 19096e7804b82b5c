"""Many pictures in the background: a zip archive, or the files of a folder."""

import shutil
import tempfile
from collections.abc import Iterator
from typing import Annotated, Any

from fastapi import APIRouter, File, Path, Query, Response, UploadFile
from starlette.concurrency import run_in_threadpool

from tenet.errors import InputError
from tenet.looks.request import asked_classes
from tenet.web.archives import archive_pictures, plain_name
from tenet.web.exports import Download, export
from tenet.web.failures import TooLargeError
from tenet.web.job_store import Job
from tenet.web.looking import picture_result
from tenet.web.routes.detect import Classes, Limit, Size, Threshold, Tiles, asked_of
from tenet.web.routes.exports import DOWNLOADS, as_response
from tenet.web.schemas import ERRORS, Format, JobInfo, JobList, JobResults, Score
from tenet.web.service import Served, Service

router = APIRouter(prefix="/v1/jobs", tags=["jobs"], responses=ERRORS)
Key = Annotated[str, Path(pattern=r"^[0-9a-f]{16}$", examples=["0123456789abcdef"])]


@router.post("", status_code=202)
async def start_job(
    service: Served,
    archive: Annotated[UploadFile | None, File(description="a zip archive of pictures")] = None,
    pictures: Annotated[list[UploadFile] | None, File(description="or pictures, up to 1000")] = None,
    threshold: Threshold = None,
    classes: Classes = None,
    size: Size = "auto",
    tiles: Tiles = True,
    limit: Limit = 300,
) -> JobInfo:
    """Look for the classes in many pictures. What was answered with 202 will be done, whatever happens."""
    asked = asked_of(threshold, classes, size, tiles, limit)
    names = asked_classes((await service.snapshot()).names, asked.classes)
    if (archive is None) == (not pictures):
        raise InputError("job: expected either an archive or pictures, got both or neither")
    options = {**vars(asked), "classes": list(names)}
    options["threshold"] = service.model.runtime.threshold if threshold is None else threshold
    found = _archived(service, archive) if archive is not None else _loose(service, pictures or [])
    key = await run_in_threadpool(service.job_store.create, options, found)
    service.jobs.wake()
    return _info(await run_in_threadpool(service.job_store.get, key))


@router.get("")
async def list_jobs(service: Served) -> JobList:
    """The newest hundred jobs."""
    return JobList(jobs=[_info(job) for job in await run_in_threadpool(service.job_store.newest)])


@router.get("/{key}")
async def get_job(service: Served, key: Key) -> JobInfo:
    """How far a job is."""
    return _info(await run_in_threadpool(service.job_store.get, key))


@router.delete("/{key}", status_code=204)
async def remove_job(service: Served, key: Key) -> Response:
    """Forget a job; one that is not done is given up."""
    await run_in_threadpool(service.job_store.remove, key)
    return Response(status_code=204)


@router.get("/{key}/results")
async def job_results(
    service: Served,
    key: Key,
    start: Annotated[int, Query(ge=0, le=10**9)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> JobResults:
    """What a job found so far, in the order of its pictures."""
    job = await run_in_threadpool(service.job_store.get, key)
    rows = await run_in_threadpool(service.job_store.results, key, start, limit)
    return JobResults.model_validate(
        {
            "total": job.done + job.failed,
            "pictures": [result for _, state, result in rows if state == "done"],
            "failed": [{"name": name, "message": text} for name, state, text in rows if state == "failed"],
        }
    )


@router.get("/{key}/export", response_class=Response, responses=DOWNLOADS)
async def export_job(
    service: Served, key: Key, format: Format, threshold: Annotated[Score | None, Query()] = None
) -> Response:
    """What a job found, as a file; with a threshold not below the job's own, only what reaches it."""

    def made() -> Download:
        options = service.job_store.get(key).options
        classes, least = options["classes"], float(options["threshold"])
        if threshold is not None and threshold < least:
            raise InputError(
                f"threshold: expected at least the job's own, {least:g}, below which nothing was kept; "
                f"got {threshold:g}; start a job with a lower one"
            )
        rows = service.job_store.results(key)
        found = [
            picture_result(result, classes, threshold or 0.0) for _, state, result in rows if state == "done"
        ]
        return export(found, format)

    return as_response(await run_in_threadpool(made))


def _archived(service: Service, archive: UploadFile) -> Iterator[tuple[str, bytes]]:
    # A copy without a name in the file system; zipfile cannot read from every kind of upload.
    with tempfile.TemporaryFile() as copy:
        shutil.copyfileobj(archive.file, copy)
        yield from _some(archive_pictures(copy, service.limits))


def _loose(service: Service, pictures: list[UploadFile]) -> Iterator[tuple[str, bytes]]:
    left = service.limits.unpacked
    for one in pictures:
        content = one.file.read(service.limits.upload + 1)
        left -= len(content)
        if len(content) > service.limits.upload or left < 0:
            raise TooLargeError(f"{plain_name(one.filename or 'picture')}: larger than the service takes")
        yield plain_name(one.filename or "picture"), content


def _some(pictures: Iterator[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
    none = True
    for one in pictures:
        none = False
        yield one
    if none:
        raise InputError("archive: expected pictures in it, found none")


def _info(job: Job) -> JobInfo:
    values: dict[str, Any] = vars(job)
    return JobInfo(**values)
